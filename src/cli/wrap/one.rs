//! One entry for all servers of a host: Larder, with the servers in a configuration file beside the
//! host's. Values of variables and headers stay in the entry, where the host fills them in.

use std::collections::{BTreeMap, HashSet};

use larder_gateway::Settings;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    change::Change,
    document::{Document, Entry},
    each::{self, chosen},
    entry::{self, HostServer, HostTarget},
    host_files::HostFiles,
    larder_line::{command_line, settings_text, with_config},
};
use crate::cli::ServeArgs;

type Object = Map<String, Value>;

/// The name of the entry.
const NAME: &str = "larder";
/// The beginning of the names of variables in the entry.
const VARIABLE: &str = "SERVER_";
/// Members of an entry that say how its server is started, or what it is.
const OF_SERVERS: [&str; 7] = ["command", "args", "url", "headers", "env", "type", "description"];
/// A server that has not been listed yet may have to be installed first.
const LIST_TIMEOUT: &str = "20s";

/// Reasons why a server cannot be in the common entry.
const HAS_DIRECTORY: &str = "it has a directory of its own";
const HAS_VARIABLES: &str = "the host fills in parts of its command or URL";
/// The reason why a server stays as it is.
const DISABLED: &str = "the host does not start it";

/// The common entry, and the configuration file that it names.
#[derive(Debug)]
struct CommonEntry {
    value: Object,
    config: String,
    /// The servers in it, by their names in the host's file.
    names: Vec<String>,
    /// Members of their entries that are left out, because only the host knows their meaning.
    left_out: Vec<(String, String)>,
}

/// The place of a server.
#[derive(Debug)]
enum Placement {
    Common(HostServer),
    /// Larder gets an entry for this server alone.
    Own(&'static str),
    /// The entry stays as it is.
    Unchanged(&'static str),
}

/// The configuration file, as far as it lists servers.
#[derive(Debug, Default, Serialize)]
struct ServersFile {
    upstreams: Vec<UpstreamTable>,
}

#[derive(Debug, Serialize)]
struct UpstreamTable {
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    list_timeout: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
}

/// The change that puts one instance of Larder in front of the named servers, or of all. Servers that
/// are in its entry already stay there.
///
/// # Errors
/// A server that was named and cannot be wrapped.
pub(super) fn wrapped(
    files: &HostFiles,
    names: &[String],
    serve: &ServeArgs,
) -> Result<Change, String> {
    let separate = files.separate()?;
    files.check_names(&separate, names)?;
    let mut wanted = names.to_vec();
    if !names.is_empty() {
        let of_all = separate.entries.iter().map(|entry| &entry.name);
        wanted.extend(of_all.filter(|name| files.document.entry(name).is_none()).cloned());
    }

    let placed: Vec<_> =
        chosen(&separate, &wanted).map(|entry| (entry, placement(&entry.value))).collect();
    let larder = command_line(serve, is_alone(&separate, &wanted))?;

    let mut change = Change::default();
    let mut servers = Vec::new();
    let mut texts = Vec::new();
    for (entry, placement) in placed {
        match placement {
            Placement::Common(server) => servers.push((entry, server)),
            Placement::Own(why) => {
                let value = entry::wrap(&entry.value, &larder).map_err(|why| files.problem(why))?;
                texts.push((entry.name.as_str(), separate.format(entry, &value)));
                change.entries.insert(entry.name.clone(), value.into());
                change.servers.push(entry.name.clone());
                change.notes.push(format!("{} keeps an entry of its own: {why}.", entry.name));
            }
            Placement::Unchanged(why) if names.contains(&entry.name) && why != entry::DONE => {
                return Err(files.problem(&format!("{}: {why}", entry.name)));
            }
            Placement::Unchanged(why) => change.keep(&entry.name, why),
        }
    }

    let with_own = separate.with(texts.iter().map(|(name, text)| (*name, &**text)));
    change.without = Some(each::unwrapped(&separate, files.before.as_ref(), &[]).text);
    if servers.is_empty() {
        change.text = with_own;
        return Ok(change);
    }

    let larder = with_config(larder, &files.config())?;
    let common = CommonEntry::new(servers, &larder, &settings_text(serve)?)?;
    let name = common.name_in(&separate);
    change.text = common.placed_in(&files.parse(with_own)?, &name);
    for (server, member) in &common.left_out {
        change.notes.push(format!("{server}: {member} is a setting of the host, and is left out."));
    }
    change.servers.extend(common.names);
    change.entries.insert(name, common.value.into());
    change.config = Some(common.config);
    Ok(change)
}

/// Whether no server has an instance of Larder for itself: several need a store that they share.
fn is_alone(separate: &Document, wanted: &[String]) -> bool {
    separate.entries.iter().all(|entry| match placement(&entry.value) {
        Placement::Common(_) => true,
        Placement::Own(_) => !wanted.is_empty() && !wanted.contains(&entry.name),
        Placement::Unchanged(why) => why != entry::DONE,
    })
}

/// The place of an entry's server if all servers are to go through Larder.
fn placement(entry: &Object) -> Placement {
    let server = match HostServer::read(entry) {
        Ok(server) => server,
        Err(why) => return Placement::Unchanged(why),
    };
    if entry.get("disabled") == Some(&Value::Bool(true)) {
        return Placement::Unchanged(DISABLED);
    }
    if entry.contains_key("cwd") {
        return Placement::Own(HAS_DIRECTORY);
    }

    let has_variables = match &server.target {
        HostTarget::Command(line) => line.iter().any(|part| part.contains("${")),
        HostTarget::Remote { url, .. } => url.contains("${"),
    };
    if has_variables { Placement::Own(HAS_VARIABLES) } else { Placement::Common(server) }
}

impl CommonEntry {
    /// The entry of these servers, which `larder` starts. `settings` is the text of the
    /// configuration that was given besides.
    fn new(
        servers: Vec<(&Entry, HostServer)>,
        larder: &[String],
        settings: &str,
    ) -> Result<Self, String> {
        let mut file = ServersFile::default();
        let mut env = Object::new();
        let mut names = Vec::new();
        let mut left_out = Vec::new();
        let mut taken = HashSet::new();
        // A host that writes types wants one.
        let is_typed = servers.iter().any(|(entry, _)| entry.value.contains_key("type"));

        for (entry, server) in servers {
            let name = free_name(&entry.name, &mut taken);
            file.upstreams.push(table(&name, server, &mut env));

            names.push(entry.name.clone());
            let unknown = entry.value.keys().filter(|member| !OF_SERVERS.contains(&&***member));
            left_out.extend(unknown.map(|member| (entry.name.clone(), member.clone())));
        }

        let tables = toml::to_string(&file).map_err(|error| error.to_string())?;
        let config = if settings.is_empty() {
            format!("# Written by `larder wrap`: the servers of the host\'s file.\n\n{tables}")
        } else {
            format!("{}\n\n{tables}", settings.trim_end())
        };

        let mut value = Object::new();
        if is_typed {
            value.insert("type".into(), json!("stdio"));
        }
        value.insert("command".into(), json!(larder[0]));
        value.insert("args".into(), json!(larder[1..]));
        if !env.is_empty() {
            value.insert("env".into(), Value::Object(env));
        }
        Ok(Self { value, config, names, left_out })
    }

    /// A name that no server has which keeps an entry.
    fn name_in(&self, document: &Document) -> String {
        let is_free = |name: &String| {
            document.entry(name).is_none() || self.names.iter().any(|replaced| replaced == name)
        };
        let numbered = (2..).map(|number| format!("{NAME}-{number}"));
        let mut names = std::iter::once(NAME.to_owned()).chain(numbered);
        names.find(is_free).unwrap_or_default()
    }

    /// The text of a document with the entry, by that name, in place of those of its servers.
    fn placed_in(&self, document: &Document, name: &str) -> String {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        let mut replaced = names.iter().filter_map(|name| document.entry(name));
        let Some(first) = replaced.next() else { return document.text().to_owned() };
        document.merged(&names, name, &document.format(first, &self.value))
    }
}

/// The settings of a server. Its values go to the environment of the common entry.
fn table(name: &str, server: HostServer, env: &mut Object) -> UpstreamTable {
    let mut referred = |values: Object| {
        let mut named = BTreeMap::new();
        for (key, value) in values {
            let variable = free_variable(name, &key, env);
            named.insert(key, format!("${{{variable}}}"));
            env.insert(variable, value);
        }
        named
    };

    let mut table = UpstreamTable {
        name: name.to_owned(),
        command: Vec::new(),
        url: None,
        list_timeout: LIST_TIMEOUT,
        env: BTreeMap::new(),
        headers: BTreeMap::new(),
    };
    match server.target {
        HostTarget::Command(line) => {
            table.command = line;
            table.env = referred(server.env);
        }
        HostTarget::Remote { url, headers } => {
            table.url = Some(url);
            table.headers = referred(headers);
        }
    }
    table
}

/// A name that an upstream may have, and that no other has.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let kept: String = words.join("-").chars().take(20).collect();
    let kept = kept.trim_matches('-');
    let kept = if kept.is_empty() { "server" } else { kept };

    let numbered = (2..).map(|number| format!("{kept}-{number}"));
    let mut names = std::iter::once(kept.to_owned()).chain(numbered);
    let free = names.find(|name| Settings::is_name(name) && !taken.contains(name));
    let free = free.unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// The name of the variable in the common entry that has a value of a server.
fn free_variable(server: &str, key: &str, env: &Object) -> String {
    let name = format!("{VARIABLE}{server}_{key}").to_ascii_uppercase();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");

    let mut free = name.clone();
    let mut number = 2;
    while env.contains_key(&free) {
        free = format!("{name}_{number}");
        number += 1;
    }
    free
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn entry_of(document: &Document) -> CommonEntry {
        let servers = document.entries.iter().map(|entry| match placement(&entry.value) {
            Placement::Common(server) => (entry, server),
            other => panic!("{other:?}"),
        });
        CommonEntry::new(servers.collect(), &["larder".into(), "serve".into()], "").unwrap()
    }

    #[test]
    fn values_stay_in_the_entry() {
        let text = r#"{"s": {
            "File System": {"command": "npx", "args": ["fs"], "env": {"TOKEN": "a\"b"}, "timeout": 9},
            "file-system": {"command": "x", "env": {"TOKEN": "c"}},
            "crm": {"url": "https://crm.example/mcp", "headers": {"X-Key": "${input:key}"}}
        }}"#;
        let document = Document::parse(text.to_owned(), "s").unwrap();

        let common = entry_of(&document);
        assert_eq!(common.names, ["File System", "file-system", "crm"]);
        assert_eq!(common.left_out, [("File System".to_owned(), "timeout".to_owned())]);
        assert_eq!(
            common.value["env"],
            json!({
                "SERVER_FILE_SYSTEM_TOKEN": "a\"b",
                "SERVER_FILE_SYSTEM_2_TOKEN": "c",
                "SERVER_CRM_X_KEY": "${input:key}",
            })
        );

        let config: toml::Table = common.config.parse().unwrap();
        let upstreams = config["upstreams"].as_array().unwrap();
        assert_eq!(upstreams[0]["name"].as_str(), Some("file-system"));
        assert_eq!(upstreams[1]["name"].as_str(), Some("file-system-2"));
        assert_eq!(upstreams[1]["env"]["TOKEN"].as_str(), Some("${SERVER_FILE_SYSTEM_2_TOKEN}"));
        assert_eq!(upstreams[2]["headers"]["X-Key"].as_str(), Some("${SERVER_CRM_X_KEY}"));
        assert!(!common.config.contains("a\"b") && !common.config.contains("input:key"));
    }

    #[test]
    fn a_server_whose_start_needs_the_host_has_an_entry_of_its_own() {
        let placed = |value: Value| {
            let Value::Object(entry) = value else { panic!("{value}") };
            placement(&entry)
        };

        for own in [
            json!({ "command": "x", "args": ["${workspaceFolder}"] }),
            json!({ "command": "x", "cwd": "/srv" }),
            json!({ "url": "https://${HOST}/mcp" }),
        ] {
            assert!(matches!(placed(own.clone()), Placement::Own(_)), "{own}");
        }
        for unchanged in [json!({ "command": "x", "disabled": true }), json!({})] {
            let placement = placed(unchanged.clone());
            assert!(matches!(placement, Placement::Unchanged(_)), "{unchanged}");
        }
    }

    #[test]
    fn names_are_those_of_upstreams_and_differ() {
        let mut taken = HashSet::new();
        let names = ["GitHub (work)", "github-work", "日本", "日", "-a-", &"x".repeat(50)];
        let free = names.map(|name| free_name(name, &mut taken));
        assert!(free.iter().all(|name| Settings::is_name(name)), "{free:?}");
        assert_eq!(free[..4], ["github-work", "github-work-2", "server", "server-2"]);
        assert_eq!(taken.len(), names.len());
    }
}
