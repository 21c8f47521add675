//! `larder upstreams`: the MCP servers behind a running Larder.

use std::{fmt::Write, net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use larder_gateway::Status;
use larder_protocol::quote::{visible, visible_json};
use larder_records::words::number;
use serde::Deserialize;

use super::{
    ServeArgs,
    args::{file, listen},
    client::{ClientError, LoginCommand, print, run_login},
    health::reachable,
};

/// The path at the listener of the metrics.
pub(super) const PATH: &str = "/upstreams";

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct UpstreamsArgs {
    #[command(subcommand)]
    command: Option<LoginCommand>,
    /// The address of the server's metrics, if it is not that of the configuration
    /// (metrics.listen).
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    metrics: Option<SocketAddr>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<PathBuf>,
    /// Print each upstream as a line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Statuses {
    upstreams: Vec<Status>,
}

pub(super) async fn run(args: UpstreamsArgs) -> Result<(), ClientError> {
    if let Some(command) = args.command {
        return run_login(command).await;
    }

    let response = ask_metrics(args.metrics, args.config, PATH).await?;
    let Statuses { upstreams } =
        serde_json::from_str(&response).map_err(|_| ClientError::unexpected_reply())?;

    let text = if args.json { lines_of_json(&upstreams) } else { table(&upstreams) };
    print(text.as_bytes())
}

/// The text at a path of the listener of the metrics: at that address, or at that of the
/// configuration.
///
/// # Errors
/// The setting that is missing, or why the server cannot be asked.
pub(super) async fn ask_metrics(
    address: Option<SocketAddr>,
    config: Option<PathBuf>,
    path: &str,
) -> Result<String, ClientError> {
    let address = match address {
        Some(address) => address,
        None => {
            let serve = ServeArgs { config, ..ServeArgs::default() };
            let config =
                serve.configure().map_err(|error| ClientError::Usage(error.to_string()))?;
            config.metrics.listen.ok_or_else(|| {
                ClientError::Usage(
                    "metrics.listen is not set: the server tells this there. Set it, or give --metrics ADDR.".into(),
                )
            })?
        }
    };

    let url = format!("http://{}{path}", reachable(address));
    let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
    let response =
        async { client.build()?.get(&url).send().await?.error_for_status()?.text().await };

    response.await.map_err(|error| {
        if error.is_connect() {
            return ClientError::Unreachable(format!(
                "No server with metrics at {url}. metrics.listen is its address; another one: --metrics ADDR."
            ));
        }
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let cause = cause.unwrap_or_else(|| error.to_string());
        ClientError::Unreachable(format!("{url}: {cause}"))
    })
}

fn lines_of_json(upstreams: &[Status]) -> String {
    let lines = upstreams.iter().map(|status| {
        // A status always serializes.
        visible_json(&serde_json::to_string(status).unwrap_or_default()) + "\n"
    });
    lines.collect()
}

fn table(upstreams: &[Status]) -> String {
    let mut rows = vec![
        ["NAME", "STATE", "PROCESSES", "ERA", "TOOLS", "KEPT OUT", "FAILURES", "PROBLEM"]
            .map(str::to_owned),
    ];
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());

    rows.extend(upstreams.iter().map(|status| {
        [
            status.name.clone(),
            status.state.as_str().to_owned(),
            status.processes.to_string(),
            or_none(status.era.clone()),
            or_none(status.tools.map(|tools| match status.left_out.len() {
                0 => tools.to_string(),
                left_out => format!("{tools}, {left_out} left out"),
            })),
            number(status.kept_out_bytes),
            status.failures.to_string(),
            // A terminal would obey control characters of the error.
            or_none(problem(status)),
        ]
    }));

    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 7] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let mut text = String::new();

    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            // Writing to a string succeeds.
            let _ = write!(text, "{cell:width$}  ");
        }
        text += &row[7];
        text.push('\n');
    }

    for status in upstreams {
        for left_out in &status.left_out {
            text += &format!("{}: left out: {}\n", status.name, visible(left_out));
        }
        for renamed in &status.renamed {
            text += &format!("{}: renamed: {}\n", status.name, visible(renamed));
        }
    }

    text
}

/// Why a part of the lists is missing, the event that comes next, and the last error. A terminal would obey what an error
/// contains.
fn problem(status: &Status) -> Option<String> {
    let last = status
        .last_error
        .as_ref()
        .map(|error| format!("{} s ago: {}", number(error.seconds_ago), visible(&error.text)));
    let waits_for = status.waits_for.as_ref().map(|event| format!("waits for {event}"));
    let problems: Vec<_> =
        status.degraded.clone().into_iter().chain(waits_for).chain(last).collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_gateway::{LastError, State};

    #[test]
    fn a_table_has_a_row_for_each_upstream() {
        let status = Status {
            name: "fs".into(),
            state: State::Degraded,
            degraded: Some("tools/list is cut".into()),
            waits_for: None,
            is_failing: false,
            processes: 2,
            era: Some("legacy".into()),
            tools: Some(14),
            left_out: vec!["wide: its definition is over 64 KiB".into()],
            renamed: vec!["a.b is offered as fs__a_b_01ab23".into()],
            kept_out_bytes: 12_345_678,
            failures: 1,
            last_error: Some(LastError { text: "exit 1: \u{1b}[2J".into(), seconds_ago: 61 }),
        };

        let new = Status {
            name: "filesystem".into(),
            state: State::Starting,
            degraded: None,
            waits_for: Some("its first answer".into()),
            is_failing: false,
            processes: 0,
            era: None,
            tools: None,
            left_out: Vec::new(),
            renamed: Vec::new(),
            kept_out_bytes: 0,
            failures: 0,
            last_error: None,
        };

        let shown = table(&[status, new]);
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[1].starts_with("fs          degraded  2"), "{shown}");
        assert!(lines[1].contains("14, 1 left out"), "{shown}");
        assert!(shown.contains("fs: renamed: a.b is offered as fs__a_b_01ab23"), "{shown}");
        assert!(lines[1].contains("12,345,678"));
        assert!(lines[1].contains("tools/list is cut; 61 s ago: exit 1: "), "{shown}");
        assert!(
            !shown.contains('\u{1b}') && lines[2].ends_with("waits for its first answer"),
            "{shown}"
        );
    }
}
