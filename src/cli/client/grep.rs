//! `larder grep`

use clap::Args;
use larder_protocol::quote::visible;
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::{ClientError, McpClient, ServerArgs, look, person, print, print_json, print_text};

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(in crate::cli) struct GrepArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The regular expression.
    pattern: String,
    /// The URI of the resource.
    uri: String,
    /// Also print this many lines before and after each match.
    #[arg(long, short = 'C', value_name = "LINES", default_value_t = 0)]
    context: u64,
    /// Ignore case.
    #[arg(long, short = 'i')]
    ignore_case: bool,
    /// The pattern is the text itself, not a regular expression.
    #[arg(long, short = 'F')]
    fixed_strings: bool,
    /// Match whole words only.
    #[arg(long, short = 'w')]
    word_regexp: bool,
    /// Print the lines without a match.
    #[arg(long, short = 'v')]
    invert_match: bool,
    /// Print the totals only.
    #[arg(long, short = 'c')]
    count: bool,
    /// Print each line with a match as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: GrepArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server.clone()).await?;
    let mut arguments = json!({ "uri": &args.uri, "query": &args.pattern });
    if args.context > 0 {
        arguments["context"] = json!(args.context);
    }

    let flags = [
        ("ignore_case", args.ignore_case),
        ("literal", args.fixed_strings),
        ("whole_word", args.word_regexp),
        ("invert", args.invert_match),
        ("count_only", args.count),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        arguments[name] = json!(true);
    }

    let highlighted = highlighted(&args);
    loop {
        let output = client.call("search_resource", &arguments).await;
        let output = output.map_err(|error| told(&args, error))?;

        let Some((_, lines)) = output.text.split_once("\n\n") else {
            let is_none = output.text.starts_with("No line");
            if !args.count || is_none {
                return Err(ClientError::Failed(person::told(&output.text)));
            }
            if args.json {
                let structured = output.structured()?;
                let counted =
                    json!({ "matches": structured["total"], "lines": structured["lines"] });
                return print_json(&counted);
            }
            return print_text(&format!("{}\n", output.text));
        };

        // The first page may be all, which only the structured content says.
        let structured = output.structured()?;
        if args.json {
            let rows = structured["rows"].as_array().into_iter().flatten();
            for row in rows {
                print_json(row)?;
            }
        } else if let Some(pattern) = &highlighted {
            print(coloured(lines, pattern).as_bytes())?;
        } else {
            print_text(lines)?;
        }

        match &structured["next"] {
            Value::Object(next) => arguments = Value::Object(next.clone()),
            _ => return Ok(()),
        }
    }
}

/// Why the search failed, for a person.
fn told(args: &GrepArgs, error: ClientError) -> ClientError {
    match error {
        ClientError::Failed(text) => ClientError::Failed(
            person::bad_pattern(&args.pattern, &text).unwrap_or_else(|| person::told(&text)),
        ),
        other => other,
    }
}

/// The expression whose matches are coloured; `None` without a terminal. Its dialect differs from
/// the server's in rare cases, in which nothing is coloured.
fn highlighted(args: &GrepArgs) -> Option<Regex> {
    if !look::is_for_people() || args.invert_match {
        return None;
    }

    let pattern =
        if args.fixed_strings { regex::escape(&args.pattern) } else { args.pattern.clone() };
    let pattern = if args.word_regexp { format!(r"\b(?:{pattern})\b") } else { pattern };
    RegexBuilder::new(&pattern).case_insensitive(args.ignore_case).build().ok()
}

/// The lines with their numbers and matches in colour. A terminal would obey control characters.
fn coloured(lines: &str, pattern: &Regex) -> String {
    let mut text = String::new();
    for line in lines.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        // `12: text` is a line with a match, `13- text` one around it.
        let numbered = line
            .find([':', '-'])
            .filter(|at| *at > 0 && line[..*at].bytes().all(|byte| byte.is_ascii_digit()));
        let Some(at) = numbered else {
            text += &format!("{}{end}", look::dim().apply_to(visible(line)));
            continue;
        };

        let (number, content) = line.split_at(at);
        let (mark, content) = content.split_at(1);
        text += &format!("{}{mark}", look::size().apply_to(number));
        match mark {
            ":" => mark_matches(&mut text, content, pattern),
            _ => text += &visible(content),
        }
        text += end;
    }
    text
}

fn mark_matches(text: &mut String, content: &str, pattern: &Regex) {
    let (space, content) = content.split_at(usize::from(content.starts_with(' ')));
    text.push_str(space);

    let mut end = 0;
    for found in pattern.find_iter(content).filter(|found| !found.is_empty()) {
        text.push_str(&visible(&content[end..found.start()]));
        text.push_str(&look::matched().apply_to(visible(found.as_str())).to_string());
        end = found.end();
    }
    text.push_str(&visible(&content[end..]));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers_and_matches_are_marked() {
        console::set_colors_enabled(true);
        let pattern = Regex::new("o+|^").unwrap();
        let shown = coloured("1: foo o\n2- oo\n--\n", &pattern);
        let green = "\u{1b}[32m1\u{1b}[0m: f\u{1b}[31m\u{1b}[1moo\u{1b}[0m ";
        assert!(shown.starts_with(green), "{shown:?}");
        assert!(shown.contains("\u{1b}[32m2\u{1b}[0m- oo\n"), "{shown:?}");
        assert!(shown.ends_with("\u{1b}[2m--\u{1b}[0m\n"), "{shown:?}");
        assert_eq!(console::strip_ansi_codes(&shown), "1: foo o\n2- oo\n--\n");
    }
}
