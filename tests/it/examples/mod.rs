//! The example servers, each in a process of its own, called over HTTP.

mod dynamic_resources;
mod evaluation;
mod lifespan;
mod low_level;
mod own_store;
mod prompts;
mod resources;
mod running;
mod settings;
mod tools;

use tokio::process::Command;

use crate::support::{
    Modern,
    process::{Process, example},
};

/// An example that serves, with its store in memory.
async fn start(name: &str) -> Process {
    started(example(name)).await
}

/// The same of a prepared command.
async fn started(mut command: Command) -> Process {
    command.args(["--store", "memory:"]);
    Process::start(command).await
}

/// An example and a client of it.
async fn serving(name: &str) -> (Process, Modern) {
    let example = start(name).await;
    let client = Modern::at(&example.url);
    (example, client)
}
