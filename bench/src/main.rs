//! The benchmark: `make bench`, or with the names of some parts. It runs on one
//! core and starts each server on another one.

use std::{error::Error, fs, time::Duration};

use clap::Parser;
use larder_bench::{
    foreign::{Sample, TOLERATED},
    issuer::Issuer,
    load::{Speech, Work},
    process::{Peer, sibling},
    report::{Table, median},
};

mod bodies;
mod calls;
mod content;
mod gateway;
mod growth;
mod hostile;
mod idle;
mod owners;
mod resume;
mod streams;

type Outcome = Result<(), Box<dyn Error>>;

/// Measures Larder and other MCP servers, and prints ratios.
#[derive(Debug, Parser)]
struct Options {
    /// calls, bodies, content, gateway, idle, streams, resume, hostile, growth, owners; all by default
    parts: Vec<String>,
    /// The number of rounds; the result is their median
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The seconds of one measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Measure only Larder and the limit
    #[arg(long)]
    without_peers: bool,
    /// The Python that has FastMCP installed
    #[arg(long, default_value = "python3")]
    python: std::path::PathBuf,
    /// The directory for plots
    #[arg(long, default_value = ".")]
    plots: std::path::PathBuf,
}

impl Options {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// A server to measure.
struct Contender {
    name: &'static str,
    peer: Peer,
    work: Work,
}

/// Measures the contenders in turn, round by round, and returns the medians.
/// Repeats a measurement while other processes load the machine.
async fn rounds<T>(
    options: &Options,
    contenders: &[Contender],
    mut measure: impl AsyncFnMut(&Contender) -> Result<T, Box<dyn Error>>,
    value: impl Fn(&T) -> f64,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let pids: Vec<u32> = contenders.iter().map(|contender| contender.peer.pid()).collect();
    let mut values = vec![Vec::new(); contenders.len()];
    let mut discarded = 0;
    for _ in 0..options.rounds {
        for (index, contender) in contenders.iter().enumerate() {
            loop {
                let before = Sample::take(&pids);
                let measured = measure(contender).await?;
                let foreign = Sample::take(&pids).foreign_since(before);
                if foreign <= TOLERATED || discarded >= options.rounds * contenders.len() {
                    values[index].push(value(&measured));
                    break;
                }
                discarded += 1;
            }
        }
    }
    if discarded > 0 {
        println!("({discarded} measurements were discarded because of other load)");
    }
    if discarded >= options.rounds * contenders.len() {
        println!("(THE MACHINE WAS BUSY: the following results are unreliable)");
    }
    Ok(values.into_iter().map(median).collect())
}

async fn larder(work: Work) -> Result<Contender, Box<dyn Error>> {
    let peer = Peer::start(&sibling("peer-larder"), &["--listen", "127.0.0.1:0"]).await?;
    Ok(Contender { name: "Larder", peer, work })
}

/// Larder with bearer tokens of an authorization server.
async fn larder_with_auth(work: Work) -> Result<(Contender, Issuer), Box<dyn Error>> {
    let issuer = Issuer::start().await?;
    let resource = "http://127.0.0.1:8000/mcp";
    let file = tempfile::NamedTempFile::new()?;
    fs::write(
        file.path(),
        format!(
            "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"{resource}\"\n[auth]\nmode = \"oauth\"\nrequired_scopes = [\"mcp:read\"]\n[[auth.issuers]]\nissuer = \"{}\"\n",
            issuer.url
        ),
    )?;
    let config = file.path().to_str().ok_or("a path in UTF-8")?;
    let peer = Peer::start(&sibling("peer-larder"), &["--config", config]).await?;
    let work = Work { token: Some(issuer.token(resource)), ..work };
    Ok((Contender { name: "Larder", peer, work }, issuer))
}

async fn limit(work: Work) -> Result<Contender, Box<dyn Error>> {
    let peer = Peer::start(&sibling("peer-limit"), &[]).await?;
    Ok(Contender { name: "axum and serde (the limit)", peer, work })
}

async fn rmcp(sessions: bool, work: Work) -> Result<Contender, Box<dyn Error>> {
    let mode = if sessions { "sessions" } else { "stateless" };
    let peer = Peer::start(&sibling("peer-rmcp"), &[mode]).await?;
    Ok(Contender { name: "rmcp 3.9.0", peer, work })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let options = Options::parse();
    let selected =
        |name: &str| options.parts.is_empty() || options.parts.iter().any(|part| part == name);
    if selected("calls") {
        calls::measure(&options).await?;
    }
    if selected("bodies") {
        bodies::measure(&options).await?;
    }
    if selected("content") {
        content::measure(&options).await?;
    }
    if selected("gateway") {
        gateway::measure(&options).await?;
    }
    if selected("idle") {
        idle::measure().await?;
    }
    if selected("streams") {
        streams::measure(&options).await?;
    }
    if selected("resume") {
        resume::measure(&options).await?;
    }
    if selected("hostile") {
        hostile::measure().await?;
    }
    if selected("growth") {
        growth::measure(&options).await?;
    }
    if selected("owners") {
        owners::measure(&options).await?;
    }
    Ok(())
}
