//! The command line: of the binary, and of servers built on the crate.

mod args;
mod builtin;
mod client;
mod config;
mod demo;
mod dev;
mod files;
mod health;
mod hosts;
mod install;
mod migrate;
mod reload;
mod serve;

use std::{panic::AssertUnwindSafe, process::ExitCode, sync::Arc};

use clap::{Parser, Subcommand};
use futures_util::FutureExt;

pub use self::args::ServeArgs;
use self::{
    client::{ClientCommand, exit_code},
    config::ConfigCommand,
    demo::DemoArgs,
    health::HealthArgs,
    hosts::HostCommand,
    migrate::MigrateArgs,
    serve::serve,
};
use crate::{
    app::OpenError,
    config::Config,
    registry::{BuildError, Registry},
};

/// The process was asked for something that it cannot do.
const USAGE: u8 = 2;

#[derive(Parser)]
#[command(
    name = "larder",
    version,
    about = "An MCP server that keeps large results out of the model's context"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the protocol over HTTP, or over standard input and output.
    Serve {
        #[command(flatten)]
        args: ServeArgs,
        /// Run the migrations that the store needs first (redis.migrate).
        #[arg(long)]
        migrate: bool,
    },
    /// Show what Larder does, on a large text: stores it in a server of its own,
    /// searches and pages it, and counts the bytes that a model would see.
    Demo(DemoArgs),
    /// Bring the layout of what the store holds up to this version, once.
    Migrate(MigrateArgs),
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Ask a server on this machine whether it lives: exit code 1 if not.
    Health(HealthArgs),
    #[command(flatten)]
    Client(ClientCommand),
    #[command(flatten)]
    Host(HostCommand),
}

#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct ServerCli {
    #[command(subcommand)]
    command: Option<HostCommand>,
    #[command(flatten)]
    args: ServeArgs,
}

/// The binary's main.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve { args, migrate } => {
            let places = args.places();
            run_with(args, migrate, move |config| builtin::registry(config, &places))
        }
        Command::Host(command) => command.run(&["serve"]),
        Command::Migrate(args) => in_runtime(|| async move {
            match migrate::run(&args).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => refuse(&error),
            }
        }),
        Command::Demo(args) => in_runtime(|| async { exit_code(demo::run(args).await) }),
        Command::Config(command) => config::run(command),
        Command::Health(args) => in_runtime(|| health::run(args)),
        Command::Client(command) => client::run(command),
    }
}

/// The main of a server of one's own: reads flags, configuration and
/// environment, and serves until it is told to stop. Where its store needs
/// migrations, it runs them first. The server has the commands `dev`, which
/// shows it in the MCP Inspector, and `install`, which adds it to a host's
/// configuration.
///
/// ```no_run
/// use larder::{Context, Registry, Tool};
///
/// /// Says it back.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Echo {
///     /// What to say.
///     text: String,
/// }
///
/// fn main() -> std::process::ExitCode {
///     let echo = Tool::new(|_: Context, args: Echo| async move { args.text });
///     larder::cli::run(|_| Registry::builder("echo").tool(echo).build())
/// }
/// ```
pub fn run(build: impl FnOnce(&Config) -> Result<Registry, BuildError>) -> ExitCode {
    let ServerCli { command, args } = ServerCli::parse();
    match command {
        Some(command) => command.run(&[]),
        None => run_with(args, true, build),
    }
}

/// [`run`], with something that is set up before the first request and taken
/// down after the last one, once each: connections, caches, a model in memory.
///
/// `teardown` comes also when the server ends by an error, and not when `setup`
/// did. Handlers reach the value by [`Context::state`](crate::handler::Context::state).
///
/// ```no_run
/// use std::{convert::Infallible, sync::Arc};
/// use larder::{Context, Registry, Tool};
///
/// /// Counts the days of the week.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count;
///
/// type Days = Arc<Vec<String>>;
///
/// fn main() -> std::process::ExitCode {
///     larder::cli::run_with_lifespan(
///         async |_config| Ok::<_, Infallible>(vec!["Monday".to_owned()]),
///         |_config, days| {
///             let count = |ctx: Context<Days>, _: Count| async move { ctx.state().len().to_string() };
///             Registry::builder("days").state(days).tool(Tool::new(count)).build()
///         },
///         async |days| eprintln!("{} days were used", days.len()),
///     )
/// }
/// ```
pub fn run_with_lifespan<L, E: std::fmt::Display>(
    setup: impl AsyncFnOnce(&Config) -> Result<L, E>,
    build: impl FnOnce(&Config, Arc<L>) -> Result<Registry, BuildError>,
    teardown: impl AsyncFnOnce(Arc<L>),
) -> ExitCode {
    let ServerCli { command, args } = ServerCli::parse();
    if let Some(command) = command {
        return command.run(&[]);
    }
    in_runtime(|| async {
        let config = match args.configure() {
            Ok(config) => config,
            Err(error) => return fail(USAGE, &error),
        };
        let value = match setup(&config).await {
            Ok(value) => Arc::new(value),
            Err(error) => return fail(1, &error),
        };
        let shared = Arc::clone(&value);
        let served = serve(args, config, true, |config| build(config, shared));
        // Whatever happened, what was set up is taken down.
        let code = AssertUnwindSafe(served).catch_unwind().await;
        teardown(value).await;
        code.unwrap_or_else(|_| fail(1, &"the server panicked"))
    })
}

fn run_with(
    args: ServeArgs,
    migrate: bool,
    build: impl FnOnce(&Config) -> Result<Registry, BuildError>,
) -> ExitCode {
    in_runtime(|| async move {
        match args.configure() {
            Ok(config) => serve(args, config, migrate, build).await,
            Err(error) => fail(USAGE, &error),
        }
    })
}

fn in_runtime<F: Future<Output = ExitCode>>(run: impl FnOnce() -> F) -> ExitCode {
    crate::auth::install_crypto();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &error),
    };
    let code = runtime.block_on(run());
    // A thread that reads standard input would hold the process until a line comes.
    runtime.shutdown_background();
    code
}

fn refuse(error: &OpenError) -> ExitCode {
    fail(if error.is_usage() { USAGE } else { 1 }, error)
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("larder: {error}");
    ExitCode::from(code)
}
