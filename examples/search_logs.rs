//! A search with too many results for a model's context. The tool stores them as
//! a resource, and returns their number and the URI.

use larder::prelude::*;
use model::ContentBlock;

/// A simulated log of several services.
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
        matching.map(|(index, line)| json!({ "line": index + 1, "text": line })).collect()
    }
}

/// Finds all log lines that contain the query.
#[tool]
async fn search_logs(
    ctx: &Context<Logs>,
    /** The exact text to find. */
    query: String,
) -> Result<Vec<ContentBlock>> {
    let results = ctx.state().search(&query);
    let count = results.len();
    let entry = ctx
        .create_resource(format!("results://search/{}", ctx.request_id()), json!(results))
        .name(format!("Search Results: {query}"))
        .description(format!("Found {count} matches for '{query}'"))
        .mime_type("application/json")
        .ttl(hours(1))
        .await?;
    let text = format!("Search complete. Found {count} results. Access at {entry}");
    Ok(vec![ContentBlock::text(text), entry.to_link()])
}

fn main() -> ExitCode {
    larder::server("search-logs").state(Logs::new()).tool(search_logs).reading().run()
}
