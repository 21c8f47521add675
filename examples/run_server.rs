//! Running a server without a command line of Larder's: `Server::serve_until` runs until the
//! given future completes.
//!
//! `Server::run` does the same, and reads flags, configuration file and environment. Its flag
//! `--stdio` selects the stdio transport instead of HTTP.

use std::error::Error;

use clap::Parser;
use larder::{cli::ServeArgs, config::Config, prelude::*, shutdown, telemetry};
use tokio::net::TcpListener;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: ServeArgs,
}

/// Answers with pong.
#[tool]
fn ping() -> &'static str {
    "pong"
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Cli { args } = Cli::parse();
    let config = Config::load(args.config.as_deref(), |config| {
        config.server.listen = args.listen.unwrap_or(config.server.listen);
        if let Some(store) = &args.store {
            config.store.url.clone_from(store);
        }
    })?;
    telemetry::init(&config.telemetry());

    let listener = TcpListener::bind(config.server.listen).await?;
    eprintln!("larder listening on http://{}{}", listener.local_addr()?, config.server.path);
    let server = larder::server("run-server").tool(ping).config(config);
    // Runs until the first SIGINT or SIGTERM, then shuts down gracefully.
    server.serve_until(listener, shutdown::stop_signal()?).await?;
    eprintln!("stopped");
    Ok(())
}
