//! The example configuration, and `larder config`.

use std::collections::{BTreeMap, BTreeSet};

use larder::config::Config;
use serde_json::Value;

use crate::support::{
    TextFile,
    process::{Finished, larder, run},
};

const EXAMPLE: &str = include_str!("../../../larder.example.toml");

/// The example with all its settings set: a setting is commented out by a `#`
/// directly before a name or a bracket.
fn all_set() -> String {
    let set = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c == '[' || c == '"' || c.is_alphabetic()) => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    EXAMPLE.lines().map(set).collect::<Vec<_>>().join("\n")
}

/// The values of a configuration by their paths. The elements of a list share one path.
fn leaves(value: &Value) -> BTreeMap<String, Value> {
    fn walk(path: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
        let below = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    found.entry(below(name)).or_insert(Value::Null);
                    walk(&below(name), value, found);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for item in items {
                    walk(path, item, found);
                }
            }
            other => drop(found.insert(path.to_owned(), other.clone())),
        }
    }
    let mut found = BTreeMap::new();
    walk("", value, &mut found);
    found
}

/// The paths of all settings, from the schema.
fn settings(schema: &Value) -> BTreeSet<String> {
    fn walk(schema: &Value, node: &Value, path: &str, found: &mut BTreeSet<String>) {
        if let Some(name) = node["$ref"].as_str() {
            return walk(schema, schema.pointer(&name[1..]).unwrap(), path, found);
        }
        // An optional setting: its type, or null.
        for option in node["anyOf"].as_array().into_iter().flatten() {
            walk(schema, option, path, found);
        }
        // Steps are described in docs/workflows.md.
        if node["items"].is_object() && path != "workflows.steps" {
            walk(schema, &node["items"], path, found);
        }
        for (name, property) in node["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            walk(schema, property, &path, found);
            found.insert(path);
        }
    }
    let mut found = BTreeSet::new();
    walk(schema, schema, "", &mut found);
    found
}

#[test]
fn the_example_has_every_setting_and_no_other() {
    let example: toml::Table = toml::from_str(&all_set()).unwrap_or_else(|e| panic!("{e}"));
    example.clone().try_into::<Config>().unwrap_or_else(|e| panic!("{e}"));
    let example = leaves(&serde_json::to_value(&example).unwrap());
    let settings = settings(&Config::schema());
    assert!(settings.len() > 60 && settings.contains("auth.issuers.introspection.client_id"));
    let missing: Vec<_> = settings.iter().filter(|s| !example.contains_key(*s)).collect();
    assert!(missing.is_empty(), "larder.example.toml lacks {missing:?}");
}

#[test]
fn the_example_says_what_the_defaults_are() {
    let example: toml::Table = toml::from_str(&all_set()).unwrap();
    let example = leaves(&serde_json::to_value(&example).unwrap());
    let defaults = leaves(&serde_json::to_value(Config::default()).unwrap());
    let has_value = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    for (setting, default) in defaults.iter().filter(|(_, value)| has_value(value)) {
        assert_eq!(&example[setting], default, "{setting}");
    }
    // Unchanged, the file sets nothing.
    let untouched: Config = toml::from_str(EXAMPLE).unwrap();
    assert_eq!(untouched, Config::default());
}

async fn config(arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let mut command = larder(&[&["config"], arguments].concat());
    command.envs(environment.iter().copied());
    run(command).await
}

#[tokio::test]
async fn the_binary_checks_it_and_shows_the_effective_configuration() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/larder.example.toml");
    let checked = config(&["check", "--config", example], &[]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let environment =
        [("LARDER_CONFIG", example), ("LARDER_STORE__URL", "redis://larder:hush@cache:6379/0")];
    let shown = config(&["show"], &environment).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown = shown.stdout;
    assert!(shown.contains("redis://larder:***@cache:6379/0") && !shown.contains("hush"));
    let shown: Config = toml::from_str(&shown).unwrap();
    assert_eq!(shown.limits, Config::default().limits);
}

#[tokio::test]
async fn a_check_finds_the_same_faults_wherever_things_are_kept() {
    let file = TextFile::new(
        r#"
[server]
public_url = "http://127.0.0.1:8000/mcp"
[auth]
mode = "oauth"
[[auth.issuers]]
issuer = "http://127.0.0.1:9000"
[console]
enabled = true
[console.oidc]
issuer = "http://127.0.0.1:9000"
client_id = "larder"
client_secret_env = "SECRET_OF_THE_CONSOLE"
"#,
    );
    // Nothing listens at port 1, and a check without --online needs nothing that listens.
    let redis = "redis://127.0.0.1:1";
    for (store, sessions) in [
        ("memory:", "memory:"),
        ("memory:", redis),
        (redis, "memory:"),
        (redis, redis),
        ("file:///nowhere/larder", redis),
    ] {
        let check = async |secret: &[(&str, &str)]| {
            let places = [("LARDER_STORE__URL", store), ("LARDER_SESSIONS__URL", sessions)];
            let environment = [&places[..], secret].concat();
            config(&["check", "--config", file.path()], &environment).await
        };

        let valid = check(&[("SECRET_OF_THE_CONSOLE", "hush")]).await;
        assert_eq!(valid.code, Some(0), "{store} {sessions}: {valid:?}");

        let refused = check(&[]).await;
        assert_eq!(refused.code, Some(2), "{store} {sessions}: {refused:?}");
        let setting = "larder: console.oidc.client_secret_env: ";
        assert!(refused.stderr.starts_with(setting), "{store} {sessions}: {refused:?}");
    }
}

#[tokio::test]
async fn a_store_of_an_unknown_scheme_is_refused_without_its_password() {
    let environment = [("LARDER_STORE__URL", "http://larder:hush@cache")];
    for arguments in [&["config", "check"][..], &["migrate"], &["export", "-"]] {
        let mut command = larder(arguments);
        command.envs(environment);
        let refused = run(command).await;
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("store.url: unknown scheme \"http\""), "{refused:?}");
        assert!(!refused.stderr.contains("hush"), "{refused:?}");
    }
}

#[tokio::test]
async fn secrets_in_commands_and_urls_are_not_shown() {
    let file = TextFile::new(
        r#"
[[upstreams]]
name = "db"
command = ["npx", "-y", "server", "--api-key=hush", "--token", "hush", "-phush", "HUSH=hush",
    "postgres://hush:hush@db/x?password=hush"]
env = { A = "hush", B = "${B}", C = "${C}hush" }

[[upstreams]]
name = "web"
url = "https://hush:hush@web.example/mcp/s/hush-0123456789abcdef/x?api_key=hush&k=hush"
headers = { authorization = "Bearer hush" }

[[upstreams]]
name = "user"
url = "https://hush@user.example/mcp"
"#,
    );
    let environment = [("B", "hush"), ("C", "hush")];
    let shown = config(&["show", "--config", file.path()], &environment).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown = shown.stdout;
    assert!(!shown.contains("hush"), "{shown}");
    for kept in ["npx", "--api-key=***", "--token", "${B}", "web.example/mcp/s/***/x", "api_key="] {
        assert!(shown.contains(kept), "{kept}: {shown}");
    }
    let shown: Config = toml::from_str(&shown).unwrap();
    assert_eq!(shown.upstreams[0].command.len(), 9);
}

#[tokio::test]
async fn the_schema_accepts_the_example_and_refuses_what_the_server_refuses() {
    let printed = config(&["schema"], &[]).await;
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!((printed.code, &schema), (Some(0), &Config::schema()));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap());
    let example = json(&all_set()).unwrap();
    let problems: Vec<_> = validator.iter_errors(&example).map(|e| e.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    for bad in ["[server]\nlissten = \"a\"", "[sever]", "[limits]\nwindow = \"a\""] {
        assert!(!validator.is_valid(&json(bad).unwrap()), "{bad}");
    }
}

#[tokio::test]
async fn what_kubernetes_and_compose_set_is_no_setting() {
    let mut show = larder(&["config", "show"]);
    show.envs([
        ("LARDER_PORT", "tcp://10.0.0.1:80"),
        ("LARDER_SERVICE_HOST", "10.0.0.1"),
        ("LARDER_SERVICE_PORT_HTTP", "80"),
        ("LARDER_REDIS_PORT_6379_TCP_ADDR", "10.0.0.2"),
        ("LARDER_HOST", "localhost"),
    ]);
    let shown = run(show).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let mut misspelt = larder(&["config", "show"]);
    misspelt.env("LARDER_SERVER_LISTEN", "127.0.0.1:1");
    assert_eq!(run(misspelt).await.code, Some(2));
}

#[tokio::test]
async fn the_shown_configuration_says_where_each_setting_comes_from() {
    let file = TextFile::new(
        "[store]\ndefault_ttl = 60\n\n[log]\nlevel = \"info\"\n[server]\nallowed_hosts = [\"a.example\"]\n",
    );
    let mut show = larder(&["config", "show", "--config", file.path()]);
    show.env("LARDER_LOG__LEVEL", "debug");
    let shown = run(show).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");

    let path = file.path();
    let line = |text: &str| shown.stdout.lines().find(|line| line.starts_with(text)).unwrap();
    assert_eq!(line("default_ttl = "), format!("default_ttl = 60  # {path}:2"));
    assert_eq!(line("level = "), "level = \"debug\"  # LARDER_LOG__LEVEL");
    assert_eq!(line("format = "), "format = \"text\"");
    let table: toml::Table = shown.stdout.parse().unwrap();
    assert_eq!(table["log"]["level"].as_str(), Some("debug"));
}
