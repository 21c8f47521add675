//! The viewer: who sees it, what its tools give, and the page in a browser.

mod browser;
mod charts;
mod listing;
mod parts;

use std::{sync::Arc, time::Duration};

use larder::{
    apps::{self, AppOptions},
    config::{Config, TokenConfig},
    query::{Queries, QueryLimits},
    tools::{self, ToolOptions},
};
use serde_json::{Value, json};

use crate::support::{Modern, Server, sha256};

const EXTENSION: &str = "io.modelcontextprotocol/ui";
const PAGE_TYPE: &str = "text/html;profile=mcp-app";
const VIEW: &str = "ui://larder/view.html";

/// The capabilities of a client that shows pages.
fn showing() -> Value {
    json!({ "extensions": { EXTENSION: { "mimeTypes": [PAGE_TYPE] } } })
}

/// A server with the viewer, which queries by the binary.
async fn server(change: impl FnOnce(&mut Config)) -> Server {
    let limits = QueryLimits {
        program: Some(env!("CARGO_BIN_EXE_larder").into()),
        time: Duration::from_secs(120),
        ..QueryLimits::default()
    };
    Server::configured(|setup| {
        change(&mut setup.config);
        setup.offer(|builder| {
            let queries = Arc::new(Queries::new(limits));
            let options = AppOptions {
                queries: Some(Arc::clone(&queries)),
                domains: [("it".to_owned(), "viewer.example".to_owned())].into(),
                ..AppOptions::default()
            };
            builder
                .with(tools::reading(ToolOptions::default()))
                .with(tools::writing())
                .with(tools::querying_with(queries, true))
                .with(apps::viewing(options))
        });
    })
    .await
}

fn token(name: &str, scopes: &[&str]) -> TokenConfig {
    TokenConfig {
        name: name.into(),
        sha256: sha256(name),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        groups: Vec::new(),
        expires: None,
    }
}

/// The structured content of a call that succeeds.
async fn value(client: &Modern, tool: &str, arguments: Value) -> Value {
    let answer = client.call(tool, arguments).await;
    answer.text();
    answer.result()["structuredContent"].take()
}
