//! `larder prompts`

use clap::Args;
use console::Style;
use larder_protocol::quote::visible;
use serde_json::{Map, Value, json};

use super::{
    server::{AnyServer, AnyServerArgs, Unanswered, parse_pair},
    shown,
    tools::named,
};
use crate::cli::client::{ClientError, look, print, print_json};

#[derive(Debug, Args)]
pub(in crate::cli) struct PromptsArgs {
    /// The prompt to get. Without it, the prompts are listed.
    prompt: Option<String>,
    /// The arguments of the prompt.
    #[arg(value_name = "NAME=VALUE", value_parser = parse_pair)]
    arguments: Vec<(String, String)>,
    /// Print the prompt, or each of the list, as a line of JSON.
    #[arg(long)]
    json: bool,
    // COMMAND is the last positional argument.
    #[command(flatten)]
    server: AnyServerArgs,
}

pub(super) async fn run(args: PromptsArgs) -> Result<(), ClientError> {
    let server = args.server.open(true).await?;
    let done = match &args.prompt {
        Some(prompt) => get(&server, prompt, args.arguments, args.json).await,
        None => list(&server, args.json).await,
    };
    server.close().await;
    done
}

async fn get(
    server: &AnyServer,
    prompt: &str,
    arguments: Vec<(String, String)>,
    json: bool,
) -> Result<(), ClientError> {
    let arguments = arguments.into_iter().map(|(name, value)| (name, Value::String(value)));
    let params = json!({ "name": prompt, "arguments": arguments.collect::<Map<_, _>>() });

    let result = match server.request("prompts/get", params).await {
        Ok(result) => result,
        Err(Unanswered::Refused(error)) => {
            let list = ("prompts/list", "prompts", "name");
            return Err(ClientError::Failed(match server.missing(prompt, &error, list).await {
                Some(near) => {
                    format!("There is no prompt {prompt}.{near} List them: larder prompts")
                }
                None => error.message,
            }));
        }
        Err(Unanswered::Other(error)) => return Err(error),
    };

    if json {
        return print_json(&result);
    }
    let bold = Style::new().bold();
    for message in result["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or("user");
        let text = shown::content(&message["content"]);
        let role = bold.apply_to(visible(role));
        print(format!("{role}: {}\n", look::shown(&text)).as_bytes())?;
    }
    Ok(())
}

async fn list(server: &AnyServer, json: bool) -> Result<(), ClientError> {
    let prompts = server.list("prompts/list", "prompts").await?;
    if json {
        return prompts.iter().try_for_each(print_json);
    }
    if prompts.is_empty() && look::is_for_people() {
        return print(b"The server has no prompts.\n");
    }
    print(named(&prompts, "PROMPT", "name").as_bytes())
}
