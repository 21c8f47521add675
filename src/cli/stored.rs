//! The store of the configuration, for commands that work on it without a server.

use std::path::{Path, PathBuf};

use clap::Args;
use larder_store::{session::RedisSessions, store::Store};

use super::{ServeArgs, args::file, client::ClientError};
use crate::{
    app::{Base, CallPlace, OpenError, Place},
    config::Config,
    telemetry,
};

/// Which store a command works on.
#[derive(Debug, Clone, Args)]
pub(super) struct StoreArgs {
    /// The store of resources (store.url): redis://…, file:///… or s3://….
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<PathBuf>,
}

impl StoreArgs {
    /// Opens a store that exists. A directory that is missing is rather a mistake in its name than an
    /// empty store.
    ///
    /// # Errors
    /// As [`open`](Self::open); the directory is missing.
    pub(super) async fn open_existing(self) -> Result<Store, ClientError> {
        let url = self.configuration()?.store.url;
        if let Some(path) = url.strip_prefix("file://")
            && !Path::new(path).is_dir()
        {
            return Err(ClientError::Usage(format!("{url} is no directory.")));
        }
        self.open().await
    }

    /// Opens the store.
    ///
    /// # Errors
    /// The configuration is wrong, the store is in the memory of a server, or it is not available.
    pub(super) async fn open(self) -> Result<Store, ClientError> {
        let base = Base::system(self.configuration()?);
        let place = Place::open(&base).await;
        match place.map_err(|error| not_opened(&error))? {
            Place::Memory => Err(ClientError::Usage(
                "store.url is memory: such resources are in the process of the server only, and end with it. Give --store redis://…, file:///… or s3://….".into(),
            )),
            place => Ok(place.store(&base)),
        }
    }

    /// Opens the sessions: those of `sessions.url`, or of the store.
    ///
    /// # Errors
    /// The configuration is wrong, sessions are in the memory of a server, or Redis is not
    /// available.
    pub(super) async fn open_sessions(self) -> Result<RedisSessions, ClientError> {
        let base = Base::system(self.configuration()?);
        let place = CallPlace::open(&base, &Place::Memory).await;
        match place.map_err(|error| not_opened(&error))? {
            CallPlace::Memory => Err(ClientError::Usage(
                "Sessions are in the process of the server only, and end with it. Give --store redis://…, or set sessions.url.".into(),
            )),
            CallPlace::Redis { instance, .. } => {
                Ok(RedisSessions::new(instance, base.random, base.config.sessions.limits()))
            }
        }
    }

    fn configuration(&self) -> Result<Config, ClientError> {
        telemetry::init(&telemetry::Options::default());
        let Self { store, config } = self.clone();
        let serve = ServeArgs { store, config, ..ServeArgs::default() };
        serve.configure().map_err(|error| ClientError::Usage(error.to_string()))
    }
}

fn not_opened(error: &OpenError) -> ClientError {
    let problem = error.to_string();
    if error.is_usage() { ClientError::Usage(problem) } else { ClientError::Failed(problem) }
}
