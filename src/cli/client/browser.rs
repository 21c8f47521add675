//! The browser of the person at the terminal.

use std::process::{Command, Stdio};

use larder_runtime::environment;

/// Opens a URL. Returns whether a program has taken it.
pub(in crate::cli) fn open(url: &str) -> bool {
    let mut commands = candidates();
    commands.iter_mut().any(|command| {
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
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
