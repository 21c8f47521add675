//! The first screen of a server, for the person at the terminal who started it.

use larder_gateway::{Settings, State, Status, Target};
use larder_protocol::quote::visible;

use super::named::is_startable;
use crate::config::{AuthMode, Config, UpstreamConfig, mask_url};

/// The lines after the one that says where the server listens: what it is, where it keeps results
/// and how to connect. `url` is the origin of the server as this machine reaches it.
pub(super) fn greeting(config: &Config, url: &str, upstreams: &[Status]) -> String {
    let endpoint = format!("{url}{}", config.server.path);
    let mut lines = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("results", kept(&config.store.url)),
        ("connect", connect(&endpoint, config.auth.mode)),
    ];

    if config.console.enabled {
        lines.push(("console", format!("{url}{}", config.console.path)));
    }
    for status in upstreams {
        lines.push(("upstream", upstream(config, status)));
    }
    lines.push(("stop", "Ctrl-C".to_owned()));

    let lines = lines.into_iter();
    let lines = lines.map(|(name, text)| format!("  {name:<9} {}\n", visible(&text)));
    lines.collect::<Vec<_>>().concat()
}

/// A sentence about the place where results are kept, and for how long.
fn kept(store: &str) -> String {
    match store {
        "memory:" | "memory" => {
            "in memory, until this process ends. To keep them: --store file:///DIRECTORY".to_owned()
        }
        url => format!("in {}", mask_url(url)),
    }
}

/// The command that connects a host.
fn connect(endpoint: &str, auth: AuthMode) -> String {
    let token = match auth {
        AuthMode::Static => " --header 'Authorization: Bearer TOKEN'",
        _ => "",
    };
    format!("claude mcp add --transport http larder {endpoint}{token}")
}

fn upstream(config: &Config, status: &Status) -> String {
    let name = &status.name;
    let named = |upstream: &UpstreamConfig| upstream.settings().ok().filter(|s| s.name == *name);
    if let Some(Settings { target: Target::Command(command), .. }) =
        config.upstreams.iter().find_map(named)
        && let Some(Err(problem)) = command.line.first().map(|program| is_startable(program))
    {
        return format!("{name}: {problem}");
    }

    match (status.state, status.tools) {
        (State::Idle, None) => format!("{name}: starts with the first request"),
        (State::Idle, Some(tools)) => format!("{name}: {tools} tools; starts with the first call"),
        (state, Some(tools)) => format!("{name}: {}, {tools} tools", state.as_str()),
        (state, None) => format!("{name}: {}", state.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_has_a_line() {
        let mut config = Config::default();
        config.console.enabled = true;
        config.auth.mode = AuthMode::Static;
        config.store.url = "redis://me:hush@redis:6379".to_owned();
        let status = Status {
            name: "fs".into(),
            state: State::Up,
            degraded: None,
            waits_for: None,
            is_failing: false,
            processes: 1,
            era: None,
            tools: Some(14),
            left_out: Vec::new(),
            renamed: Vec::new(),
            kept_out_bytes: 0,
            failures: 0,
            last_error: None,
        };

        let shown = greeting(&config, "http://127.0.0.1:8000", &[status]);
        assert!(!shown.contains("hush"), "{shown}");
        assert!(shown.contains("\n  results   in redis://"), "{shown}");
        let expected = "  connect   claude mcp add --transport http larder http://127.0.0.1:8000/mcp --header 'Authorization: Bearer TOKEN'\n  console   http://127.0.0.1:8000/console\n  upstream  fs: up, 14 tools\n  stop      Ctrl-C\n";
        assert!(shown.ends_with(expected), "{shown}");
    }
}
