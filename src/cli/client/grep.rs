//! `larder grep`

use clap::Args;
use serde_json::{Value, json};

use super::{ClientError, McpClient, ServerArgs, print};

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
}

pub(super) async fn run(args: GrepArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server)?;
    let mut arguments = json!({ "uri": args.uri, "query": args.pattern });
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

    loop {
        let output = client.call("search_resource", &arguments).await?;
        let Some((_, lines)) = output.text.split_once("\n\n") else {
            if args.count && !output.text.starts_with("No line") {
                return print(format!("{}\n", output.text).as_bytes());
            }
            return Err(ClientError::Failed(output.text));
        };

        print(lines.as_bytes())?;
        match &output.result["structuredContent"]["next"] {
            Value::Object(next) => arguments = Value::Object(next.clone()),
            _ => return Ok(()),
        }
    }
}
