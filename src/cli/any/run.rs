//! `larder run`

use std::io::Read;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{call, server::AnyServerArgs};
use crate::cli::client::ClientError;

#[derive(Debug, Args)]
pub(in crate::cli) struct RunArgs {
    /// The file with the JavaScript; - reads standard input.
    file: String,
    /// A stored resource that the code gets as inputs.NAME. Repeat for more.
    #[arg(long = "input", value_name = "NAME=URI", value_parser = super::server::parse_pair)]
    inputs: Vec<(String, String)>,
    /// The most seconds that it runs.
    #[arg(long)]
    seconds: Option<u64>,
    /// Print the complete result as a line of JSON.
    #[arg(long)]
    json: bool,
    // COMMAND is the last positional argument.
    #[command(flatten)]
    server: AnyServerArgs,
}

pub(super) async fn run(args: RunArgs) -> Result<(), ClientError> {
    let reads_input = args.file == "-";
    let code = if reads_input {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map(|_| text).map_err(|error| ClientError::local("standard input", &error))?
    } else {
        let read = std::fs::read_to_string(&args.file);
        read.map_err(|error| ClientError::local(&args.file, &error))?
    };

    let inputs: Map<_, _> =
        args.inputs.into_iter().map(|(name, uri)| (name, Value::from(uri))).collect();
    let mut arguments = json!({ "code": code, "inputs": inputs });
    if let Some(seconds) = args.seconds {
        arguments["seconds"] = seconds.into();
    }

    let server = args.server.open(!reads_input).await?;
    let called = call::call(&server, "run_code", &arguments, args.json).await;
    server.close().await;
    called
}
