//! `larder cat`: content comes in windows and goes out as it comes, whatever
//! its size.

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;
use serde_json::{Value, json};

use super::{
    ClientError, Link, ServerArgs,
    link::{Told, next},
    print, progress,
};

/// What is no longer than this comes at once.
const AT_ONCE: u64 = 4 << 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct CatArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Which resource.
    uri: String,
    /// Only these lines, counted from 1: 10-20, 10- or 10.
    #[arg(long, value_name = "FROM-TO", value_parser = lines)]
    lines: Option<Lines>,
}

/// From one line to another, both counted from 1 and both among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lines {
    from: u64,
    to: Option<u64>,
}

fn lines(text: &str) -> Result<Lines, String> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let read = match text.split_once('-') {
        None => number(text).map(|line| Lines { from: line, to: Some(line) }),
        Some((from, "")) => number(from).map(|from| Lines { from, to: None }),
        Some((from, to)) => number(from)
            .zip(number(to))
            .filter(|(from, to)| from <= to)
            .map(|(from, to)| Lines { from, to: Some(to) }),
    };
    read.ok_or_else(|| "write it like 10-20, 10- or 10; lines count from 1".into())
}

pub(super) async fn run(args: CatArgs) -> Result<(), ClientError> {
    let link = Link::new(args.server)?;
    if let Some(lines) = args.lines {
        return some_lines(&link, &args.uri, lines).await;
    }
    let described = link.call("describe_resource", &json!({ "uri": args.uri })).await?.text;
    let size = described.lines().find_map(|line| line.strip_prefix("size: "));
    let size = size.map(|size| size.chars().filter(char::is_ascii_digit).collect::<String>());
    let size = size.and_then(|size| size.parse::<u64>().ok()).unwrap_or(u64::MAX);
    let is_text = !described.contains("\nlines: none");
    if size <= AT_ONCE
        && let Ok(result) = link.request("resources/read", &json!({ "uri": args.uri })).await
    {
        let content = &result["contents"][0];
        return match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), _) => print(text.as_bytes()),
            (None, Some(blob)) => print(&decode(blob)?),
            (None, None) => Err(unexpected_reply()),
        };
    }
    let bar = progress(Some(size), true);
    let mut call = json!({ "uri": args.uri, "offset": 0, "unit": "bytes" });
    loop {
        let (head, content) = window(&link, &call).await?;
        let bytes = if is_text { content.into_bytes() } else { decode(&content)? };
        bar.inc(bytes.len() as u64);
        print(&bytes)?;
        let Some(on) = next(&head, "read_resource") else { break };
        call = on;
    }
    bar.finish_and_clear();
    Ok(())
}

async fn some_lines(link: &Link, uri: &str, lines: Lines) -> Result<(), ClientError> {
    let mut at = lines.from - 1;
    loop {
        let mut call = json!({ "uri": uri, "offset": at });
        // The server bounds what it gives anyway.
        let left = lines.to.map_or(1_000_000, |to| to - at);
        call["limit"] = json!(left);
        let (head, content) = window(link, &call).await?;
        print(content.as_bytes())?;
        match next(&head, "read_resource") {
            Some(on) if on["unit"] == "bytes" => {
                return Err(ClientError::Failed(format!(
                    "Line {} is longer than one answer and was cut: read the resource without --lines.",
                    at + content.lines().count().max(1) as u64
                )));
            }
            Some(on) => at = on["offset"].as_u64().ok_or_else(unexpected_reply)?,
            None => return Ok(()),
        }
        if lines.to.is_some_and(|to| at >= to) {
            return Ok(());
        }
    }
}

/// What an answer says of itself, and the content after it.
async fn window(link: &Link, call: &Value) -> Result<(String, String), ClientError> {
    let Told { text, .. } = link.call("read_resource", call).await?;
    match text.split_once("\n\n") {
        Some((head, content)) => Ok((head.to_owned(), content.to_owned())),
        None => Err(unexpected_reply()),
    }
}

fn decode(blob: &str) -> Result<Vec<u8>, ClientError> {
    BASE64_STANDARD.decode(blob).map_err(|_| unexpected_reply())
}

fn unexpected_reply() -> ClientError {
    ClientError::Unreachable("The server answers, but not as Larder does.".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_people_do() {
        assert_eq!(lines("3"), Ok(Lines { from: 3, to: Some(3) }));
        assert_eq!(lines("3-"), Ok(Lines { from: 3, to: None }));
        assert_eq!(lines("3-9"), Ok(Lines { from: 3, to: Some(9) }));
        for wrong in ["0", "", "-", "9-3", "a-b", "-3", "1-2-3"] {
            assert!(lines(wrong).is_err(), "{wrong}");
        }
    }
}
