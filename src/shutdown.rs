//! Stop signals: the first asks for a graceful stop, the second ends the process.

use std::io;

/// Resolves at the first stop signal; the next one exits at once. These are SIGTERM and SIGINT,
/// on Windows Ctrl-C, Ctrl-Break, and the end of the console or the system.
///
/// # Errors
/// The process cannot register signal handlers.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new()?;

    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(1);
        });
    })
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let terminate = SignalKind::terminate();
        let interrupt = SignalKind::interrupt();
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals {
    ctrl_c: tokio::signal::windows::CtrlC,
    ctrl_break: tokio::signal::windows::CtrlBreak,
    close: tokio::signal::windows::CtrlClose,
    shutdown: tokio::signal::windows::CtrlShutdown,
}

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::windows;

        Ok(Self {
            ctrl_c: windows::ctrl_c()?,
            ctrl_break: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            shutdown: windows::ctrl_shutdown()?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.ctrl_c.recv() => {}
            _ = self.ctrl_break.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}
