//! `larder config`: looks at the configuration without serving.

use std::{process::ExitCode, sync::Arc};

use clap::{Args, Subcommand};

use super::{ServeArgs, USAGE, args::file, builtin, fail, in_runtime, refuse};
use crate::{
    app::{AccessSetup, App},
    clock::SystemClock,
    config::Config,
};

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Say whether the server could start with it: exit code 2 if not, 1 if
    /// something that it needs cannot be reached.
    Check {
        #[command(flatten)]
        file: FileArgs,
        /// Also ask the store, and the authorization servers for their
        /// metadata and keys.
        #[arg(long)]
        online: bool,
    },
    /// Print every setting that there is as JSON Schema.
    Schema,
    /// Print the settings that count, from file and environment, with secrets
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

/// Says whether the server could start, and with `online` whether what it
/// needs can be reached.
async fn check(args: ServeArgs, online: bool) -> ExitCode {
    let config = match args.configure() {
        Ok(config) => config,
        Err(error) => return fail(USAGE, &error),
    };
    let registry = match builtin::registry(&config, &args.places()) {
        Ok(registry) => registry,
        Err(error) => return fail(USAGE, &error),
    };
    // A store that is elsewhere is asked only where that is wanted.
    let app = if online {
        App::open(registry, config).await.map(Some).map_err(|error| refuse(&error))
    } else if config.redis().is_some() || config.has_objects() {
        let door = AccessSetup::new(registry, &config, Arc::new(SystemClock));
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
