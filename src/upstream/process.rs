//! A child process in a group of its own, so that all processes that it starts
//! end with it: `npx` starts `sh`, which starts `node`.

use std::{io, process::ExitStatus, process::Stdio, time::Duration};

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use super::{program, settings};
use crate::environment::variable_os;

/// What a child inherits of the environment.
const INHERITED: &[&str] = if cfg!(windows) {
    // Node, Python and cmd.exe find their folders by these.
    &[
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "COMSPEC",
        "PATHEXT",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMFILES",
        "TEMP",
        "TMP",
    ]
} else {
    &["PATH", "HOME", "LANG", "TMPDIR"]
};

/// How long each step of the end may take: closed input, SIGTERM.
const STEP: Duration = Duration::from_secs(3);

#[cfg(unix)]
const SIGTERM: i32 = 15;

/// A running child process.
pub(super) struct Process {
    child: Box<dyn ChildWrapper>,
}

/// The pipes of a child process.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Process {
    /// Starts the command of an upstream, with a clean environment.
    pub(super) fn spawn(settings: &settings::Command) -> io::Result<(Self, Pipes)> {
        let (program, arguments) =
            settings.line.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
        let mut command = Command::new(&*program::resolve(program, &settings.env));
        let inherited = INHERITED.iter().filter_map(|name| Some((*name, variable_os(name)?)));
        command.args(arguments).env_clear().envs(inherited).envs(&settings.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = CommandWrap::from(command);
        #[cfg(unix)]
        command.wrap(ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(JobObject);
        let mut child = command.spawn()?;
        let pipes = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok((Self { child }, Pipes { stdin, stdout, stderr }))
    }

    /// Waits until the process ends by itself. Cancel safe.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        }
    }

    /// Ends the process after its input was closed: 3 s later by SIGTERM to its
    /// group, another 3 s later by SIGKILL. Nothing of it is left afterwards.
    pub(super) async fn end(mut self) {
        if tokio::time::timeout(STEP, self.child.wait()).await.is_err() {
            self.terminate();
            let _ = tokio::time::timeout(STEP, self.child.wait()).await;
        }
        // The leader may have left others of its group behind.
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
    }

    #[cfg(unix)]
    fn terminate(&self) {
        // It may have ended by now.
        let _ = self.child.signal(SIGTERM);
    }

    #[cfg(not(unix))]
    fn terminate(&self) {}
}

impl Drop for Process {
    /// For a process that nobody ends, as when the runtime stops.
    fn drop(&mut self) {
        let _ = self.child.start_kill();
    }
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => "exit".to_owned(),
    }
}
