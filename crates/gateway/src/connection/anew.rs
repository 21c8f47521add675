//! Processes that take the place of others. What a process keeps of earlier calls is gone with it,
//! which the caller is told once.

use std::sync::atomic::Ordering;

use super::Connection;
use crate::settings::Target;

impl Connection {
    /// A call goes to the running process.
    pub(crate) fn begins_call(&self) {
        self.has_calls.store(true, Ordering::Relaxed);
    }

    /// Whether the process may keep something of earlier calls. A server over HTTP keeps it
    /// elsewhere.
    fn keeps_something(&self) -> bool {
        let is_process = matches!(self.shared.settings.target, Target::Command(_));
        is_process && self.has_calls.load(Ordering::Relaxed)
    }

    /// The note for the next caller if the process is ended now, and why that is done. `None` if
    /// nothing is lost.
    pub(crate) fn loss(&self, why: &str) -> Option<String> {
        let untold = self.anew.lock().clone();
        if self.keeps_something() { Some(why.to_owned()) } else { untold }
    }

    /// The process has ended, though nobody has stopped it.
    pub(super) fn ended_itself(&self, how: &str) {
        if self.keeps_something() {
            self.has_calls.store(false, Ordering::Relaxed);
            *self.anew.lock() = Some(format!("it had ended ({how})"));
        }
    }

    /// The text for a caller whose last call was in another process; `None` once it was told.
    pub(crate) fn take_anew(&self) -> Option<String> {
        let why = self.anew.lock().take()?;
        Some(format!(
            "[{} was started anew since your last call, because {why}. What it had kept in memory is gone.]",
            self.shared.settings.name
        ))
    }
}
