//! `larder read`

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;
use serde_json::{Value, json};

use super::{
    server::{AnyServer, AnyServerArgs, Unanswered},
    tools::named,
};
use crate::cli::client::{ClientError, Content, look, print, print_json, print_text};

#[derive(Debug, Args)]
pub(in crate::cli) struct ReadArgs {
    /// The URI of the resource. Without it, the resources and templates are listed.
    uri: Option<String>,
    /// Print the contents, or each resource and template, as a line of JSON.
    #[arg(long)]
    json: bool,
    // COMMAND is the last positional argument.
    #[command(flatten)]
    server: AnyServerArgs,
}

pub(super) async fn run(args: ReadArgs) -> Result<(), ClientError> {
    let server = args.server.open(true).await?;
    let done = match &args.uri {
        Some(uri) => read(&server, uri, args.json).await,
        None => list(&server, args.json).await,
    };
    server.close().await;
    done
}

async fn read(server: &AnyServer, uri: &str, json: bool) -> Result<(), ClientError> {
    let result = match server.request("resources/read", json!({ "uri": uri })).await {
        Ok(result) => result,
        Err(Unanswered::Refused(error)) => {
            let list = ("resources/list", "resources", "uri");
            let near = server.missing(uri, &error, list).await;
            return Err(ClientError::Failed(match near.filter(|near| !near.is_empty()) {
                Some(near) => format!("There is no resource {uri}.{near}"),
                None => error.message,
            }));
        }
        Err(Unanswered::Other(error)) => return Err(error),
    };

    if json {
        return print_json(&result);
    }
    for content in result["contents"].as_array().into_iter().flatten() {
        match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), _) => print_text(text)?,
            (None, Some(blob)) => {
                let bytes = BASE64_STANDARD.decode(blob).map_err(|_| {
                    ClientError::Unreachable(format!("The content of {uri} is not base64."))
                })?;
                let mut printed = Content::new(uri, "larder read");
                printed.print(&bytes)?;
                printed.finish()?;
            }
            (None, None) => {}
        }
    }
    Ok(())
}

async fn list(server: &AnyServer, json: bool) -> Result<(), ClientError> {
    let resources = server.list("resources/list", "resources").await?;
    let templates = server.list("resources/templates/list", "resourceTemplates").await?;
    if json {
        return resources.iter().chain(&templates).try_for_each(print_json);
    }
    if resources.is_empty() && templates.is_empty() && look::is_for_people() {
        return print(b"The server has no resources.\n");
    }

    let with_uri = |templates: Vec<Value>| {
        templates.into_iter().map(|mut template| {
            template["uri"] = template["uriTemplate"].take();
            template
        })
    };
    let all: Vec<_> = resources.into_iter().chain(with_uri(templates)).collect();
    print(named(&all, "URI", "uri").as_bytes())
}
