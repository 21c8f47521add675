//! A terminal in which tests run commands. `script` provides it.

use std::process::{Output, Stdio};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

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

/// What a terminal shows of a shell command to which a person answers: at each text that it shows,
/// with these lines. Then the person ends the input.
pub(crate) async fn answered_on_a_terminal(
    url: &str,
    line: &str,
    answers: &[(&str, &str)],
) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("stty cols 100 -echo; {line}"), "/dev/null"]);
    command.env("LARDER", env!("CARGO_BIN_EXE_larder")).env("LARDER_URL", url).env("TERM", "xterm");
    command.env("NO_COLOR", "1").env("XDG_CONFIG_HOME", folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);

    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut shown = Vec::new();
    let mut seen = 0;
    for (awaited, answer) in answers {
        let end = |shown: &[u8]| {
            let found = shown.windows(awaited.len()).position(|part| part == awaited.as_bytes());
            found.map(|at| at + awaited.len())
        };
        while end(&shown[seen..]).is_none() {
            let read = patiently(awaited, stdout.read_buf(&mut shown)).await.unwrap();
            assert!(read > 0, "{awaited}: {}", String::from_utf8_lossy(&shown));
        }
        seen += end(&shown[seen..]).unwrap();
        stdin.write_all(answer.as_bytes()).await.unwrap();
    }

    drop(stdin);
    patiently("the rest", stdout.read_to_end(&mut shown)).await.unwrap();
    let status = patiently("the terminal", child.wait()).await.unwrap();
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!(status.code(), Some(0), "{shown}");
    shown
}
