//! The browser of the person at the terminal.

use std::{
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use larder_runtime::environment;
use reqwest::Url;

/// How long a program is watched: one that still runs then has opened the page in itself.
const WATCHED: Duration = Duration::from_secs(2);
/// The pause between two looks at a program.
const PAUSE: Duration = Duration::from_millis(20);

/// The URL of a web page. A URL of another scheme could start a program of this machine.
pub(in crate::cli) fn page(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(is_page)
}

fn is_page(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Opens a web page, and nothing else. Returns whether a program has taken it.
pub(in crate::cli) fn open(url: &Url) -> bool {
    is_page(url)
        && candidates().iter_mut().any(|command| {
            command.arg(url.as_str());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().is_ok_and(has_taken)
        })
}

/// Whether a program succeeds, or goes on running.
#[allow(
    clippy::disallowed_methods,
    reason = "it watches a real program, on a thread that may block"
)]
fn has_taken(mut program: Child) -> bool {
    let deadline = Instant::now() + WATCHED;
    while Instant::now() < deadline {
        match program.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => sleep(PAUSE),
            Err(_) => return false,
        }
    }
    true
}

/// The programs to try. `BROWSER` names the person's own.
fn candidates() -> Vec<Command> {
    let own = environment::variable("BROWSER").map(Command::new);
    if cfg!(target_os = "macos") {
        return own.into_iter().chain([Command::new("open")]).collect();
    }
    if cfg!(windows) {
        let mut start = Command::new("rundll32");
        start.arg("url.dll,FileProtocolHandler");
        return own.into_iter().chain([start]).collect();
    }
    own.into_iter().chain([Command::new("xdg-open")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_are_opened() {
        assert!(page("https://a.example/x").is_some() && page("HTTP://a.example").is_some());
        for other in ["file:///bin/sh", "javascript:alert(1)", "vscode://x", "-h", "", "a b", "/x"]
        {
            assert!(page(other).is_none(), "{other}");
        }
    }
}
