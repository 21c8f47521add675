//! `larder config`: checks or prints the configuration.

use std::{process::ExitCode, sync::Arc};

use clap::{Args, Subcommand};
use larder_runtime::clock::SystemClock;

use super::{
    ServeArgs, USAGE, args::file, builtin, fail, fail_to_open, in_runtime, named::NamedUpstreams,
};
use crate::{
    app::{AccessSetup, App},
    config::Config,
};

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
    /// Print the effective configuration, from file and environment, secrets
    /// masked.
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

pub(super) fn run(command: ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check { file, online } => in_runtime(|| check(file.into(), online)),
        ConfigCommand::Schema => {
            println!("{:#}", Config::schema());
            ExitCode::SUCCESS
        }
        ConfigCommand::Show { file } => {
            let shown = ServeArgs::from(file).configure().and_then(|config| config.show());
            match shown {
                Ok(shown) => {
                    print!("{shown}");
                    ExitCode::SUCCESS
                }
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
    let registry = match builtin::registry(&config, &locations, &NamedUpstreams::default()) {
        Ok(server) => server.registry,
        Err(error) => return fail(USAGE, &error),
    };

    // An offline check contacts no other service.
    let app = if online {
        App::open(registry, config).await.map(Some).map_err(|error| fail_to_open(&error))
    } else if config.redis().is_some() || config.has_objects() {
        let access = AccessSetup::new(registry, &config, None, Arc::new(SystemClock));
        let checked = access.and_then(|access| access.check_http(&config));
        checked.map(|()| None).map_err(|error| fail(USAGE, &error))
    } else {
        App::new(registry, config).map(Some).map_err(|error| fail(USAGE, &error))
    };

    let app = match app {
        Ok(app) => app,
        Err(code) => return code,
    };

    println!("The configuration is valid.");
    let mut code = ExitCode::SUCCESS;
    if let Some(app) = app.filter(|_| online) {
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

        match app.check_console().await {
            Some(Ok(summary)) => println!("console.oidc: {summary}"),
            Some(Err(problem)) => code = fail(1, &format_args!("console.oidc: {problem}")),
            None => {}
        }
    }

    code
}
