//! A child process in a group of its own, so that all processes that it starts end with it: `npx`
//! starts `sh`, which starts `node`. On Linux, a supervisor finds also those that have left the
//! group.

use std::{
    ffi::OsString,
    io,
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

#[cfg(target_os = "linux")]
use super::supervisor;
use super::{
    program,
    settings::{self, Inherited},
};
use larder_runtime::environment::{variable_os, variables_os};

/// The beginning of the names of Larder's own variables.
const OWN: &str = "LARDER_";

/// The variables that a child inherits, unless it inherits all.
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
/// Makes a supervisor end all processes of its program at once.
#[cfg(target_os = "linux")]
const SIGINT: i32 = 2;

/// Whether this program can be started as a supervisor.
static IS_SUPERVISOR: AtomicBool = AtomicBool::new(false);

/// Lets a supervisor start the programs of upstreams. The running program must call
/// `supervisor::main` when it is started as one, as the commands of the binary do. Without
/// effect on other systems than Linux.
pub fn supervise_programs() {
    IS_SUPERVISOR.store(cfg!(target_os = "linux"), Ordering::Relaxed);
}

/// A running child process.
pub(super) struct Process {
    child: Box<dyn ChildWrapper>,
    /// Whether it is a supervisor, which ends the others.
    is_supervised: bool,
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
        let is_supervised = IS_SUPERVISOR.load(Ordering::Relaxed);
        let mut command = if is_supervised {
            supervised(program, settings)?
        } else {
            Command::new(&*program::resolve(program, &settings.env))
        };

        command.args(arguments).env_clear().envs(inherited(&settings.inherits)).envs(&settings.env);
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
        Ok((Self { child, is_supervised }, Pipes { stdin, stdout, stderr }))
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
        if !self.ends_soon().await {
            self.terminate();
            self.ends_soon().await;
        }

        // The leader may have left other processes of its group behind.
        self.kill();
        if self.is_supervised && !self.ends_soon().await {
            tracing::warn!("a process of an upstream cannot be killed");
            let _ = self.child.start_kill();
        }
        let _ = self.child.wait().await;
    }

    async fn ends_soon(&mut self) -> bool {
        tokio::time::timeout(STEP, self.child.wait()).await.is_ok()
    }

    /// Ends all processes at once.
    fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        if self.is_supervised {
            // A supervisor that has ended has left nothing behind.
            if !matches!(self.child.try_wait(), Ok(Some(_))) {
                let _ = self.child.signal(SIGINT);
            }
            return;
        }

        let _ = self.child.start_kill();
    }

    #[cfg(unix)]
    fn terminate(&self) {
        // The signal fails if the process has ended by now.
        let _ = self.child.signal(SIGTERM);
    }

    #[cfg(not(unix))]
    fn terminate(&self) {}
}

impl Drop for Process {
    /// For a process that nobody ends, as when the runtime stops.
    fn drop(&mut self) {
        self.kill();
    }
}

/// The variables that a program inherits.
fn inherited(inherits: &Inherited) -> Vec<(OsString, OsString)> {
    match inherits {
        Inherited::Basic => {
            let basic = INHERITED.iter().filter_map(|name| Some((name.into(), variable_os(name)?)));
            basic.collect()
        }
        Inherited::AllBut(excluded) => {
            let is_own = |name: &str| {
                name.to_ascii_uppercase().starts_with(OWN)
                    || excluded.iter().any(|other| is_same_variable(name, other))
            };
            variables_os().filter(|(name, _)| !is_own(&name.to_string_lossy())).collect()
        }
    }
}

/// Whether two names are of one variable.
fn is_same_variable(name: &str, other: &str) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case(other) } else { name == other }
}

/// The command of a supervisor, to which the program and its arguments are added.
#[cfg(target_os = "linux")]
fn supervised(program: &str, settings: &settings::Command) -> io::Result<Command> {
    program::check(program, &settings.env)?;
    // Names the running program, even if its file has been replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("larder").arg(supervisor::COMMAND).arg(std::process::id().to_string());
    command.arg("--").arg(program);
    Ok(command)
}

#[cfg(not(target_os = "linux"))]
fn supervised(_: &str, _: &settings::Command) -> io::Result<Command> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
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
