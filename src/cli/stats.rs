//! `larder stats`: how many bytes a running server has kept out of contexts, by tool.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use clap::Args;
use larder_protocol::quote::visible;
use larder_records::words::number;
use serde_json::json;

use super::{
    args::{file, listen},
    client::{ClientError, print},
    upstreams::ask_metrics,
};

/// The metric, as Prometheus reads it.
const METRIC: &str = "larder_context_kept_out_bytes_total{";

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// The address of the server's metrics, if it is not that of the configuration
    /// (metrics.listen).
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    metrics: Option<SocketAddr>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<PathBuf>,
    /// Print each tool as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: StatsArgs) -> Result<(), ClientError> {
    let metrics = ask_metrics(args.metrics, args.config, "/metrics").await?;
    let tools = by_tool(&metrics);

    let mut text = String::new();
    if args.json {
        for (tool, bytes) in &tools {
            text += &format!("{}\n", json!({ "tool": tool, "kept_out_bytes": bytes }));
        }
        return print(text.as_bytes());
    }

    let total: u64 = tools.values().sum();
    let mut rows: Vec<_> = tools.iter().map(|(tool, bytes)| (*bytes, tool.as_str())).collect();
    rows.sort_by(|one, other| other.cmp(one));
    rows.push((total, "total"));

    let width = number(total).len();
    for (bytes, tool) in rows {
        text += &format!("{:>width$}  {}\n", number(bytes), visible(tool));
    }
    print(text.as_bytes())
}

/// The bytes by tool, from the text of the metrics.
fn by_tool(metrics: &str) -> BTreeMap<String, u64> {
    let mut tools = BTreeMap::new();
    for line in metrics.lines().filter_map(|line| line.strip_prefix(METRIC)) {
        let parts = line.rsplit_once("} ").and_then(|(labels, bytes)| {
            let (_, tool) = labels.split_once("gen_ai_tool_name=\"")?;
            let (tool, _) = tool.split_once('"')?;
            Some((tool, bytes.trim().parse::<u64>().ok()?))
        });
        if let Some((tool, bytes)) = parts {
            *tools.entry(tool.to_owned()).or_default() += bytes;
        }
    }
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_tool_are_summed() {
        let metrics = "# HELP larder_context_kept_out_bytes_total Bytes.\n\
            larder_context_kept_out_bytes_total{gen_ai_tool_name=\"a\"} 5\n\
            larder_context_kept_out_bytes_total{kind=\"x\",gen_ai_tool_name=\"a\"} 7\n\
            larder_context_kept_out_bytes_total{gen_ai_tool_name=\"b\"} odd\n\
            larder_calls 1\n";
        assert_eq!(by_tool(metrics), BTreeMap::from([("a".to_owned(), 12)]));
    }
}
