//! A search whose results would drown a model: the tool puts them by, and
//! answers with how many there are and where.

use std::time::Duration;

use larder::{
    Context, Registry, Tool, ToolError,
    tools::{self, ToolOptions},
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// A stand-in for a log search: a few services that complain in turn.
struct Logs {
    lines: Vec<String>,
}

impl Logs {
    fn new() -> Self {
        let services = ["gateway", "billing", "search", "mailer"];
        let events = ["timeout after 30 s", "connection refused", "retrying", "request served"];
        let lines = (0..100_000_usize).map(|n| {
            let (service, event) = (services[n % services.len()], events[(n / 7) % events.len()]);
            format!("2026-01-01T00:00:00.{n:06}Z {service} {event} request={n}")
        });
        Self { lines: lines.collect() }
    }

    fn search(&self, query: &str) -> Vec<Value> {
        let matching = self.lines.iter().enumerate().filter(|(_, line)| line.contains(query));
        matching.map(|(at, line)| json!({ "line": at + 1, "text": line })).collect()
    }
}

/// Searches through all log lines for those that contain the query.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SearchLogs {
    /// The words to look for, as they stand in the log.
    query: String,
}

async fn search_logs(ctx: Context<Logs>, args: SearchLogs) -> Result<CallToolResult, ToolError> {
    let SearchLogs { query } = args;
    let results = ctx.state().search(&query);
    let count = results.len();
    let entry = ctx
        .create_resource(format!("results://search/{}", ctx.request_id()), json!(results))
        .name(format!("Search Results: {query}"))
        .description(format!("Found {count} matches for '{query}'"))
        .mime_type("application/json")
        .ttl(Duration::from_secs(3600))
        .await?;
    let text = format!("Search complete. Found {count} results. Access at {entry}");
    Ok(CallToolResult::success(vec![ContentBlock::text(text), entry.to_link()]))
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("search-logs")
            .state(Logs::new())
            .tool(Tool::new(search_logs))
            .with(tools::reading(ToolOptions::default()))
            .build()
    })
}
