//! `larder config`: checks or prints the configuration.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{
    ServeArgs, USAGE,
    args::file,
    builtin,
    client::{exit_code, print},
    fail, fail_to_open, in_runtime,
    named::NamedUpstreams,
};
use crate::{
    app::App,
    config::{Config, Sources},
};

/// The outcome of a check that found nothing.
const VALID: &str = "The configuration is valid.";

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Check that the server could start with it: exit code 2 if not, 1 if
    /// something that it needs cannot be reached.
    Check {
        #[command(flatten)]
        file: FileArgs,
        /// Also connect to the store, and fetch the metadata and keys of the
        /// authorization servers.
        #[arg(long)]
        online: bool,
    },
    /// Print all settings as JSON Schema.
    Schema,
    /// Print the effective configuration, secrets masked, and where each
    /// setting comes from: the line of the file, or the variable.
    Show {
        #[command(flatten)]
        file: FileArgs,
    },
}

#[derive(Args)]
pub(super) struct FileArgs {
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<std::path::PathBuf>,
}

impl From<FileArgs> for ServeArgs {
    fn from(FileArgs { config }: FileArgs) -> Self {
        Self { config, ..Self::default() }
    }
}

/// Prints a text, of which a pipe may read the beginning only.
fn printed(text: &str) -> ExitCode {
    exit_code(print(text.as_bytes()))
}

pub(super) fn run(command: ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check { file, online } => in_runtime(|| check(file.into(), online)),
        ConfigCommand::Schema => printed(&format!("{:#}\n", Config::schema())),
        ConfigCommand::Show { file } => {
            let path = file.config.clone();
            let shown = ServeArgs::from(file)
                .configure()
                .and_then(|config| Ok(Sources::of(path.as_deref())?.noted(&config.show()?)));
            match shown {
                Ok(shown) => printed(&shown),
                Err(error) => fail(USAGE, &error),
            }
        }
    }
}

/// Checks that the server could start, and with `online` that what it needs can
/// be reached.
async fn check(args: ServeArgs, online: bool) -> ExitCode {
    let config = match args.configure() {
        Ok(config) => config,
        Err(error) => return fail(USAGE, &error),
    };

    let locations = args.workflow_locations();
    let registry = match builtin::registry(
        &config,
        &locations,
        &NamedUpstreams::default(),
        builtin::Transport::Http,
    ) {
        Ok(server) => server.registry,
        Err(error) => return fail(USAGE, &error),
    };
    for warning in registry.warnings() {
        eprintln!("larder: warning: {warning}");
    }

    if online {
        return match App::open(registry, config).await {
            Ok(app) => check_online(&app).await,
            Err(error) => fail_to_open(&error),
        };
    }

    match App::check(registry, config) {
        Ok(()) => {
            println!("{VALID}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(USAGE, &error),
    }
}

/// Checks the services that an opened server needs.
async fn check_online(app: &App) -> ExitCode {
    println!("{VALID}");
    let mut code = ExitCode::SUCCESS;

    for (issuer, result) in app.authenticator().check().await {
        match result {
            Ok(summary) => println!("{issuer}: {summary}"),
            Err(problem) => code = fail(1, &format_args!("auth.issuers: {issuer}: {problem}")),
        }
    }

    if let Some(login) = app.login() {
        match login.check_provider().await {
            Ok(summary) => println!("auth.login: {summary}"),
            Err(problem) => code = fail(1, &format_args!("auth.login: {problem}")),
        }
    }

    let Some(console) = app.console() else { return code };
    match console.check_oidc().await {
        Some(Ok(summary)) => println!("console.oidc: {summary}"),
        Some(Err(problem)) => code = fail(1, &format_args!("console.oidc: {problem}")),
        None => {}
    }

    code
}
