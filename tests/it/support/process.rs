//! Programs that tests start: servers, which are killed when they are dropped,
//! and commands that run to their end.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
};

use super::patiently;

/// How long a program may run to its end.
const RUN_TIMEOUT: Duration = Duration::from_secs(180);

/// How a server says where it listens.
const LISTENING: &str = "larder listening on ";

/// A server in a process of its own, killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    /// The URL of the MCP endpoint.
    pub(crate) url: String,
    /// The lines on standard error so far; closed when the process ends.
    stderr: watch::Receiver<Vec<String>>,
    /// How many of these lines [`Process::logs`] has searched.
    searched: usize,
}

impl Process {
    /// Starts a server on a free port, and waits until it listens.
    pub(crate) async fn start(command: Command) -> Self {
        Self::start_at(command, "127.0.0.1:0").await
    }

    /// Starts a server at an address, and waits until it listens.
    pub(crate) async fn start_at(mut command: Command, listen: &str) -> Self {
        command.args(["--listen", listen]).kill_on_drop(true).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, stderr) = watch::channel(Vec::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|lines| lines.push(line));
            }
        });
        let mut process = Self { child, url: String::new(), stderr, searched: 0 };
        let line = process.logs(LISTENING).await;
        let url = line.strip_prefix(LISTENING).unwrap_or_else(|| panic!("{line}"));
        let (scheme, _) = url.split_once("://127.0.0.1:").unwrap_or_else(|| panic!("{url}"));
        assert!(matches!(scheme, "http" | "https") && url.ends_with("/mcp"), "{url}");
        url.clone_into(&mut process.url);
        process
    }

    /// The host and port of the endpoint.
    pub(crate) fn address(&self) -> &str {
        let (_, address) = self.url.split_once("://").unwrap();
        address.strip_suffix("/mcp").unwrap()
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// All of standard error so far.
    pub(crate) fn stderr(&self) -> String {
        let lines = self.stderr.borrow();
        lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// The next line on standard error that contains `text`, after the line
    /// that the last call returned.
    pub(crate) async fn logs(&mut self, text: &str) -> String {
        let from = self.searched;
        let find = |lines: &Vec<String>| {
            let found = lines[from..].iter().position(|line| line.contains(text));
            found.map(|at| (from + at, lines[from + at].clone()))
        };
        let logged = patiently(text, self.stderr.wait_for(|lines| find(lines).is_some())).await;
        let found = logged.ok().and_then(|lines| find(&lines));
        let Some((at, line)) = found else {
            panic!("the process ended before it logged {text:?}:\n{}", self.stderr());
        };
        self.searched = at + 1;
        line
    }

    /// Sends a signal, such as `-TERM`.
    pub(crate) async fn signal(&self, signal: &str) {
        send_signal(&self.child, signal).await;
    }

    /// Kills it (`kill -9`), and waits until it is gone.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits until it ends; its exit code.
    pub(crate) async fn exit_code(&mut self) -> Option<i32> {
        patiently("the process to end", self.child.wait()).await.unwrap().code()
    }

    /// Sends a signal, and waits until it ends.
    pub(crate) async fn stop(mut self, signal: &str) -> Finished {
        self.signal(signal).await;
        let code = self.exit_code().await;
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).await.unwrap();
        patiently("the end of stderr", async { while self.stderr.changed().await.is_ok() {} })
            .await;
        Finished { code, stdout, stderr: self.stderr() }
    }
}

/// Sends a signal, such as `-TERM`, to a child process.
pub(crate) async fn send_signal(child: &Child, signal: &str) {
    let id = child.id().expect("the process runs").to_string();
    let sent = Command::new("kill").args([signal, &id]).status().await.unwrap();
    assert!(sent.success());
}

/// A command line of the binary.
pub(crate) fn larder(arguments: &[&str]) -> Command {
    command(env!("CARGO_BIN_EXE_larder").into(), arguments)
}

/// A command line of an example, which `cargo test` builds beside the binary.
pub(crate) fn example(name: &str) -> Command {
    let larder = PathBuf::from(env!("CARGO_BIN_EXE_larder"));
    let program = larder.parent().unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is missing: run cargo build --examples", program.display());
    command(program, &[])
}

fn command(program: PathBuf, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // What is logged does not depend on who runs the tests.
    command.env_remove("RUST_LOG");
    // Offers of an upstream to another test are not remembered.
    command.env("LARDER_TOOLS__CATALOGUE_CACHE", "off");
    command
}

/// `larder serve` with these arguments; and the URL of its endpoint.
pub(crate) async fn serving(arguments: &[&str]) -> (Process, String) {
    serving_in(arguments, &[]).await
}

/// The same with these environment variables.
pub(crate) async fn serving_in(
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Process, String) {
    let mut command = larder(&["serve"]);
    command.args(arguments).envs(environment.iter().copied());
    let process = Process::start(command).await;
    let url = process.url.clone();
    (process, url)
}

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end.
pub(crate) async fn run(mut command: Command) -> Finished {
    // A debug build on a busy machine takes its time.
    let output = tokio::time::timeout(RUN_TIMEOUT, command.output()).await;
    let output = output.expect("the process ends in time").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Finished {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs the binary, which fails; its exit code and standard error.
pub(crate) async fn refused(
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut command = larder(arguments);
    command.envs(environment.iter().copied());
    let finished = run(command).await;
    assert!(finished.stdout.is_empty(), "{finished:?}");
    (finished.code, finished.stderr)
}
