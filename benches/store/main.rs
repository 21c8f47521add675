//! What resources cost, by where they lie: `cargo bench --bench store`, or with
//! the names of some of `search windows spill bodies`. Redis by itself has
//! `cargo bench --bench redis`.
//!
//! All of it goes through a whole server, but for the network. What is compared
//! runs in turns, and medians are shown as ratios.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]
#![allow(clippy::cast_precision_loss, reason = "a few digits are shown")]

#[path = "../measure/mod.rs"]
mod measure;

mod bodies;
mod search;
mod spill;
mod windows;

use std::fmt::Write;

use axum::{
    Router,
    body::Body,
    http::{Request, header},
};
use larder::{
    Context, Registry, Spill, Tool,
    app::App,
    auth::Owner,
    config::Config,
    store::{Content, Details, ResourceUri},
    testing::{RedisServer, store::noise},
    tools::{self, ToolOptions},
};
use measure::{median, seconds};
use serde_json::{Value, json};
use tower::ServiceExt;

const MB: usize = 1_000_000;

#[tokio::main]
async fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    if wanted("search") {
        search::measure().await;
    }
    if wanted("windows") {
        windows::measure().await;
    }
    if wanted("spill") {
        spill::measure().await;
    }
    if wanted("bodies") {
        bodies::measure().await;
    }
}

/// A server whose resources lie in one place.
struct Server {
    place: &'static str,
    app: App,
    router: Router,
    _folder: tempfile::TempDir,
    _redis: Option<RedisServer>,
}

/// Ten megabytes, put by.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Large;

impl Server {
    /// One for each kind of place that needs nobody else's service.
    async fn everywhere() -> Vec<Self> {
        let mut servers = Vec::new();
        for place in ["memory", "files", "Redis"] {
            servers.push(Self::at(place).await);
        }
        servers
    }

    async fn at(place: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let redis = if place == "Redis" { Some(RedisServer::start().await) } else { None };
        let mut config = Config::default();
        config.store.url = match (place, &redis) {
            ("files", _) => format!("file://{}", folder.path().display()),
            (_, Some(redis)) => redis.url(),
            _ => "memory:".into(),
        };
        config.redis.migrate = true;
        let registry = Registry::builder("bench")
            .with(tools::reading(ToolOptions::default()))
            .tool(
                Tool::new(|_: Context, _: Large| async { spill::TEXT.clone() })
                    .spill(Spill::Always),
            )
            .build();
        let app = App::open(registry.unwrap(), config).await.unwrap();
        let router = app.router();
        Self { place, app, router, _folder: folder, _redis: redis }
    }

    async fn put(&self, uri: &str, content: impl Into<Content>) {
        let uri = ResourceUri::parse(uri).unwrap();
        let store = self.app.store();
        store.create(&owner(), uri, content.into(), Details::default()).await.unwrap();
    }

    /// What a tool says.
    async fn call(&self, tool: &str, arguments: Value) -> String {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments,
        } });
        let request = Request::post("/mcp")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let said = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let said: Value = serde_json::from_slice(&said).unwrap();
        assert_ne!(said["result"]["isError"], true, "{said}");
        said["result"]["content"][0]["text"].as_str().expect("it says something").to_owned()
    }
}

fn owner() -> Owner {
    Owner::new("local")
}

/// Lines as servers write them, a hundred bytes each.
fn log(bytes: usize) -> String {
    let mut log = String::with_capacity(bytes + 200);
    let mut n = 0_usize;
    while log.len() < bytes {
        let (host, took) = (n % 500, n * 7919 % 977);
        let said = if n % 100_000 == 77 { "a Timeout of the disk" } else { "ok" };
        writeln!(
            log,
            "2026-01-01T{:02}:{:02}:{:02}Z host-{host:03} {said} request={n} path=/items/{} took={took}ms user={}",
            n / 3600 % 24,
            n / 60 % 60,
            n % 60,
            n * 31 % 1009,
            n * 104_729 % 4999,
        )
        .unwrap();
        n += 1;
    }
    log
}
