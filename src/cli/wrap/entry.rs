//! One server of a host, with Larder in front of it or without.

use std::path::Path;

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// The flag before each variable that the server inherits.
const ENV: &str = "--env";
const UPSTREAM: &str = "--upstream";
const HEADER: &str = "--header";
/// The separator before the server's own command.
const COMMAND: &str = "--";
/// The prefix of variables that hold the values of headers.
const HEADER_VARIABLE: &str = "UPSTREAM_HEADER_";

/// Why an entry stays as it is.
pub(super) const DONE: &str = "it goes through Larder already";
const NEITHER: &str = "it has neither a command nor a URL";

/// Members with which the host logs in, or reads variables, for the server itself.
const OF_THE_HOST: [(&str, &str); 4] = [
    ("oauth", "the host logs in to it"),
    ("auth", "the host logs in to it"),
    ("headersHelper", "the host computes its headers"),
    ("envFile", "its variables are in a file: move them to \"env\""),
];

/// An entry whose command is Larder, in front of a server.
#[derive(Debug, PartialEq)]
struct Wrapped {
    /// Larder's command line, before what is particular to the server.
    larder: Vec<String>,
    /// The rest of it.
    server: Vec<String>,
}

/// The entry with Larder in front, started by this command line.
///
/// # Errors
/// Why it cannot be, or need not.
pub(super) fn wrap(entry: &Object, larder: &[String]) -> Result<Object, &'static str> {
    let HostServer { target, env } = HostServer::read(entry)?;
    Ok(match target {
        HostTarget::Command(line) => wrap_command(entry, &line, &env, larder),
        HostTarget::Remote { url, headers } => wrap_remote(entry, &url, headers, env, larder),
    })
}

/// The entry without Larder, as far as it can be told from what is there. `None` if Larder
/// is not in front of anything.
pub(super) fn unwrap(entry: &Object) -> Option<Object> {
    let Wrapped { server, .. } = wrapped(entry)?;
    let mut new = entry.clone();
    if let Some(url) = after(&server, UPSTREAM).next() {
        restore_remote(&mut new, url, &server);
        return Some(new);
    }

    let at = server.iter().position(|part| part == COMMAND)?;
    let (command, arguments) = server[at + 1..].split_first()?;

    new.insert("command".into(), json!(command));
    if arguments.is_empty() {
        new.shift_remove("args");
    } else {
        new.insert("args".into(), json!(arguments));
    }
    Some(new)
}

/// Whether `entry` is just what wrapping `original` has given.
pub(super) fn is_wrapped_from(entry: &Object, original: &Object) -> bool {
    wrapped(entry)
        .is_some_and(|wrapped| wrap(original, &wrapped.larder).is_ok_and(|again| again == *entry))
}

/// A server as a host's entry describes it.
#[derive(Debug)]
pub(super) struct HostServer {
    pub(super) target: HostTarget,
    /// The variables that it gets, with values that the host may fill in.
    pub(super) env: Object,
}

/// How a host reaches a server.
#[derive(Debug)]
pub(super) enum HostTarget {
    /// By its program and arguments.
    Command(Vec<String>),
    /// By its URL, and the headers of each request.
    Remote { url: String, headers: Object },
}

impl HostServer {
    /// # Errors
    /// Why Larder cannot be in front of it, or is already.
    pub(super) fn read(entry: &Object) -> Result<Self, &'static str> {
        if is_larder(entry) {
            return Err(if wrapped(entry).is_some() { DONE } else { "it is Larder" });
        }
        let of_the_host = OF_THE_HOST.iter().find(|(member, _)| entry.contains_key(*member));
        if let Some((_, reason)) = of_the_host {
            return Err(reason);
        }

        let target = match (entry.get("command"), entry.get("url")) {
            (Some(Value::String(command)), None) => command_target(entry, command)?,
            (None, Some(Value::String(url))) => remote_target(entry, url)?,
            _ => return Err(NEITHER),
        };
        let env = members(entry, "env").ok_or("its env is not an object")?;
        Ok(Self { target, env })
    }
}

fn command_target(entry: &Object, command: &str) -> Result<HostTarget, &'static str> {
    let mut line = vec![command.to_owned()];
    if let Some(arguments) = entry.get("args") {
        line.extend(strings(arguments).ok_or("its args are not texts")?);
    }
    Ok(HostTarget::Command(line))
}

fn remote_target(entry: &Object, url: &str) -> Result<HostTarget, &'static str> {
    match entry.get("type").map(Value::as_str) {
        None | Some(Some("http" | "streamable-http" | "streamableHttp")) => {}
        Some(_) => return Err("its transport is not Streamable HTTP"),
    }
    let headers = members(entry, "headers").ok_or("its headers are not an object")?;
    Ok(HostTarget::Remote { url: url.to_owned(), headers })
}

/// The members of an object in an entry, none if the entry does not have it.
fn members(entry: &Object, name: &str) -> Option<Object> {
    match entry.get(name) {
        None => Some(Object::new()),
        Some(Value::Object(members)) => Some(members.clone()),
        Some(_) => None,
    }
}

fn wrap_command(entry: &Object, server: &[String], env: &Object, larder: &[String]) -> Object {
    let mut arguments = larder[1..].to_vec();
    arguments.extend(env.keys().flat_map(|name| [ENV.to_owned(), name.clone()]));
    arguments.push(COMMAND.to_owned());
    arguments.extend(server.iter().cloned());

    let mut new = entry.clone();
    new.insert("command".into(), json!(larder[0]));
    new.insert("args".into(), json!(arguments));
    new
}

fn wrap_remote(
    entry: &Object,
    url: &str,
    headers: Object,
    mut env: Object,
    larder: &[String],
) -> Object {
    let mut arguments = larder[1..].to_vec();
    arguments.extend([UPSTREAM.to_owned(), url.to_owned()]);

    // The values of headers stay off the command line, which every process can see.
    for (name, value) in headers {
        let variable = header_variable(&name);
        arguments.extend([HEADER.to_owned(), format!("{name}={variable}")]);
        env.insert(variable, value);
    }

    let mut new = entry.clone();
    if let Some(kind) = new.get_mut("type") {
        *kind = json!("stdio");
    }

    new.shift_remove("url");
    new.shift_remove("headers");
    new.insert("command".into(), json!(larder[0]));
    new.insert("args".into(), json!(arguments));
    if !env.is_empty() {
        new.insert("env".into(), Value::Object(env));
    }
    new
}

fn restore_remote(entry: &mut Object, url: &str, server: &[String]) {
    let mut env = match entry.shift_remove("env") {
        Some(Value::Object(env)) => env,
        _ => Object::new(),
    };

    let headers = after(server, HEADER).filter_map(|header| header.split_once('='));
    let headers: Object = headers
        .filter_map(|(name, variable)| Some((name.to_owned(), env.shift_remove(variable)?)))
        .collect();

    if let Some(kind) = entry.get_mut("type") {
        *kind = json!("http");
    }

    entry.shift_remove("command");
    entry.shift_remove("args");
    entry.insert("url".into(), json!(url));

    for (member, object) in [("headers", headers), ("env", env)] {
        if !object.is_empty() {
            entry.insert(member.into(), Value::Object(object));
        }
    }
}

/// Whether the host starts `larder serve` for the entry.
fn is_larder(entry: &Object) -> bool {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let first = entry.get("args").and_then(|args| args.get(0)).and_then(Value::as_str);
    Path::new(name).file_stem().is_some_and(|stem| stem == "larder") && first == Some("serve")
}

fn wrapped(entry: &Object) -> Option<Wrapped> {
    if !is_larder(entry) {
        return None;
    }

    let mut larder = vec![entry.get("command")?.as_str()?.to_owned()];
    larder.extend(strings(entry.get("args")?)?);

    let is_of_server = |part: &String| [ENV, UPSTREAM, HEADER, COMMAND].contains(&part.as_str());
    let at = larder.iter().position(is_of_server)?;
    let server = larder.split_off(at);
    Some(Wrapped { larder, server })
}

/// The values of a flag, before the server's own command.
fn after<'a>(line: &'a [String], flag: &str) -> impl Iterator<Item = &'a str> {
    let end = line.iter().position(|part| part == COMMAND).unwrap_or(line.len());
    line[..end].windows(2).filter(move |pair| pair[0] == flag).map(|pair| pair[1].as_str())
}

fn header_variable(header: &str) -> String {
    let name = header.to_ascii_uppercase();
    HEADER_VARIABLE.to_owned() + &name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|part| Some(part.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn object(value: Value) -> Object {
        let Value::Object(object) = value else { panic!("{value}") };
        object
    }

    fn larder() -> Vec<String> {
        ["/bin/larder", "serve", "--stdio", "--store", "file:///x"].map(str::to_owned).to_vec()
    }

    #[test]
    fn an_entry_is_wrapped_and_unwrapped() {
        for (entry, arguments) in [
            (
                json!({ "command": "npx", "args": ["-y", "fs", "--"] }),
                json!(["--", "npx", "-y", "fs", "--"]),
            ),
            (
                json!({ "type": "stdio", "command": "x", "env": { "A": "1" }, "disabled": true }),
                json!(["--env", "A", "--", "x"]),
            ),
            (json!({ "url": "https://a/mcp" }), json!(["--upstream", "https://a/mcp"])),
            (
                json!({ "type": "http", "url": "https://a", "headers": { "X-Key": "${K}" }, "env": { "B": "2" } }),
                json!(["--upstream", "https://a", "--header", "X-Key=UPSTREAM_HEADER_X_KEY"]),
            ),
        ] {
            let entry = object(entry);

            let new = wrap(&entry, &larder()).unwrap();
            assert_eq!(new["command"], "/bin/larder");
            assert_eq!(new["args"].as_array().unwrap()[4..], arguments.as_array().unwrap()[..]);
            assert_eq!(unwrap(&new).unwrap(), entry);
            assert!(is_wrapped_from(&new, &entry));
            assert_eq!(wrap(&new, &larder()), Err(DONE));

            let mut changed = new.clone();
            changed.insert("note".into(), json!(1));
            assert!(!is_wrapped_from(&changed, &entry));
            assert_eq!(unwrap(&changed).unwrap()["note"], 1);
        }
    }

    #[test]
    fn what_the_host_does_itself_is_not_wrapped() {
        for (entry, reason) in [
            (json!({ "command": "larder", "args": ["serve", "--stdio"] }), "it is Larder"),
            (json!({ "url": "https://a", "oauth": {} }), "logs in"),
            (json!({ "command": "a", "envFile": "b" }), "file"),
            (json!({ "type": "sse", "url": "https://a" }), "Streamable HTTP"),
            (json!({ "command": "a", "args": [1] }), "args"),
            (json!({}), "neither"),
        ] {
            let problem = wrap(&object(entry.clone()), &larder()).unwrap_err();
            assert!(problem.contains(reason), "{entry}: {problem}");
            assert_eq!(unwrap(&object(entry)), None);
        }
    }
}
