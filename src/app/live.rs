//! What of the configuration can change while the server runs.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    config::{Config, ConfigError, ToolsConfig},
    dispatch::{DispatchLimits, Dispatcher},
    http::{Certificate, HttpOptions},
    telemetry,
};

/// The parts of a running server that take a new configuration: limits, the
/// bounds of answers, names and origins, the log level, the certificate.
pub struct Live {
    /// What is in force.
    config: Mutex<Config>,
    dispatcher: Arc<Dispatcher>,
    http: Arc<ArcSwap<HttpOptions>>,
    connections: Arc<AtomicUsize>,
    certificate: Option<Arc<Certificate>>,
}

/// What came of a new configuration: names of settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Those that are in force now.
    pub changed: Vec<String>,
    /// Those that are not, until the server starts anew.
    pub need_restart: Vec<String>,
}

impl Live {
    pub(super) fn new(
        config: &Config,
        dispatcher: Arc<Dispatcher>,
        certificate: Option<Arc<Certificate>>,
    ) -> Self {
        Self {
            config: Mutex::new(config.clone()),
            dispatcher,
            http: Arc::default(),
            connections: Arc::new(AtomicUsize::new(config.limits.connections)),
            certificate,
        }
    }

    /// The endpoint's options from now on.
    pub(super) fn http(&self, options: &HttpOptions) -> Arc<ArcSwap<HttpOptions>> {
        self.http.store(Arc::new(options.clone()));
        Arc::clone(&self.http)
    }

    pub(super) fn connections(&self) -> &Arc<AtomicUsize> {
        &self.connections
    }

    pub(super) fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    /// The files whose change is a reason to call [`Live::apply`].
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.certificate.iter().flat_map(|certificate| certificate.files());
        files.map(ToOwned::to_owned).collect()
    }

    /// Puts a new configuration in force, as far as that goes without a start:
    /// all of that, or nothing.
    ///
    /// # Errors
    /// Names the setting that cannot be used. Everything is as before then.
    pub fn apply(&self, new: &Config) -> Result<Reloaded, ConfigError> {
        new.check()?;
        let mut config = self.config.lock();
        let mut next = config.clone();
        next.limits.clone_from(&new.limits);
        next.log.level.clone_from(&new.log.level);
        // Which tools there are is settled at the start.
        next.tools = ToolsConfig { write: config.tools.write, ..new.tools.clone() };
        next.server.allowed_hosts.clone_from(&new.server.allowed_hosts);
        next.server.allowed_origins.clone_from(&new.server.allowed_origins);
        // What can fail comes first.
        let registry = self.dispatcher.registry();
        let output = super::access::checked_output(registry, &next)?;
        if let Some(certificate) = &self.certificate {
            certificate.reload()?;
        }
        registry.bound_output(output);
        telemetry::set_level(&next.log.level);
        self.connections.store(next.limits.connections, Ordering::Relaxed);
        self.dispatcher.caller_limits().set_bounds(next.limits.principals());
        self.dispatcher.set_limits(DispatchLimits { read_bytes: next.limits.read_bytes });
        let hosts = super::access::allowed_hosts(&next, next.public_url()?.as_ref());
        let (body_bytes, body_values) = (next.limits.body_bytes, next.limits.body_values);
        self.http.rcu(|options| HttpOptions {
            hosts: hosts.clone(),
            body_bytes,
            body_values,
            ..HttpOptions::clone(options)
        });
        let reloaded =
            Reloaded { changed: differing(&config, &next), need_restart: differing(&next, new) };
        *config = next;
        Ok(reloaded)
    }
}

/// The settings in which two configurations differ.
fn differing(one: &Config, other: &Config) -> Vec<String> {
    fn walk(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
        match (one, other) {
            (Value::Object(one), Value::Object(other)) => {
                let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
                for name in names {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    let of = |object: &serde_json::Map<_, _>| {
                        object.get(name).cloned().unwrap_or_default()
                    };
                    walk(&path, &of(one), &of(other), found);
                }
            }
            (one, other) if one != other => found.push(path.to_owned()),
            _ => {}
        }
    }
    let value = |config| serde_json::to_value(config).unwrap_or_default();
    let mut found = Vec::new();
    walk("", &value(one), &value(other), &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_one_by_one() {
        let mut other = Config::default();
        other.limits.window = 1;
        other.server.public_url = Some("https://a.example/mcp".into());
        let found = differing(&Config::default(), &other);
        assert_eq!(found, ["server.public_url", "limits.window"]);
        assert!(differing(&other, &other).is_empty());
    }
}
