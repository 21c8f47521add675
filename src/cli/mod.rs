//! The command line of the binary, and of servers built on the crate.

mod admin;
mod any;
mod args;
mod builtin;
mod client;
mod config;
mod confirm;
mod demo;
mod dev;
mod greeting;
mod health;
mod host_file;
mod host_upstreams;
mod hosts;
mod install;
mod migrate;
mod named;
mod new;
mod open_files;
mod owner_args;
mod parse;
mod reload;
mod serve;
mod sessions;
mod shell;
mod stats;
mod stored;
mod transfer;
mod upstreams;
mod wrap;

use std::{panic::AssertUnwindSafe, process::ExitCode, sync::Arc};

use clap::{CommandFactory, Parser, Subcommand};
use futures_util::FutureExt;
use larder_server::registry::{BuildError, Registry};

pub use self::args::ServeArgs;
use self::{
    builtin::{Server, Transport},
    client::{ClientCommand, exit_code},
    config::ConfigCommand,
    demo::DemoArgs,
    health::HealthArgs,
    hosts::HostCommand,
    migrate::MigrateArgs,
    named::NamedUpstreams,
    parse::{parse, parse_for},
    serve::serve,
};
use crate::{
    app::OpenError,
    config::Config,
    server::{self, About, Opened},
};

/// The exit code for wrong usage or configuration.
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
    /// Serve MCP over HTTP, or over standard input and output.
    Serve {
        #[command(flatten)]
        args: ServeArgs,
        /// First run the migrations that the store needs (redis.migrate).
        #[arg(long)]
        migrate: bool,
        #[command(flatten)]
        named: NamedUpstreams,
    },
    /// Show what Larder does with a large text: store it in a temporary server,
    /// search and page it, and count the bytes that a model would see.
    Demo(DemoArgs),
    /// Migrate the data in Redis to the layout of this version, once.
    Migrate(MigrateArgs),
    /// Write all stored resources to a file, to move or back them up.
    Export(transfer::ExportArgs),
    /// Store the resources of an export. Can be repeated: what is there is skipped.
    Import(transfer::ImportArgs),
    /// Show who stores how much, and delete what an owner has stored.
    #[command(subcommand)]
    Admin(admin::AdminCommand),
    /// Write the project of a server of your own, with a test and a Dockerfile.
    New(new::NewArgs),
    /// Check or print the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check the health of a server on this machine: exit code 1 if it fails.
    Health(HealthArgs),
    /// Show the MCP servers behind a running Larder: state, tools, and the bytes that
    /// were stored instead of sent.
    Upstreams(upstreams::UpstreamsArgs),
    /// Show how many bytes a running Larder has kept out of contexts, by tool.
    Stats(stats::StatsArgs),
    /// Print the completions of this command line for a shell.
    Completions(shell::CompletionsArgs),
    /// Print the man page, or write those of all commands into a directory.
    Man(shell::ManArgs),
    /// Make the servers of a host's configuration go through Larder: what is too large
    /// for an answer is then stored.
    Wrap(wrap::WrapArgs),
    #[command(flatten)]
    Client(ClientCommand),
    #[command(flatten)]
    Any(any::AnyCommand),
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
    match parse::<Cli>().command {
        Command::Serve { args, migrate, named } => {
            if let Err(problem) = named.check() {
                return fail(USAGE, &problem);
            }
            let workflow_locations = args.workflow_locations();
            let transport = if args.stdio { Transport::Stdio } else { Transport::Http };
            run_with(args, migrate, move |config| {
                builtin::registry(config, &workflow_locations, &named, transport)
            })
        }
        Command::Host(command) => command.run(&["serve"]),
        Command::Migrate(args) => in_runtime(|| async move {
            match migrate::run(&args).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail_to_open(&error),
            }
        }),
        Command::Demo(args) => in_runtime(|| async { exit_code(demo::run(args).await) }),
        Command::Export(args) => in_runtime(|| async { transfer::run_export(args).await }),
        Command::Import(args) => in_runtime(|| async { transfer::run_import(args).await }),
        Command::Admin(command) => in_runtime(|| async { exit_code(admin::run(command).await) }),
        Command::New(args) => new::run(&args),
        Command::Config(command) => config::run(command),
        Command::Health(args) => in_runtime(|| health::run(args)),
        Command::Upstreams(args) => in_runtime(|| async { exit_code(upstreams::run(args).await) }),
        Command::Stats(args) => in_runtime(|| async { exit_code(stats::run(args).await) }),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
        Command::Wrap(args) => wrap::run(&args).unwrap_or_else(|problem| fail(USAGE, &problem)),
        Command::Client(command) => client::run(command),
        Command::Any(command) => any::run(command),
    }
}

/// The main function of a server built on the crate: reads flags, environment
/// and configuration file, runs the migrations that the store needs, and serves
/// until a signal stops it. The server also has the commands `dev`, which runs
/// it in the MCP Inspector, and `install`, which adds it to a host's
/// configuration.
///
/// ```no_run
/// use larder::{Context, Registry, Tool};
///
/// /// Returns its text.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Echo {
///     /// The text.
///     text: String,
/// }
///
/// fn main() -> std::process::ExitCode {
///     let echo = Tool::new(|_: Context, args: Echo| async move { args.text });
///     larder::cli::run(|_| Registry::builder("echo").tool(echo).build())
/// }
/// ```
pub fn run(build: impl FnOnce(&Config) -> Result<Registry, BuildError>) -> ExitCode {
    let ServerCli { command, args } = parse::<ServerCli>();
    match command {
        Some(command) => command.run(&[]),
        None => run_with(args, true, |config| build(config).map(Server::from)),
    }
}

/// [`run`] with a value that is set up before the first request and torn down
/// after the last one, once each: connections, caches, a model in memory.
///
/// `teardown` runs even if the server fails, but not if `setup` failed. Handlers
/// get the value from [`Context::state`](larder_server::handler::Context::state).
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
    run_configured(None, Config::default(), async |args, config| {
        let value = match setup(&config).await {
            Ok(value) => Arc::new(value),
            Err(error) => return fail(1, &error),
        };

        let shared = Arc::clone(&value);
        let build = |config: &Config| build(config, shared).map(Server::from);
        serve_then(args, config, build, teardown(value)).await
    })
}

/// Reads the command line and the settings over those of the code, and serves unless a command is
/// given.
fn run_configured(
    about: Option<&About>,
    defaults: Config,
    serve: impl AsyncFnOnce(ServeArgs, Config) -> ExitCode,
) -> ExitCode {
    let ServerCli { command, mut args } = match about {
        Some(about) => parse_for(about),
        None => parse(),
    };
    if let Some(command) = command {
        return command.run(&[]);
    }

    args.defaults = defaults;
    in_runtime(|| async {
        match args.configure() {
            Ok(config) => serve(args, config).await,
            Err(error) => fail(USAGE, &error),
        }
    })
}

/// Serves, and then runs `teardown`.
async fn serve_then(
    args: ServeArgs,
    config: Config,
    build: impl FnOnce(&Config) -> Result<Server, BuildError>,
    teardown: impl Future<Output = ()>,
) -> ExitCode {
    let serving = serve(args, config, true, build);

    // A panic must not skip the teardown.
    let code = AssertUnwindSafe(serving).catch_unwind().await;

    teardown.await;
    code.unwrap_or_else(|_| fail(1, &"the server panicked"))
}

impl<S: Send + Sync + 'static> server::Server<S> {
    /// The main function: reads flags, environment and configuration file, runs the
    /// migrations that the store needs, and serves over HTTP, or with `--stdio` over standard
    /// input and output, until a signal stops it. The commands `dev` and `install` run it in
    /// the MCP Inspector and add it to a host's configuration.
    ///
    /// The settings of [`Server::config`](server::Server::config) hold unless the file, the
    /// environment or a flag sets them.
    pub fn run(mut self) -> ExitCode {
        let defaults = std::mem::take(&mut self.config);
        let about = About { name: self.about.name.clone(), version: self.about.version.clone() };
        run_configured(Some(&about), defaults, async |args, config| match self.open().await {
            Ok(Opened { registry, backend, close }) => {
                let build = |_: &Config| Ok(Server { backend, ..Server::from(registry?) });
                Box::pin(serve_then(args, config, build, close)).await
            }
            Err(error) => fail(1, &error),
        })
    }
}

fn run_with(
    args: ServeArgs,
    migrate: bool,
    build: impl FnOnce(&Config) -> Result<Server, BuildError>,
) -> ExitCode {
    in_runtime(|| async move {
        match args.configure() {
            Ok(config) => serve(args, config, migrate, build).await,
            Err(error) => fail(USAGE, &error),
        }
    })
}

fn in_runtime<F: Future<Output = ExitCode>>(run: impl FnOnce() -> F) -> ExitCode {
    larder_oauth::install_crypto();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &error),
    };

    let code = runtime.block_on(run());
    // Does not wait for the thread that reads standard input, which may block.
    runtime.shutdown_background();
    code
}

/// Reports why a server could not be opened.
fn fail_to_open(error: &OpenError) -> ExitCode {
    fail(if error.is_usage() { USAGE } else { 1 }, error)
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    client::complain(error);
    ExitCode::from(code)
}
