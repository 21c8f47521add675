//! [`Underlay`]: settings that code sets, put below those of the file and the environment.

use serde::Deserialize;
use toml::{
    Spanned, Table, Value,
    de::{DeArray, DeTable, DeValue},
};

use super::{Config, ConfigError};

/// The settings that differ from Larder's own defaults.
#[derive(Debug, Default)]
pub(super) struct Underlay {
    /// The settings as TOML.
    text: String,
}

impl Underlay {
    /// The settings in which a configuration differs from Larder's own.
    ///
    /// # Errors
    /// A setting cannot be written in TOML, or is not read as it is written: it would be lost.
    pub(super) fn of(config: &Config) -> Result<Self, ConfigError> {
        let own = Config::default();
        if *config == own {
            return Ok(Self::default());
        }

        let set = Table::try_from(config).map_err(ConfigError::unreadable)?;
        let own = Table::try_from(&own).map_err(ConfigError::unreadable)?;
        let settings = difference(set, &own);

        let read = Config::deserialize(Value::Table(settings.clone()));
        match read {
            Ok(read) if read == *config => {
                let text = toml::to_string(&settings).map_err(ConfigError::unreadable)?;
                Ok(Self { text })
            }
            Ok(_) => Err(ConfigError::unreadable(
                "a setting of the code unsets a default, which only a file can replace",
            )),
            Err(error) => Err(ConfigError::unreadable(format!("in code: {}", error.message()))),
        }
    }

    /// Adds the settings that are not set. A table is merged, and any other value is a whole.
    pub(super) fn put_under<'a>(&'a self, settings: &mut DeTable<'a>) {
        // The text was written by `of`, so it can be parsed.
        if let Ok(below) = DeTable::parse(&self.text) {
            merge(below.into_inner(), settings);
        }
    }
}

/// The members of a table that another one lacks or has with another value.
fn difference(set: Table, own: &Table) -> Table {
    let differing = set.into_iter().filter_map(|(key, value)| match (value, own.get(&key)) {
        (Value::Table(set), Some(Value::Table(own))) => {
            let inner = difference(set, own);
            (!inner.is_empty()).then_some((key, Value::Table(inner)))
        }
        (value, Some(own)) if value == *own => None,
        (value, _) => Some((key, value)),
    });
    differing.collect()
}

fn merge<'a>(below: DeTable<'a>, settings: &mut DeTable<'a>) {
    for (key, value) in below {
        let key = Spanned::new(NOWHERE, key.into_inner());
        match (value.into_inner(), settings.get_mut(&key).map(Spanned::get_mut)) {
            (DeValue::Table(below), Some(DeValue::Table(above))) => merge(below, above),
            (_, Some(_)) => {}
            (value, None) => {
                settings.insert(key, placed_nowhere(value));
            }
        }
    }
}

/// The position of what is in no file, behind that of each variable.
const NOWHERE: std::ops::Range<usize> = usize::MAX - 1..usize::MAX;

/// The value without its position in the text of the underlay.
fn placed_nowhere(value: DeValue<'_>) -> Spanned<DeValue<'_>> {
    let value = match value {
        DeValue::Table(table) => {
            let members = table.into_iter().map(|(key, value)| {
                let key = Spanned::new(NOWHERE, key.into_inner());
                (key, placed_nowhere(value.into_inner()))
            });
            DeValue::Table(members.collect())
        }
        DeValue::Array(items) => {
            let mut placed = DeArray::new();
            items.into_iter().for_each(|item| placed.push(placed_nowhere(item.into_inner())));
            DeValue::Array(placed)
        }
        other => other,
    };
    Spanned::new(NOWHERE, value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::{AuthMode, StoreConfig, TokenConfig};

    #[test]
    fn only_what_differs_is_put_below() {
        assert!(Underlay::of(&Config::default()).unwrap().text.is_empty());

        let mut config = Config::default();
        config.log.level = "debug".into();
        config.store.default_ttl = 60;
        let underlay = Underlay::of(&config).unwrap();
        let set: Table = toml::from_str(&underlay.text).unwrap();
        assert_eq!(set.keys().collect::<Vec<_>>(), ["log", "store"]);
        assert_eq!(set["store"].as_table().unwrap().len(), 1);
    }

    #[test]
    fn each_kind_of_setting_can_be_below() {
        let mut config = Config::default();
        config.server.json_response = true;
        config.server.allowed_hosts = vec!["a.example".into()];
        config.server.listen = "[::1]:9".parse().unwrap();
        config.store = StoreConfig { url: "file:///x".into(), ..StoreConfig::default() };
        config.sessions.url = Some("redis://:p\"w@h".into());
        config.auth.mode = AuthMode::Static;
        config.auth.tokens = vec![TokenConfig {
            name: "a".into(),
            sha256: "f".repeat(64),
            ..TokenConfig::default()
        }];
        config.auth.scopes.insert("delete_*".into(), vec!["w".into()]);
        config.traces.sample = 0.25;

        let underlay = Underlay::of(&config).unwrap();
        let mut settings = DeTable::new();
        underlay.put_under(&mut settings);
        let deserializer = toml::Deserializer::from(Spanned::new(0..0, settings));
        assert_eq!(Config::deserialize(deserializer).unwrap(), config);
    }
}
