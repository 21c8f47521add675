//! Workers whose server is gone.

use std::io;

/// The stack of the thread that waits.
#[cfg(unix)]
const STACK_BYTES: usize = 64 << 10;

/// Ends the process as soon as nobody can read its answers, however long its query would run: a
/// server that is killed stops no worker.
#[cfg(unix)]
pub(super) fn end_when_abandoned() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    let wait = || {
        let output = rustix::stdio::stdout();
        loop {
            // That the other end of the pipe is closed is told without being asked for.
            let mut watched = [PollFd::new(&output, PollFlags::empty())];
            match poll(&mut watched, None) {
                Ok(_) => std::process::exit(1),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    };

    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(wait)?;
    Ok(())
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "as on Unix")]
pub(super) fn end_when_abandoned() -> io::Result<()> {
    Ok(())
}
