//! A terminal in which tests run commands. `script` provides it.

use std::process::{Output, Stdio};

use tokio::{io::AsyncWriteExt, process::Command};

use super::patiently;

/// What a terminal shows of a shell command that succeeds, in which `$LARDER` is the binary.
pub(crate) async fn on_a_terminal(url: &str, line: &str) -> String {
    let output = shown_on_a_terminal(url, line, &[]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a terminal shows of a shell command with these variables, and its exit code.
pub(crate) async fn shown_on_a_terminal(
    url: &str,
    line: &str,
    environment: &[(&str, &str)],
) -> Output {
    let mut command = Command::new("script");
    command.args(["-qec", &format!("stty cols 100; {line}"), "/dev/null"]);
    command.env("LARDER", env!("CARGO_BIN_EXE_larder")).env("LARDER_URL", url).env("TERM", "xterm");
    command.env_remove("NO_COLOR").envs(environment.iter().copied());
    command.stdin(Stdio::null()).kill_on_drop(true);
    patiently("the terminal", command.output()).await.unwrap()
}

/// What a terminal shows of a shell command to which a person types `input`, and then ends it.
pub(crate) async fn answered_on_a_terminal(url: &str, line: &str, input: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("stty cols 100 -echo; {line}"), "/dev/null"]);
    command.env("LARDER", env!("CARGO_BIN_EXE_larder")).env("LARDER_URL", url).env("TERM", "xterm");
    command.env("NO_COLOR", "1").env("XDG_CONFIG_HOME", folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);

    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = patiently("the terminal", child.wait_with_output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
