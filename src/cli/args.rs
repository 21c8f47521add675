//! The flags of every server's command line.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};
use larder_runtime::environment;

use crate::config::{Config, ConfigError, ServerConfig, WorkflowLocations, mask_url};

/// Parses a configuration file's name. Unlike clap's own parser, it accepts an
/// empty one, as an empty `LARDER_CONFIG` counts as unset.
pub(super) fn file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Parses an address to listen on. A port alone is one of this machine's own address.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }

    let text = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    text.parse().map_err(|_| {
        "write an address with a port, such as 127.0.0.1:8001, or a port alone".to_owned()
    })
}

/// The flags of every server's command line.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Address and port to listen on (server.listen); port 0 picks a free one.
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<SocketAddr>,
    /// The store of resources (store.url): memory:, redis://…, file:///… or
    /// s3://….
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    pub config: Option<PathBuf>,
    /// The newest protocol version to offer (server.max_version).
    #[arg(long, value_name = "VERSION")]
    pub max_version: Option<String>,
    /// Serve over standard input and output instead of HTTP.
    #[arg(long)]
    pub stdio: bool,
    /// Allow an address that others can reach, without authentication.
    #[arg(long)]
    pub insecure_no_auth: bool,
    /// The settings that code sets, over which all others are put.
    #[arg(skip)]
    pub(super) defaults: Config,
}

impl ServeArgs {
    /// The configuration file. An empty name counts as none.
    pub(super) fn file(&self) -> Option<&Path> {
        self.config.as_deref().filter(|file| !file.as_os_str().is_empty())
    }

    /// The effective configuration: flags override the environment, which
    /// overrides the file, which overrides the code.
    pub(super) fn configure(&self) -> Result<Config, ConfigError> {
        let mut config = Config::load_over(&self.defaults, self.file(), |config| {
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
            // Nothing listens, so the address is not checked.
            config.server.listen = ServerConfig::default().listen;
        }

        Ok(config)
    }

    /// The flags that `larder migrate` needs to find the store of this command line.
    pub(super) fn migration_flags(&self) -> String {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"/:._-@".contains(&b);
        let quoted = |text: &str| {
            if text.bytes().all(is_plain) {
                text.to_owned()
            } else {
                format!("'{}'", text.replace('\'', r"'\''"))
            }
        };

        // A variable of the environment holds for the next command, too.
        let is_in_environment = environment::variable_os("LARDER_CONFIG").as_deref()
            == self.file().map(Path::as_os_str);
        let file = self.file().filter(|_| !is_in_environment);
        let file = file.map(|file| format!(" --config {}", quoted(&file.display().to_string())));
        // A password stays where it was typed.
        let store = self.store.as_deref().map(|url| {
            let is_secret = mask_url(url) != url;
            let url = if is_secret { "URL".to_owned() } else { quoted(url) };
            format!(" --store {url}")
        });
        file.into_iter().chain(store).collect()
    }

    /// The positions of workflows in the configuration file, for error messages.
    pub(super) fn workflow_locations(&self) -> WorkflowLocations {
        self.file().map(WorkflowLocations::read).unwrap_or_default()
    }

    /// The command line that starts this program over standard input and
    /// output. `subcommand` comes before the flags.
    ///
    /// # Errors
    /// When the program's path or the directory of the configuration file is
    /// unknown.
    pub(super) fn stdio_command_line(&self, subcommand: &[&str]) -> Result<Vec<OsString>, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("The path of this program is unknown: {error}"))?;

        let mut line = vec![program.into_os_string()];
        line.extend(subcommand.iter().map(OsString::from));
        line.push("--stdio".into());

        let mut flag = |name: &str, value: OsString| line.extend([name.into(), value]);
        if let Some(config) = self.file() {
            // Hosts start the server in another directory.
            let config = std::path::absolute(config)
                .map_err(|error| format!("--config {}: {error}", config.display()))?;
            flag("--config", config.into_os_string());
        }
        if let Some(store) = &self.store {
            flag("--store", store.into());
        }
        if let Some(version) = &self.max_version {
            flag("--max-version", version.into());
        }

        Ok(line)
    }
}
