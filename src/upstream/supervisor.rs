//! The supervisor of an upstream's program: `larder upstream-process`, a process between Larder and
//! the program. Nothing of the program outlives it, and it ends with Larder.
//!
//! Processes that lose their parent become children of the supervisor (`PR_SET_CHILD_SUBREAPER`),
//! also those that have left the process group or the session. The kernel tells it when Larder has
//! ended, however that happened (`PR_SET_PDEATHSIG`).

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
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

    end_all();
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

/// Kills all descendants, and waits until none is left. Only children are killed, whose process IDs
/// are not used again before they are reaped; their own children become children of this process.
fn end_all() {
    loop {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            // No child is left.
            Err(_) => return,
        }
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
    use super::*;

    #[test]
    fn the_parent_follows_a_name_of_any_characters() {
        assert_eq!(parent_in("7 (a) b) (c) S 42 7 7 0"), Pid::from_raw(42));
        assert_eq!(parent_in("7 (sh) R 1 7"), Pid::from_raw(1));
        assert_eq!(parent_in("7 (kthreadd) S 0 0"), None);
        assert_eq!(parent_in(""), None);
    }
}
