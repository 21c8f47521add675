//! Running a server without `larder::cli`: `App::serve` runs until the given
//! future completes.
//!
//! `larder::cli::run` does the same, and reads flags, configuration file and
//! environment. Its flag `--stdio` selects the stdio transport instead of HTTP.

use std::error::Error;

use clap::Parser;
use larder::{
    Context, Registry, Tool, app::App, cli::ServeArgs, config::Config, shutdown, telemetry,
};
use tokio::net::TcpListener;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: ServeArgs,
}

/// Answers with pong.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Ping;

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
    let ping = Tool::new(|_: Context, _: Ping| async { "pong" });
    let registry = Registry::builder("run-server").tool(ping).build()?;

    let listener = TcpListener::bind(config.server.listen).await?;
    eprintln!("larder listening on http://{}{}", listener.local_addr()?, config.server.path);
    let app = App::new(registry, config)?;
    // Runs until the first SIGINT or SIGTERM, then shuts down gracefully.
    app.serve(listener, shutdown::stop_signal()?).await?;
    eprintln!("stopped");
    Ok(())
}
