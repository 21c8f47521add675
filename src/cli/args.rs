//! What every server's command line takes.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};

use crate::config::{Config, ConfigError, Places, ServerConfig};

/// How the name of a configuration file is read; clap itself takes no empty one.
pub(super) fn file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// What every server's command line takes.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Address and port to listen on (server.listen); port 0 takes a free one.
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Where resources lie (store.url): memory:, redis://…, file:///… or
    /// s3://….
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
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

impl ServeArgs {
    /// The configuration file, if there is one: as with all variables, an empty
    /// one says nothing.
    pub(super) fn file(&self) -> Option<&Path> {
        self.config.as_deref().filter(|file| !file.as_os_str().is_empty())
    }

    /// The configuration that counts: flags stand over environment and file.
    pub(super) fn configure(&self) -> Result<Config, ConfigError> {
        let mut config = Config::load(self.file(), |config| {
            if let Some(listen) = self.listen {
                config.server.listen = listen;
            }
            if let Some(url) = &self.store {
                config.store.url.clone_from(url);
            }
            if let Some(version) = &self.max_version {
                config.server.max_version.clone_from(version);
            }
            config.server.insecure_no_auth |= self.insecure_no_auth;
        })?;
        if self.stdio {
            // Nothing listens.
            config.server.listen = ServerConfig::default().listen;
        }
        Ok(config)
    }

    /// Where the parts of the configuration file stand, for faults in them.
    pub(super) fn places(&self) -> Places {
        self.file().map(Places::read).unwrap_or_default()
    }
}
