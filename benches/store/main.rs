//! The costs of resources in each backend: `cargo bench --bench store`, or with
//! some of the names `search windows spill bodies queries`. `cargo bench --bench redis`
//! has more on Redis.
//!
//! Requests pass through a complete server, except for the network. The compared
//! operations alternate; the results are ratios of medians.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]
#![allow(clippy::cast_precision_loss, reason = "a few digits are shown")]

#[path = "../measure/mod.rs"]
mod measure;

mod bodies;
mod queries;
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
    Builder, Context, Registry, Spill, Tool,
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
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let selected = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    if selected("search") {
        Box::pin(search::measure()).await;
    }
    if selected("windows") {
        Box::pin(windows::measure()).await;
    }
    if selected("spill") {
        Box::pin(spill::measure()).await;
    }
    if selected("bodies") {
        Box::pin(bodies::measure()).await;
    }
    if selected("queries") {
        Box::pin(queries::measure()).await;
    }
}

/// A server with one backend.
struct Server {
    backend: &'static str,
    app: App,
    router: Router,
    _folder: tempfile::TempDir,
    _redis: Option<RedisServer>,
}

/// Returns ten megabytes.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Large;

impl Server {
    /// One server for each backend that needs no external service.
    async fn one_per_backend() -> Vec<Self> {
        let mut servers = Vec::new();
        for backend in ["memory", "files", "Redis"] {
            servers.push(Self::start(backend).await);
        }
        servers
    }

    async fn start(backend: &'static str) -> Self {
        Self::start_with(backend, |builder| builder).await
    }

    /// A server with further tools.
    async fn start_with(
        backend: &'static str,
        add: impl FnOnce(Builder<()>) -> Builder<()>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let redis = if backend == "Redis" { Some(RedisServer::start().await) } else { None };
        let mut config = Config::default();
        config.store.url = match (backend, &redis) {
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
            .with(add)
            .build();
        let app = App::open(registry.unwrap(), config).await.unwrap();
        let router = app.router();
        Self { backend, app, router, _folder: folder, _redis: redis }
    }

    async fn put(&self, uri: &str, content: impl Into<Content>) {
        let uri = ResourceUri::parse(uri).unwrap();
        let store = self.app.store();
        store.create(&owner(), uri, content.into(), Details::default()).await.unwrap();
    }

    async fn delete(&self, uri: &str) {
        let uri = ResourceUri::parse(uri).unwrap();
        self.app.store().delete(&owner(), &uri).await.unwrap();
    }

    /// Calls a tool and returns the text of its result.
    async fn call(&self, tool: &str, arguments: Value) -> String {
        let result = self.result(tool, arguments).await;
        assert_ne!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Calls a tool and returns its result, which may be an error.
    async fn result(&self, tool: &str, arguments: Value) -> Value {
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
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let mut message: Value = serde_json::from_slice(&body).unwrap();
        message["result"].take()
    }
}

fn owner() -> Owner {
    Owner::new("local")
}

/// Typical log lines, about a hundred bytes each.
fn log(bytes: usize) -> String {
    let mut log = String::with_capacity(bytes + 200);
    let mut n = 0_usize;
    while log.len() < bytes {
        let (host, took) = (n % 500, n * 7919 % 977);
        let event = if n % 100_000 == 77 { "a Timeout of the disk" } else { "ok" };
        writeln!(
            log,
            "2026-01-01T{:02}:{:02}:{:02}Z host-{host:03} {event} request={n} path=/items/{} took={took}ms user={}",
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
