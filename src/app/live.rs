//! Reloads the settings that can change while the server runs.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use larder_gateway::{Settings, Upstreams};
use larder_oauth::Authenticator;
use larder_server::dispatch::Dispatcher;
use parking_lot::Mutex;
use serde_json::Value;

use super::{access, http::LiveHttp, limit_process};
use crate::config::{AuthMode, Config, ConfigError, LimitsConfig, ToolsConfig, UpstreamConfig};

/// The upstreams, and the settings that they get.
type ChangedUpstreams<'a> = (&'a Arc<Upstreams>, Vec<Settings>);

/// The parts of a running server that accept a new configuration: limits, result sizes,
/// static tokens, hosts and origins, the log level, the certificate and the upstreams.
pub struct Live {
    /// The effective configuration.
    config: Mutex<Config>,
    dispatcher: Arc<Dispatcher>,
    authenticator: Arc<Authenticator>,
    http: Arc<LiveHttp>,
    upstreams: OnceLock<Arc<Upstreams>>,
}

/// The settings that a reload changed, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Settings that took effect.
    pub changed: Vec<String>,
    /// Settings that need a restart.
    pub need_restart: Vec<String>,
}

impl Live {
    pub(super) fn new(
        config: &Config,
        dispatcher: &Arc<Dispatcher>,
        authenticator: &Arc<Authenticator>,
        http: &Arc<LiveHttp>,
    ) -> Self {
        Self {
            config: Mutex::new(config.clone()),
            dispatcher: Arc::clone(dispatcher),
            authenticator: Arc::clone(authenticator),
            http: Arc::clone(http),
            upstreams: OnceLock::new(),
        }
    }

    /// Lets `[[upstreams]]` change, too. The registry has their providers as
    /// [exchangeable](larder_server::registry::Builder::exchangeable) ones.
    pub fn manage(&self, upstreams: Arc<Upstreams>) {
        // The upstreams are set once, at startup.
        let _ = self.upstreams.set(upstreams);
    }

    /// The upstreams of a new configuration, if they differ and can change.
    fn changed_upstreams(&self, new: &Config) -> Result<Option<ChangedUpstreams<'_>>, ConfigError> {
        let Some(upstreams) = self.upstreams.get() else { return Ok(None) };

        let settings = new.upstreams.iter().map(UpstreamConfig::settings);
        let settings = settings.collect::<Result<Vec<_>, _>>()?;

        // Files of headers and secrets may have changed, too.
        if !upstreams.differ_from(&settings) {
            return Ok(None);
        }

        let problem = |problem| ConfigError::new("upstreams.name", problem);
        upstreams.check(&settings).map_err(problem)?;
        Ok(Some((upstreams, settings)))
    }

    /// The files whose changes require [`Live::apply`].
    pub fn files(&self) -> Vec<PathBuf> {
        let config = self.config.lock();
        let headers = config.upstreams.iter().flat_map(|upstream| &upstream.header_files);
        let headers = headers.map(|(_, file)| file.clone());

        let exchanges = config.upstreams.iter().filter_map(|upstream| upstream.exchange.as_ref());
        let secrets = exchanges.filter_map(|exchange| exchange.client_secret_file.clone());

        self.http.files().into_iter().chain(headers).chain(secrets).collect()
    }

    /// Applies a new configuration where no restart is needed. It applies all of that or
    /// nothing.
    ///
    /// # Errors
    /// Names the invalid setting. Nothing has changed then.
    pub fn apply(&self, new: &Config) -> Result<Reloaded, ConfigError> {
        new.check()?;
        let mut config = self.config.lock();
        let mut next = reloaded(&config, new);

        // Steps that can fail come first.
        let registry = self.dispatcher.registry();
        let output = access::checked_output(registry, &next)?;
        let public_url = next.public_url()?;

        // Static tokens alone are reloaded; the options of other modes may read secret files.
        let auth = (next.auth.mode == AuthMode::Static)
            .then(|| next.auth.options(public_url.as_ref()))
            .transpose()?;

        let upstreams = self.changed_upstreams(new)?;
        self.http.reload_certificate()?;

        let mut is_exchanged = false;
        if let Some((upstreams, settings)) = upstreams {
            upstreams.replace(settings);
            registry.exchange_providers(upstreams.providers(), config.grace());
            is_exchanged = true;
        }

        if let Some(upstreams) = self.upstreams.get() {
            upstreams.limit_messages(next.limits.upstream_bytes);
            next.upstreams.clone_from(&new.upstreams);
        }

        if let Some(auth) = auth {
            self.authenticator.reload(auth);
        }

        registry.set_output_rules(output);
        limit_process(&next);
        #[cfg(feature = "cli")]
        crate::telemetry::set_level(&next.log.filter());
        self.dispatcher.caller_limits().set_limits(next.limits.admission());
        self.dispatcher.set_limits(next.limits.per_call());
        self.dispatcher.traffic().access().set_every(next.log.access);
        self.http.apply(&next, public_url.as_ref());

        let mut changed = differing(&config, &next);
        if is_exchanged && config.upstreams == next.upstreams {
            changed.push("upstreams.header_files".to_owned());
        }

        let reloaded = Reloaded { changed, need_restart: differing(&next, new) };
        *config = next;
        Ok(reloaded)
    }
}

/// The settings of `new` that can change while the server runs, upstreams aside, and the others
/// of `current`.
fn reloaded(current: &Config, new: &Config) -> Config {
    let mut next = current.clone();

    // Timeouts of connections are fixed at startup.
    let LimitsConfig { head_timeout, idle_timeout, write_timeout, .. } = current.limits;
    next.limits = LimitsConfig { head_timeout, idle_timeout, write_timeout, ..new.limits.clone() };

    if (current.auth.mode, new.auth.mode) == (AuthMode::Static, AuthMode::Static) {
        next.auth.tokens.clone_from(&new.auth.tokens);
    }

    next.compute.clone_from(&new.compute);
    next.store.cache_bytes = new.store.cache_bytes;
    next.log.level.clone_from(&new.log.level);
    next.log.access = new.log.access;

    // The set of tools is fixed at startup.
    let ToolsConfig { write, ref set, projections, listing, ref catalogue_cache, .. } =
        current.tools;
    next.tools = ToolsConfig {
        write,
        set: set.clone(),
        projections,
        listing,
        catalogue_cache: catalogue_cache.clone(),
        ..new.tools.clone()
    };

    next.server.allowed_hosts.clone_from(&new.server.allowed_hosts);
    next.server.allowed_origins.clone_from(&new.server.allowed_origins);
    next
}

/// The settings in which two configurations differ.
fn differing(left: &Config, right: &Config) -> Vec<String> {
    fn walk(path: &str, left: &Value, right: &Value, paths: &mut Vec<String>) {
        match (left, right) {
            (Value::Object(left), Value::Object(right)) => {
                let names =
                    left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));

                for name in names {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    let member = |object: &serde_json::Map<_, _>| {
                        object.get(name).cloned().unwrap_or_default()
                    };

                    walk(&path, &member(left), &member(right), paths);
                }
            }
            (left, right) if left != right => paths.push(path.to_owned()),
            _ => {}
        }
    }

    let value = |config| serde_json::to_value(config).unwrap_or_default();
    let mut paths = Vec::new();
    walk("", &value(left), &value(right), &mut paths);
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_settings_are_named_by_path() {
        let mut right = Config::default();
        right.limits.window = 1;
        right.server.public_url = Some("https://a.example/mcp".into());

        let paths = differing(&Config::default(), &right);
        assert_eq!(paths, ["server.public_url", "limits.window"]);
        assert!(differing(&right, &right).is_empty());
    }
}
