//! `larder call`

use std::io::Read;

use clap::Args;
use larder_protocol::ErrorResponse;
use serde_json::{Map, Value};

use super::{
    server::{AnyServer, AnyServerArgs, Unanswered},
    shown,
    tools::missing,
};
use crate::cli::client::{ClientError, print_json, print_text};

#[derive(Debug, Args)]
pub(in crate::cli) struct CallArgs {
    /// The name of the tool.
    tool: String,
    /// The arguments: a JSON object, or NAME=VALUE pairs whose values are JSON or text; - reads an
    /// object from standard input.
    arguments: Vec<String>,
    /// Print the complete result as a line of JSON.
    #[arg(long)]
    json: bool,
    // COMMAND is the last positional argument.
    #[command(flatten)]
    server: AnyServerArgs,
}

pub(super) async fn run(args: CallArgs) -> Result<(), ClientError> {
    let reads_input = args.arguments == ["-"];
    let arguments = read_arguments(&args.arguments)?;
    let server = args.server.open(!reads_input).await?;

    let called = call(&server, &args.tool, &arguments, args.json).await;
    server.close().await;
    called
}

/// Calls a tool and prints its result.
///
/// # Errors
/// The error of the tool, or why it was not called.
pub(super) async fn call(
    server: &AnyServer,
    tool: &str,
    arguments: &Value,
    json: bool,
) -> Result<(), ClientError> {
    let result = match server.call(tool, arguments).await {
        Ok(result) => result,
        Err(Unanswered::Refused(error)) => {
            let near = server.missing(tool, &error, TOOLS).await;
            let told = near.map_or_else(|| told(tool, error.message), |near| missing(tool, &near));
            return Err(ClientError::Failed(told));
        }
        Err(Unanswered::Other(error)) => return Err(error),
    };

    if result["isError"] == true {
        if json {
            print_json(&result)?;
            return Err(ClientError::Told(1));
        }

        let text = shown::content(&result["content"]);
        // The official SDK of TypeScript says in a result that there is no such tool.
        let near = match text.strip_prefix("MCP error -32602: ") {
            Some(message) => {
                let error = ErrorResponse { code: -32602, message: message.into(), data: None };
                server.missing(tool, &error, TOOLS).await
            }
            None => None,
        };
        let told = near.map_or_else(|| told(tool, text), |near| missing(tool, &near));
        return Err(ClientError::Failed(told));
    }

    if json {
        return print_json(&result);
    }
    print_text(&format!("{}\n", shown::result(&result)))
}

/// The list of tools, its member and the key of a name.
const TOOLS: (&str, &str, &str) = ("tools/list", "tools", "name");

/// Why a call failed.
fn told(tool: &str, text: String) -> String {
    if text.to_lowercase().starts_with("invalid arguments: ") {
        return format!("{text}. See them: larder tools {tool}");
    }
    text
}

/// Arguments as a shell passes them on.
const EXAMPLE: &str = r#"Example: '{"name":"value"}'"#;

fn read_arguments(arguments: &[String]) -> Result<Value, ClientError> {
    let text = match arguments {
        [] => return Ok(Value::Object(Map::new())),
        [only] if only == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|error| ClientError::local("standard input", &error))?;
            text
        }
        [only] if only.trim_start().starts_with(['{', '[', '"']) || !only.contains('=') => {
            only.clone()
        }
        pairs => return pairs_of(pairs),
    };

    let parsed: Value =
        serde_json::from_str(&text).map_err(|error| ClientError::Usage(not_json(&text, &error)))?;
    if !parsed.is_object() {
        return Err(ClientError::Usage(format!("The arguments must be an object. {EXAMPLE}")));
    }
    Ok(parsed)
}

/// Arguments such as `limit=5 query=text`.
fn pairs_of(pairs: &[String]) -> Result<Value, ClientError> {
    let mut object = Map::new();
    for pair in pairs {
        let (name, value) = super::server::parse_pair(pair).map_err(|_| {
            ClientError::Usage(format!(
                "{pair}: write the arguments as NAME=VALUE, or as one object. {EXAMPLE}"
            ))
        })?;
        let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
        object.insert(name, value);
    }
    Ok(Value::Object(object))
}

fn not_json(text: &str, error: &serde_json::Error) -> String {
    // The shell has taken the quotes.
    let has_no_quotes = text.starts_with('{') && !text.contains('"') && text.len() > 2;
    let hint = if has_no_quotes { ", in single quotes." } else { "" };
    format!("The arguments are not JSON: {error}. {EXAMPLE}{hint}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object_or_pairs() {
        let read = |texts: &[&str]| {
            read_arguments(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>())
        };
        for (texts, arguments) in [
            (&[][..], json!({})),
            (&[r#"{"a":1}"#], json!({ "a": 1 })),
            (&[" {\"a\":\"b=c\"}"], json!({ "a": "b=c" })),
            (&["a=1"], json!({ "a": 1 })),
            (
                &["a=1", "b=x y", "c=[1,2]", "d="],
                json!({ "a": 1, "b": "x y", "c": [1, 2], "d": "" }),
            ),
            (&["query=a=b"], json!({ "query": "a=b" })),
        ] {
            assert_eq!(read(texts).unwrap(), arguments, "{texts:?}");
        }

        for wrong in
            [&["{"][..], &["[1]"], &["5"], &["text"], &["a=1", "b"], &["=1", "a=2"], &["\"a=b\""]]
        {
            assert!(matches!(read(wrong), Err(ClientError::Usage(_))), "{wrong:?}");
        }
    }
}
