//! `larder ls`, `grep`, `rm`, `call`: one tool each.

use std::io::Read;

use clap::Args;
use serde_json::{Value, json};

use super::{ClientError, Link, ServerArgs, link::next, print};

#[derive(Debug, Args)]
pub(in crate::cli) struct LsArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Only those whose URI begins with this.
    prefix: Option<String>,
    /// Print each as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn ls(args: LsArgs) -> Result<(), ClientError> {
    let link = Link::new(args.server)?;
    let mut call = json!({});
    if let Some(prefix) = args.prefix {
        call["prefix"] = json!(prefix);
    }
    loop {
        let told = link.call("list_resources", &call).await?;
        let page: Value = serde_json::from_str(&told.text)
            .map_err(|_| ClientError::Unreachable("The list cannot be read.".into()))?;
        let mut text = String::new();
        for resource in page["resources"].as_array().into_iter().flatten() {
            if args.json {
                text += &format!("{resource}\n");
                continue;
            }
            let field = |name: &str| match &resource[name] {
                Value::String(text) => text.clone(),
                Value::Null => "-".into(),
                other => other.to_string(),
            };
            let row = ["uri", "size", "mime_type", "expires"].map(field).join("\t");
            text += &format!("{row}\n");
        }
        print(text.as_bytes())?;
        let on = page["next"].as_str().map(|on| format!("next: {on}"));
        match on.and_then(|on| next(&on, "list_resources")) {
            Some(on) => call = on,
            None => return Ok(()),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct GrepArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// A regular expression.
    pattern: String,
    /// Which resource.
    uri: String,
    /// So many lines around each, too.
    #[arg(long, short = 'C', value_name = "LINES", default_value_t = 0)]
    context: u64,
}

pub(super) async fn grep(args: GrepArgs) -> Result<(), ClientError> {
    let link = Link::new(args.server)?;
    let mut call = json!({ "uri": args.uri, "query": args.pattern });
    if args.context > 0 {
        call["context"] = json!(args.context);
    }
    loop {
        let told = link.call("search_resource", &call).await?;
        let Some((head, lines)) = told.text.split_once("\n\n") else {
            return Err(ClientError::Failed(told.text));
        };
        print(lines.as_bytes())?;
        match next(head, "search_resource") {
            Some(on) => call = on,
            None => return Ok(()),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RmArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Which resources.
    #[arg(required = true)]
    uris: Vec<String>,
}

pub(super) async fn rm(args: RmArgs) -> Result<(), ClientError> {
    let link = Link::new(args.server)?;
    for uri in &args.uris {
        let told = link.call("delete_resource", &json!({ "uri": uri })).await?;
        print(format!("{}\n", told.text).as_bytes())?;
    }
    Ok(())
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CallArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Which tool.
    tool: String,
    /// Its arguments, an object in JSON; - reads it from standard input.
    #[arg(default_value = "{}")]
    arguments: String,
    /// Print the whole result as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn call(args: CallArgs) -> Result<(), ClientError> {
    let mut text = args.arguments;
    if text == "-" {
        text.clear();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| ClientError::local("standard input", &error))?;
    }
    let arguments: Value = serde_json::from_str(&text)
        .map_err(|error| ClientError::Usage(format!("the arguments are not JSON: {error}")))?;
    let told = Link::new(args.server)?.call(&args.tool, &arguments).await?;
    let shown = if args.json { told.result.to_string() } else { told.text };
    print(format!("{shown}\n").as_bytes())
}
