//! `larder cat`: reads content in windows and writes each as it arrives,
//! whatever the size of the resource.

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;
use serde_json::{Value, json};

use super::{
    ClientError, Content, McpClient, ServerArgs, mcp_client::next_call, print_text, progress_bar,
    resources::Resources,
};

/// Resources up to this size, in bytes, are read by one `resources/read`.
const MAX_SINGLE_READ: u64 = 4 << 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct CatArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The URI of the resource.
    uri: String,
    /// Only these lines, counted from 1: 10-20, 10- or 10.
    #[arg(long, value_name = "FROM-TO", value_parser = parse_lines)]
    lines: Option<LineRange>,
}

/// A range of lines, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineRange {
    from: u64,
    to: Option<u64>,
}

fn parse_lines(text: &str) -> Result<LineRange, String> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);

    let range = match text.split_once('-') {
        None => number(text).map(|line| LineRange { from: line, to: Some(line) }),
        Some((from, "")) => number(from).map(|from| LineRange { from, to: None }),
        Some((from, to)) => number(from)
            .zip(number(to))
            .filter(|(from, to)| from <= to)
            .map(|(from, to)| LineRange { from, to: Some(to) }),
    };

    range.ok_or_else(|| "write it as 10-20, 10- or 10; lines count from 1".into())
}

pub(super) async fn run(args: CatArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server).await?;
    if let Some(range) = args.lines {
        return print_lines(&client, &args.uri, range).await;
    }
    if Resources::of(&client)?.print(&args.uri, |size| progress_bar(size, true)).await? {
        return Ok(());
    }

    let description = client.ask("describe_resource", &json!({ "uri": args.uri })).await?.text;
    let size = size_of(&description).unwrap_or(u64::MAX);
    let is_text = !description.contains("\nlines: none");

    // A server may return less at once. The rest is then read in windows.
    if size <= MAX_SINGLE_READ
        && let Ok(result) = client.request("resources/read", &json!({ "uri": args.uri })).await
    {
        let content = &result["contents"][0];
        return match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), _) => print_text(text),
            (None, Some(blob)) => {
                let mut printed = Content::new(&args.uri, "larder cat");
                printed.print(&decode(blob)?)?;
                printed.finish()
            }
            (None, None) => Err(ClientError::unexpected_reply()),
        };
    }

    let bar = progress_bar(Some(size), true);
    let mut printed = Content::new(&args.uri, "larder cat");
    let mut arguments = json!({ "uri": args.uri, "offset": 0, "unit": "bytes" });
    loop {
        let (head, content) = read_window(&client, &arguments).await?;
        let bytes = if is_text { content.into_bytes() } else { decode(&content)? };
        bar.inc(bytes.len() as u64);
        printed.print(&bytes)?;

        let Some(next) = next_call(&head, "read_resource") else { break };
        arguments = next;
    }

    bar.finish_and_clear();
    printed.finish()
}

/// The bytes in the line `size: 1,234 bytes` of a description.
fn size_of(description: &str) -> Option<u64> {
    let size = description.lines().find_map(|line| line.strip_prefix("size: "))?;
    size.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok()
}

async fn print_lines(client: &McpClient, uri: &str, range: LineRange) -> Result<(), ClientError> {
    let mut offset = range.from - 1;
    loop {
        // The server returns fewer lines if they are over its output limit.
        let limit = range.to.map_or(1_000_000, |to| to - offset);
        let arguments = json!({ "uri": uri, "offset": offset, "limit": limit });
        let (head, content) = read_window(client, &arguments).await?;
        if content.is_empty() && offset + 1 == range.from && offset > 0 {
            // The rest is the next call of a model.
            let told = head.split(" Next: ").next().unwrap_or_default();
            let total = told.rsplit_once(": ").map_or(told, |(_, total)| total);
            return Err(ClientError::Failed(format!("{uri} has no line {}: {total}", range.from)));
        }
        print_text(&content)?;

        match next_call(&head, "read_resource") {
            Some(next) if next["unit"] == "bytes" => {
                return Err(ClientError::Failed(format!(
                    "Line {} is longer than one result and was cut: read the resource without --lines.",
                    offset + content.lines().count().max(1) as u64
                )));
            }
            Some(next) => {
                offset = next["offset"].as_u64().ok_or_else(ClientError::unexpected_reply)?;
            }
            None => return Ok(()),
        }

        if range.to.is_some_and(|to| offset >= to) {
            return Ok(());
        }
    }
}

/// The first line of a `read_resource` result, and the content after it.
async fn read_window(
    client: &McpClient,
    arguments: &Value,
) -> Result<(String, String), ClientError> {
    let output = client.ask("read_resource", arguments).await?;
    match output.text.split_once("\n\n") {
        Some((head, content)) => Ok((head.to_owned(), content.to_owned())),
        None => Err(ClientError::unexpected_reply()),
    }
}

fn decode(blob: &str) -> Result<Vec<u8>, ClientError> {
    BASE64_STANDARD.decode(blob).map_err(|_| ClientError::unexpected_reply())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_people_do() {
        assert_eq!(parse_lines("3"), Ok(LineRange { from: 3, to: Some(3) }));
        assert_eq!(parse_lines("3-"), Ok(LineRange { from: 3, to: None }));
        assert_eq!(parse_lines("3-9"), Ok(LineRange { from: 3, to: Some(9) }));
        for wrong in ["0", "", "-", "9-3", "a-b", "-3", "1-2-3"] {
            assert!(parse_lines(wrong).is_err(), "{wrong}");
        }
    }
}
