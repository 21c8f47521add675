//! The command line: of the binary, and of servers built on the crate.

mod dev;
mod hosts;
mod install;
mod migrate;

use std::{net::SocketAddr, panic::AssertUnwindSafe, path::PathBuf, process::ExitCode, sync::Arc};

use clap::{Args, Parser, Subcommand};
use futures_util::FutureExt;
use tokio::net::TcpListener;

use self::hosts::HostCommand;
use crate::{
    app::{App, Door, OpenError},
    clock::SystemClock,
    config::{Config, Places},
    registry::{BuildError, Registry},
    shutdown, telemetry,
    tools::{self, ToolOptions},
    workflow,
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
    /// Bring the layout of what the store holds up to this version, once.
    Migrate(MigrateArgs),
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(flatten)]
    Host(HostCommand),
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Say whether the server could start with it: exit code 2 if not, 1 if
    /// something that it needs cannot be reached.
    Check {
        /// A configuration file in TOML.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Also ask the store, and the authorization servers for their
        /// metadata and keys.
        #[arg(long)]
        online: bool,
    },
}

/// What every server's command line takes.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Address and port to listen on (server.listen); port 0 takes a free one.
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Where resources lie (store.url): memory: or redis://….
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The newest protocol version to speak (server.max_version).
    #[arg(long, value_name = "VERSION")]
    pub max_version: Option<String>,
    /// Speak over standard input and output instead of HTTP.
    #[arg(long)]
    pub stdio: bool,
    /// Listen on an address that others can reach, without asking who they are.
    #[arg(long)]
    pub insecure_no_auth: bool,
}

#[derive(Debug, Args)]
struct MigrateArgs {
    /// Where resources lie (store.url).
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only say what there is.
    #[arg(long)]
    status: bool,
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
            let places = places(&args);
            run_with(args, migrate, move |config| registry(config, &places))
        }
        Command::Host(command) => command.run(&["serve"]),
        Command::Migrate(args) => in_runtime(|| async move {
            match migrate::run(&args).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => refuse(&error),
            }
        }),
        Command::Config(ConfigCommand::Check { config, online }) => {
            let args = ServeArgs { config, ..ServeArgs::default() };
            let places = places(&args);
            in_runtime(|| check(args, online, |config| registry(config, &places)))
        }
    }
}

/// Where the parts of the configuration file stand, for faults in them.
fn places(args: &ServeArgs) -> Places {
    args.config.as_deref().map(Places::of).unwrap_or_default()
}

/// What the binary itself offers.
fn registry(config: &Config, places: &Places) -> Result<Registry, BuildError> {
    let mut builder = Registry::builder("larder")
        .instructions(
            "Keeps large texts, JSON and files out of the conversation. Store one with create_resource; read it in parts with read_resource, find lines in it with search_resource. Resources expire.",
        )
        .with(tools::reading(ToolOptions::default()));
    if config.tools.write {
        builder = builder.with(tools::writing());
    }
    for workflow in config.workflows.clone() {
        let places = places.clone();
        builder = builder.with(workflow::prompt_showing(workflow, move |p| places.show(p)));
    }
    builder.build()
}

/// The main of a server of one's own: reads flags, configuration and
/// environment, and serves until it is told to stop. Where its store needs
/// migrations, it runs them first. The server has the commands `dev`, which
/// shows it in the MCP Inspector, and `install`, which adds it to a host's
/// configuration.
///
/// ```no_run
/// use larder::registry::{Context, Registry, Tool};
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
/// did. Handlers reach the value by [`Context::state`](crate::registry::Context::state).
///
/// ```no_run
/// use std::{convert::Infallible, sync::Arc};
/// use larder::registry::{Context, Registry, Tool};
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
        let config = match configure(&args) {
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
        match configure(&args) {
            Ok(config) => serve(args, config, migrate, build).await,
            Err(error) => fail(USAGE, &error),
        }
    })
}

fn in_runtime<F: Future<Output = ExitCode>>(run: impl FnOnce() -> F) -> ExitCode {
    telemetry::init();
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

/// Says whether the server could start, and with `online` whether what it
/// needs can be reached.
async fn check(
    args: ServeArgs,
    online: bool,
    build: impl FnOnce(&Config) -> Result<Registry, BuildError>,
) -> ExitCode {
    let (config, registry) = match prepare(&args, build) {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    // A store that is elsewhere is asked only where that is wanted.
    let app = if online {
        App::open(registry, config).await.map(Some).map_err(|error| refuse(&error))
    } else if config.redis().is_some() {
        let door = Door::of(registry, &config, Arc::new(SystemClock));
        door.map(|_| None).map_err(|error| fail(USAGE, &error))
    } else {
        App::new(registry, config).map(Some).map_err(|error| fail(USAGE, &error))
    };
    let app = match app {
        Ok(app) => app,
        Err(code) => return code,
    };
    println!("The configuration can be used.");
    let mut code = ExitCode::SUCCESS;
    if let Some(app) = app.filter(|_| online) {
        for (issuer, found) in app.authenticator().check().await {
            match found {
                Ok(found) => println!("{issuer}: {found}"),
                Err(problem) => code = fail(1, &format_args!("auth.issuers: {issuer}: {problem}")),
            }
        }
    }
    code
}

/// The configuration that counts, and what is to be offered with it.
fn prepare(
    args: &ServeArgs,
    build: impl FnOnce(&Config) -> Result<Registry, BuildError>,
) -> Result<(Config, Registry), ExitCode> {
    let config = configure(args).map_err(|error| fail(USAGE, &error))?;
    let registry = build(&config).map_err(|error| fail(USAGE, &error))?;
    Ok((config, registry))
}

async fn serve(
    args: ServeArgs,
    mut config: Config,
    migrate: bool,
    build: impl FnOnce(&Config) -> Result<Registry, BuildError>,
) -> ExitCode {
    let registry = match build(&config) {
        Ok(registry) => registry,
        Err(error) => return fail(USAGE, &error),
    };
    config.redis.migrate |= migrate;
    let (listen, path) = (config.server.listen, config.server.path.clone());
    let app = match App::open(registry, config).await {
        Ok(app) => app,
        Err(error) => return refuse(&error),
    };
    let stop = match shutdown::signalled() {
        Ok(stop) => stop,
        Err(error) => return fail(1, &error),
    };
    if args.stdio {
        return match app.serve_stdio(stop).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(1, &error),
        };
    }
    let bound = TcpListener::bind(listen).await.and_then(|l| l.local_addr().map(|a| (l, a)));
    let (listener, address) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            return fail(USAGE, &format!("server.listen: {listen} cannot be used: {error}"));
        }
    };
    eprintln!("larder listening on http://{address}{path}");
    match app.serve(listener, stop).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

/// Flags stand over environment and file.
fn configure(args: &ServeArgs) -> Result<Config, crate::config::ConfigError> {
    let mut config = Config::load(args.config.as_deref(), |config| {
        if let Some(listen) = args.listen {
            config.server.listen = listen;
        }
        if let Some(url) = &args.store {
            config.store.url.clone_from(url);
        }
        if let Some(version) = &args.max_version {
            config.server.max_version.clone_from(version);
        }
        config.server.insecure_no_auth |= args.insecure_no_auth;
    })?;
    if args.stdio {
        // Nothing listens.
        config.server.listen = crate::config::ServerConfig::default().listen;
    }
    Ok(config)
}

fn refuse(error: &OpenError) -> ExitCode {
    fail(if error.is_usage() { USAGE } else { 1 }, error)
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("larder: {error}");
    ExitCode::from(code)
}
