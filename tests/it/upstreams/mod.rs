//! Other MCP servers behind this one: servers that others wrote, and one that
//! misbehaves (tests/upstreams).

mod again;
mod any;
mod bounds;
mod failures;
mod filesystem;
mod finding;
mod healing;
mod host;
mod http;
mod inner_calls;
mod instances;
mod items;
mod life;
mod lists;
mod logins;
pub(crate) mod meaning;
mod other_members;
mod pages;
mod passing_on;
mod policies;
mod process;
pub(crate) mod projections;
mod questions;
mod reading;
mod references;
mod repeated;
mod roots;
mod scripted;
mod simulation;
mod starts;
mod streaming;
mod subscriptions;
mod tasks;
mod token_exchange;
mod unread;
mod workflows;

use std::{collections::BTreeMap, path::Path, time::Duration};

use larder::{
    Registry,
    config::{AuthMode, TokenConfig},
    registry::Builder,
    tools::{self, ToolOptions},
    upstream::{Settings, Target, Upstream},
};
use serde_json::{Value, json};

use crate::support::{Legacy, Server, sha256};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams");

/// A server of npm that `make test` installs.
fn package(name: &str, arguments: &[&str]) -> Settings {
    let script = format!("{FOLDER}/node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    assert!(Path::new(&script).exists(), "run `npm ci` in tests/upstreams, as `make test` does");
    let command = ["node", &script].into_iter().chain(arguments.iter().copied());
    Settings::new(name, command.map(str::to_owned).collect::<Vec<_>>())
}

/// The misbehaving server.
fn odd(name: &str, flags: &[&str]) -> Settings {
    let script = format!("{FOLDER}/odd.mjs");
    let command = ["node", &script].into_iter().chain(flags.iter().copied());
    Settings::new(name, command.map(str::to_owned).collect::<Vec<_>>())
}

/// The program and its arguments.
fn command_line(settings: &Settings) -> &[String] {
    let Target::Command(command) = &settings.target else { panic!("{settings:?}") };
    &command.line
}

/// The environment of the program.
fn env(settings: &mut Settings) -> &mut BTreeMap<String, String> {
    let Target::Command(command) = &mut settings.target else { panic!("a program") };
    &mut command.env
}

/// A server in front of these, with the tools over the store.
async fn in_front_of(upstreams: Vec<Settings>) -> Server {
    Server::of(gateway(upstreams)).await
}

/// What such a server offers.
fn gateway(upstreams: Vec<Settings>) -> Registry {
    let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    with_upstreams(builder, upstreams)
}

/// A server in front of these, with all tools over the store, and with two callers whose tokens are
/// their names.
async fn for_ana_and_bob(upstreams: Vec<Settings>) -> Server {
    let tokens = ["ana", "bob"].map(|name| TokenConfig {
        name: name.into(),
        sha256: sha256(name),
        scopes: Vec::new(),
        groups: Vec::new(),
        expires: None,
    });
    Server::configured(|setup| {
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = tokens.into();
        setup.offers = Box::new(|_, _| writing_gateway(upstreams));
    })
    .await
}

fn writing_gateway(upstreams: Vec<Settings>) -> Registry {
    let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    with_upstreams(builder.with(tools::writing()), upstreams)
}

fn with_upstreams(mut builder: Builder<()>, upstreams: Vec<Settings>) -> Registry {
    for provider in Upstream::all(upstreams, builder.tool_names()) {
        builder = builder.provider(provider);
    }
    builder.build().unwrap()
}

/// The tools that a client sees, by name.
async fn listed(client: &Legacy) -> BTreeMap<String, Value> {
    let tools = client.send("tools/list", json!({})).await.result()["tools"].take();
    let tools = tools.as_array().unwrap().clone();
    tools.into_iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool)).collect()
}

/// The text of a result's first block.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The URI of a result in the text of its preview.
fn uri_in(preview: &str) -> String {
    let at = preview.find("larder://r/").unwrap_or_else(|| panic!("{preview}"));
    let is_part = |c: &char| c.is_ascii_alphanumeric() || "/:_-".contains(*c);
    preview[at..].chars().take_while(is_part).collect()
}

/// The lines that a server has written to a file.
fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether a process exists, as a zombie or not.
fn exists(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

const SOON: Duration = Duration::from_secs(10);
