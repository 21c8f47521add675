//! The supervisor of an upstream's program: `larder upstream-process`, a process between Larder and
//! the program. Nothing of the program outlives it, and it ends with Larder.
//!
//! Processes that lose their parent become children of the supervisor (`PR_SET_CHILD_SUBREAPER`),
//! also those that have left the process group or the session. The kernel tells it when Larder has
//! ended, however that happened (`PR_SET_PDEATHSIG`).

use std::{
    fs::{self, File},
    io::{self, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Command, ExitCode},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process,
        kill_process_group, set_child_subreaper, set_dumpable_behavior,
        set_parent_process_death_signal, wait,
    },
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// The argument that makes the program a supervisor.
pub(super) const COMMAND: &str = "upstream-process";

/// The exit code for a program that cannot be started, as of shells.
const NOT_STARTED: u8 = 127;

/// How long the killed processes of a program may take to end. Larder waits a little longer for this
/// process.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the program of an upstream until it, or the Larder with this process ID, has ended. SIGTERM
/// is passed on to the program's group; SIGINT ends all of its processes at once.
pub fn main(larder: u32, line: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = runtime.and_then(|runtime| runtime.block_on(supervise(larder, line)));

    match ended {
        Ok(Some(status)) => end_like(status),
        Ok(None) => ExitCode::FAILURE,
        Err(error) => {
            let program = line.first().map_or("", String::as_str);
            // Larder logs standard error; a write fails only if Larder has ended.
            let _ = writeln!(io::stderr(), "{program}: {error}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// How the program has ended; `None` if it was killed.
async fn supervise(larder: u32, line: &[String]) -> io::Result<Option<WaitStatus>> {
    let mut child_ended = signal(SignalKind::child())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut end = signal(SignalKind::interrupt())?;
    let mut larder_ended = signal(SignalKind::hangup())?;

    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::HUP))?;
    if !is_child_of(larder) {
        // Larder ended before the kernel was asked to report its end.
        return Ok(None);
    }

    // The program gets the streams of this process, which keeps its own way to the log.
    let mut log = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let program = start(line)?;
    let ended = loop {
        tokio::select! {
            _ = child_ended.recv() => if let Some(status) = reap(program) {
                break Some(status);
            },
            _ = terminate.recv() => {
                // The group may have ended by now.
                let _ = kill_process_group(program, Signal::TERM);
            }
            _ = end.recv() => break None,
            // The thread that started this process may end before Larder does.
            () = hung_up(&mut larder_ended, larder) => break None,
        }
    };

    if !end_all(&mut Children(child_ended)).await {
        // A write fails only if Larder has ended.
        let _ =
            writeln!(log, "larder: a process of the program cannot be killed, and is left behind");
    }
    Ok(ended)
}

/// Starts the program in a group of its own, and leaves the standard streams to it.
fn start(line: &[String]) -> io::Result<Pid> {
    let (program, arguments) =
        line.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
    let child = Command::new(program).args(arguments).process_group(0).spawn()?;

    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(Pid::from_child(&child))
}

fn is_child_of(larder: u32) -> bool {
    getppid().is_some_and(|parent| parent.as_raw_nonzero().get().unsigned_abs() == larder)
}

/// Waits until Larder has ended.
async fn hung_up(signals: &mut Signals, larder: u32) {
    while is_child_of(larder) {
        signals.recv().await;
    }
}

/// Reaps children that have ended. Returns how the program has ended, if it is among them.
fn reap(program: Pid) -> Option<WaitStatus> {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == program {
            return Some(status);
        }
    }
    None
}

/// The processes of a program, which end one after the other.
trait Family {
    /// Kills the children of this process. Only children are killed, whose process IDs are not used
    /// again before they are reaped; their own children become children of this process.
    fn kill_children(&mut self);

    /// Reaps a child that has ended, without waiting for it.
    fn reap(&mut self) -> Reaped;

    /// Waits until a child may have ended.
    fn child_ended(&mut self) -> impl Future<Output = ()>;
}

/// The result of [`Family::reap`].
enum Reaped {
    /// A child that has ended, and perhaps has left others.
    Child,
    /// All children are still running.
    Nothing,
    /// No child is left.
    Last,
}

/// Kills all descendants, and waits until none is left, but not for ever: a process that waits for a
/// disk or another user's cannot be killed. Returns whether none is left.
async fn end_all(family: &mut impl Family) -> bool {
    let ended = async {
        loop {
            family.kill_children();
            loop {
                match family.reap() {
                    Reaped::Child => {}
                    Reaped::Nothing => break,
                    Reaped::Last => return,
                }
            }
            family.child_ended().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.is_ok()
}

/// The children of this process, and the signal of their ends.
struct Children(Signals);

impl Family for Children {
    fn kill_children(&mut self) {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
    }

    fn reap(&mut self) -> Reaped {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => Reaped::Child,
            Ok(None) => Reaped::Nothing,
            Err(_) => Reaped::Last,
        }
    }

    async fn child_ended(&mut self) {
        self.0.recv().await;
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let own = getpid();
    let children = processes.flatten().filter_map(|process| {
        let pid = Pid::from_raw(process.file_name().to_str()?.parse().ok()?)?;
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        (parent_in(&stat)? == own).then_some(pid)
    });
    children.collect()
}

/// The parent in `/proc/PID/stat`, whose second field is a name that may have spaces and
/// parentheses.
fn parent_in(stat: &str) -> Option<Pid> {
    let (_, after_name) = stat.rsplit_once(')')?;
    Pid::from_raw(after_name.split_ascii_whitespace().nth(1)?.parse().ok()?)
}

/// Ends this process as the program has ended, so that Larder reads the same.
fn end_like(status: WaitStatus) -> ExitCode {
    if let Some(code) = status.exit_status() {
        return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    }

    let number = status.terminating_signal().unwrap_or_default();
    if let Some(signal) = Signal::from_named_raw(number) {
        // The program has already dumped its own core, so this process must not.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = kill_process(getpid(), signal);
    }

    // This process handles the signal, so it exits with the code that shells use.
    ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// Processes of which the last cannot be killed, if there is such a process.
    struct Processes {
        alive: usize,
        killed: usize,
        is_last_stuck: bool,
    }

    impl Family for Processes {
        fn kill_children(&mut self) {
            self.killed = self.alive - usize::from(self.is_last_stuck);
        }

        fn reap(&mut self) -> Reaped {
            match (self.killed, self.alive) {
                (_, 0) => Reaped::Last,
                (0, _) => Reaped::Nothing,
                _ => {
                    (self.killed, self.alive) = (self.killed - 1, self.alive - 1);
                    Reaped::Child
                }
            }
        }

        async fn child_ended(&mut self) {
            std::future::pending::<()>().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_not_awaited_for_ever() {
        for is_last_stuck in [false, true] {
            let mut family = Processes { alive: 3, killed: 0, is_last_stuck };
            let begun = Instant::now();
            let is_ended = tokio::time::timeout(PATIENCE * 2, end_all(&mut family)).await;

            assert_eq!(is_ended, Ok(!is_last_stuck));
            assert_eq!(family.alive, usize::from(is_last_stuck));
            assert_eq!(begun.elapsed() == PATIENCE, is_last_stuck);
        }
    }

    #[test]
    fn the_parent_follows_a_name_of_any_characters() {
        assert_eq!(parent_in("7 (a) b) (c) S 42 7 7 0"), Pid::from_raw(42));
        assert_eq!(parent_in("7 (sh) R 1 7"), Pid::from_raw(1));
        assert_eq!(parent_in("7 (kthreadd) S 0 0"), None);
        assert_eq!(parent_in(""), None);
    }
}
