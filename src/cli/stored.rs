//! The store of the configuration, for commands that work on it without a server.

use std::path::PathBuf;

use clap::Args;

use super::{ServeArgs, args::file, client::ClientError};
use crate::{app, store::Store, telemetry};

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
    /// Opens the store.
    ///
    /// # Errors
    /// The configuration is wrong, the store is in the memory of a server, or it is not available.
    pub(super) async fn open(self) -> Result<Store, ClientError> {
        telemetry::init(&telemetry::Options::default());
        let Self { store, config } = self;
        let serve = ServeArgs { store, config, ..ServeArgs::default() };
        let config = serve.configure().map_err(|error| ClientError::Usage(error.to_string()))?;
        if config.store.url.starts_with("memory:") {
            return Err(ClientError::Usage(
                "store.url is memory: such resources are in the process of the server only, and end with it. Give --store redis://…, file:///… or s3://….".into(),
            ));
        }
        app::open_alone(&config).await.map_err(|error| {
            let problem = error.to_string();
            if error.is_usage() {
                ClientError::Usage(problem)
            } else {
                ClientError::Failed(problem)
            }
        })
    }
}
