//! The benchmark: `make bench`, or with the names of some of its parts.
//!
//! Runs on one core and starts each server on another one.

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
mod growth;
mod hostile;
mod idle;
mod resume;
mod streams;

type Outcome = Result<(), Box<dyn Error>>;

/// Measures Larder beside its peers and prints ratios.
#[derive(Debug, Parser)]
struct Options {
    /// calls, bodies, idle, streams, resume, hostile, growth; all of them by default
    parts: Vec<String>,
    /// Rounds of which the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds that one measurement takes
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Larder and the limit only
    #[arg(long)]
    without_peers: bool,
    /// The Python that FastMCP is installed for
    #[arg(long, default_value = "python3")]
    python: std::path::PathBuf,
    /// Where plots go
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

/// Measures each contender in turn, round by round, until each round had no
/// load of others beside it, and gives the medians.
async fn rounds<T>(
    options: &Options,
    contenders: &[Contender],
    mut measure: impl AsyncFnMut(&Contender) -> Result<T, Box<dyn Error>>,
    value: impl Fn(&T) -> f64,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let pids: Vec<u32> = contenders.iter().map(|contender| contender.peer.pid()).collect();
    let mut values = vec![Vec::new(); contenders.len()];
    let mut thrown = 0;
    for _ in 0..options.rounds {
        for (at, contender) in contenders.iter().enumerate() {
            loop {
                let before = Sample::take(&pids);
                let measured = measure(contender).await?;
                let foreign = Sample::take(&pids).foreign_since(before);
                if foreign <= TOLERATED || thrown >= options.rounds * contenders.len() {
                    values[at].push(value(&measured));
                    break;
                }
                thrown += 1;
            }
        }
    }
    if thrown > 0 {
        println!("({thrown} measurements with others' load beside them were thrown away)");
    }
    if thrown >= options.rounds * contenders.len() {
        println!("(THE MACHINE WAS BUSY: what follows is not to be relied upon)");
    }
    Ok(values.into_iter().map(median).collect())
}

async fn larder(work: Work) -> Result<Contender, Box<dyn Error>> {
    let peer = Peer::start(&sibling("peer-larder"), &["--listen", "127.0.0.1:0"]).await?;
    Ok(Contender { name: "Larder", peer, work })
}

/// Larder with an authorization server before it.
async fn larder_with_auth(work: Work) -> Result<(Contender, Issuer), Box<dyn Error>> {
    let issuer = Issuer::start().await?;
    let resource = "http://127.0.0.1:8000/mcp";
    let file = tempfile::NamedTempFile::new()?;
    fs::write(
        file.path(),
        format!(
            "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"{resource}\"\n[limits]\nrequests_per_window = 0\n[auth]\nmode = \"oauth\"\nrequired_scopes = [\"mcp:read\"]\n[[auth.issuers]]\nissuer = \"{}\"\n",
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
    let wanted =
        |part: &str| options.parts.is_empty() || options.parts.iter().any(|asked| asked == part);
    if wanted("calls") {
        calls::measure(&options).await?;
    }
    if wanted("bodies") {
        bodies::measure(&options).await?;
    }
    if wanted("idle") {
        idle::measure().await?;
    }
    if wanted("streams") {
        streams::measure(&options).await?;
    }
    if wanted("resume") {
        resume::measure(&options).await?;
    }
    if wanted("hostile") {
        hostile::measure().await?;
    }
    if wanted("growth") {
        growth::measure(&options).await?;
    }
    Ok(())
}
