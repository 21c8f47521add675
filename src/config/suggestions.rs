//! The settings that a mistyped one is near to.

use serde_json::Value;

use super::Config;
use larder_protocol::near::nearest;

use crate::near::{asked, did_you_mean};

const PREFIX: &str = "LARDER_";

/// The problem of an unknown setting with the near ones in place of a list of all: `unknown field
/// `lissten`. Did you mean listen?`. Any other problem stays.
pub(super) fn with_near_settings(problem: &str) -> String {
    let names = || {
        let (_, rest) = problem.split_once("unknown field `")?;
        let (typed, rest) = rest.split_once("`, expected ")?;
        Some((typed, rest.split('`').skip(1).step_by(2)))
    };
    let Some((typed, expected)) = names() else { return problem.to_owned() };

    let near = did_you_mean(typed, expected);
    match problem.split_once(", expected ") {
        Some((before, _)) if !near.is_empty() => format!("{before}.{near}"),
        _ => problem.to_owned(),
    }
}

/// The problem of an unknown environment variable, with the near ones.
pub(super) fn with_near_variables(variable: &str, problem: &str) -> String {
    if !problem.contains("unknown field `") {
        return problem.to_owned();
    }

    let names = variables();
    let near = near_variables(variable, &names);
    // The whole list is long, and has no names of variables.
    let (before, _) = problem.split_once(", expected ").unwrap_or((problem, ""));
    match near.as_str() {
        "" => format!("{before}. All settings: larder config schema"),
        near => format!("{before}.{near}"),
    }
}

/// The question about the variables that are near. Most often an underscore is missing between the
/// section and its setting.
fn near_variables(typed: &str, names: &[String]) -> String {
    let joined = |name: &str| name.replace("__", "_");
    if let Some(name) = names.iter().find(|name| joined(name) == joined(typed)) {
        return format!(" Did you mean {name}?");
    }

    // The prefix, which all have, would make any of them near.
    let own = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let stripped: Vec<_> = names.iter().map(|name| own(name)).collect();
    let near = nearest(&own(typed), stripped.iter().map(String::as_str));
    asked(&near.iter().map(|name| format!("{PREFIX}{name}")).collect::<Vec<_>>())
}

/// The variables of all settings.
fn variables() -> Vec<String> {
    let schema = Config::schema();
    let mut paths = Vec::new();
    add_paths(&schema, &schema, PREFIX, &mut paths);
    paths
}

/// Adds the settings of a section. Lists and maps have no variables of their own.
fn add_paths(schema: &Value, node: &Value, prefix: &str, paths: &mut Vec<String>) {
    let node = match node["$ref"].as_str().and_then(|name| schema.pointer(name.get(1..)?)) {
        Some(definition) => definition,
        None => node,
    };

    // An optional section is one of several types.
    for option in node["anyOf"].as_array().into_iter().flatten() {
        add_paths(schema, option, prefix, paths);
    }

    for (name, property) in node["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{}", name.to_uppercase());
        add_paths(schema, property, &format!("{path}__"), paths);
        if !paths.iter().any(|other| other.starts_with(&format!("{path}__"))) {
            paths.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_settings_have_a_variable() {
        let variables = variables();
        for name in [
            "LARDER_TOOLS__LISTING",
            "LARDER_SERVER__TLS__CERT",
            "LARDER_REDIS__TIMEOUT",
            "LARDER_AUTH__LOGIN__ALLOW__DOMAINS",
        ] {
            assert!(variables.iter().any(|variable| variable == name), "{name}: {variables:?}");
        }
        assert!(!variables.iter().any(|variable| variable == "LARDER_SERVER"));
    }

    #[test]
    fn only_an_unknown_name_is_replaced() {
        let unknown = "a.toml:1: unknown field `lissten`, expected one of `listen`, `path`";
        let told = "a.toml:1: unknown field `lissten`. Did you mean listen?";
        assert_eq!(with_near_settings(unknown), told);

        let far = "unknown field `zzz`, expected `listen`";
        for other in [far, "invalid type: a string, expected u64", "", "unknown field `"] {
            assert_eq!(with_near_settings(other), other);
        }
    }

    #[test]
    fn a_variable_with_one_underscore_too_few_is_near() {
        let problem = "unknown field `tools_listing`, expected one of `server`, `auth`";
        assert_eq!(
            with_near_variables("LARDER_TOOLS_LISTING", problem),
            "unknown field `tools_listing`. Did you mean LARDER_TOOLS__LISTING?"
        );
        assert_eq!(
            with_near_variables("LARDER_XYZZY_QQQ", "unknown field `xyzzy_qqq`, expected `a`"),
            "unknown field `xyzzy_qqq`. All settings: larder config schema"
        );
    }
}
