//! The place where each setting comes from, for `larder config show`.

use std::{collections::BTreeMap, path::Path};

use larder_runtime::environment;
use toml::de::{DeTable, DeValue};

use super::{ConfigError, load::read, variables::Variables};

/// The places of the settings that the file or the environment sets, by their paths, such as
/// `store.url`. A list is one setting.
#[derive(Debug, Default)]
pub(crate) struct Sources(BTreeMap<String, String>);

impl Sources {
    /// The places in this file and in the environment of the process.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn of(file: Option<&Path>) -> Result<Self, ConfigError> {
        let text = file.map_or(Ok(String::new()), read)?;
        let document =
            DeTable::parse(&text).map_err(|error| ConfigError::unreadable(error.message()))?;

        let mut variables = Variables::of(environment::variables().collect(), text.len());
        let mut found = Vec::new();
        {
            let mut settings = document;
            variables.put_into(settings.get_mut());
            walk("", settings.get_ref(), &mut found);
        }

        let mut sources = BTreeMap::new();
        for (path, position) in found {
            let place = match (text.get(..position), variables.at(position)) {
                (_, Some(variable)) => variable.name().to_owned(),
                (Some(before), None) => {
                    let line = before.matches('\n').count() + 1;
                    file.map_or_else(String::new, |file| format!("{}:{line}", file.display()))
                }
                (None, None) => continue,
            };
            sources.insert(path, place);
        }
        Ok(Self(sources))
    }

    /// The settings as TOML, each with a comment that says where it comes from. Those without one
    /// have their default.
    pub(crate) fn noted(&self, shown: &str) -> String {
        let mut noted = String::from("# A setting without a comment has its default.\n\n");
        let mut section = String::new();
        let mut last_list = String::new();
        // How the text ends within whose lines we are.
        let mut text_end: Option<&str> = None;

        for line in shown.lines() {
            let trimmed = line.trim();
            if let Some(end) = text_end {
                text_end = text_end.filter(|_| !trimmed.ends_with(end));
            } else if let Some(name) = trimmed.strip_prefix("[[").and_then(|t| t.strip_suffix("]]"))
            {
                // The tables of a list come from one place.
                section = path_of(name).unwrap_or_else(|| name.to_owned());
                if section != last_list {
                    if let Some(place) = self.0.get(&section) {
                        noted += &format!("# {place}\n");
                    }
                    section.clone_into(&mut last_list);
                }
            } else if let Some(name) = trimmed.strip_prefix('[').and_then(|t| t.strip_suffix(']'))
                && !line.starts_with(' ')
            {
                section = path_of(name).unwrap_or_else(|| name.to_owned());
            } else if let Some((key, value)) = setting(line) {
                let quotes = ["\"\"\"", "'''"].into_iter().find(|end| value.starts_with(end));
                text_end = quotes.filter(|end| value.len() < 6 || !value.ends_with(end));
                let path = if section.is_empty() { key } else { format!("{section}.{key}") };
                if let Some(place) = self.0.get(&path) {
                    // A value over several lines has the comment above it.
                    if value.ends_with('[') || text_end.is_some() {
                        noted += &format!("# {place}\n");
                    } else {
                        noted += &format!("{line}  # {place}\n");
                        continue;
                    }
                }
            }
            noted += line;
            noted.push('\n');
        }
        noted
    }
}

/// The path and the value of a line that begins a setting. A quoted key may have ` = ` within.
fn setting(line: &str) -> Option<(String, &str)> {
    line.match_indices(" = ").find_map(|(at, equals)| {
        let path = path_of(&line[..at])?;
        Some((path, &line[at + equals.len()..]))
    })
}

/// The path of a key as TOML writes it: `a."b.c"` is `a.b.c`.
fn path_of(key: &str) -> Option<String> {
    let text = format!("{key} = 0");
    let table = DeTable::parse(&text).ok()?;
    let mut found = Vec::new();
    walk("", table.get_ref(), &mut found);
    found.pop().map(|(path, _)| path)
}

/// The positions of all values but tables.
fn walk(path: &str, table: &DeTable<'_>, found: &mut Vec<(String, usize)>) {
    for (key, value) in table {
        let name = key.get_ref();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match value.get_ref() {
            DeValue::Table(inner) => walk(&path, inner, found),
            _ => found.push((path, value.span().start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_quotes_says_where_it_comes_from() {
        let keys = ["larder:admin", "a.b", "a = b", "say \"x\"", "plain", ""];
        let grants: toml::Table =
            keys.iter().map(|key| ((*key).to_owned(), vec!["x"; 1].into())).collect();
        let login = toml::Table::from_iter([("grants".to_owned(), grants.into())]);
        let upstreams = toml::Table::from_iter([("my server".to_owned(), {
            toml::Table::from_iter([("url".to_owned(), "https://a.example".into())]).into()
        })]);
        let settings = toml::Table::from_iter([
            ("login".to_owned(), login.into()),
            ("upstreams".to_owned(), upstreams.into()),
        ]);

        let named = keys.iter().map(|key| format!("login.grants.{key}"));
        let named = named.chain(["upstreams.my server.url".to_owned()]);
        let sources: BTreeMap<_, _> =
            named.enumerate().map(|(at, path)| (path, format!("a.toml:{at}"))).collect();

        let shown = toml::to_string(&settings).expect("it is TOML");
        let noted = Sources(sources).noted(&shown);
        for at in 0..=keys.len() {
            assert!(noted.contains(&format!("# a.toml:{at}\n")), "{at}: {noted}");
        }
        assert_eq!(toml::from_str::<toml::Table>(&noted).expect("it is TOML"), settings);
    }

    #[test]
    fn a_setting_says_where_it_comes_from_and_stays_toml() {
        let of = |pairs: &[(&str, &str)]| {
            Sources(pairs.iter().map(|(p, s)| ((*p).to_owned(), (*s).to_owned())).collect())
        };
        let sources = of(&[
            ("log.level", "LARDER_LOG__LEVEL"),
            ("server.allowed_hosts", "a.toml:3"),
            ("upstreams", "a.toml:9"),
            ("server.path", "a.toml:7"),
        ]);
        let shown = "top = 1\n\n[log]\nlevel = \"a # b = c\"\nformat = \"text\"\n\n[server]\nallowed_hosts = [\n    \"x = y\",\n]\npath = \"\"\"\npath = 1\n[log]\"\"\"\n\n[[upstreams]]\nname = \"a\"\n\n[[upstreams]]\nname = \"b\"\n";
        let noted = sources.noted(shown);

        for line in [
            "level = \"a # b = c\"  # LARDER_LOG__LEVEL\nformat = \"text\"\n",
            "# a.toml:3\nallowed_hosts = [\n",
            "# a.toml:7\npath = \"\"\"\npath = 1\n[log]",
            "# a.toml:9\n[[upstreams]]\nname = \"a\"\n\n[[upstreams]]\n",
        ] {
            assert!(noted.contains(line), "{noted}");
        }
        let before: toml::Table = toml::from_str(shown).expect("it is TOML");
        assert_eq!(toml::from_str::<toml::Table>(&noted).expect("it is TOML"), before);
    }
}
