//! The audit log: one line on the target `audit` for each decision, with the
//! principal, the client and the ID of its token, the action and the reason of a
//! refusal. The span of the request adds the address. Never contains a token or its hash.
//!
//! Refusals are warnings and therefore logged by default; `RUST_LOG=audit=info`
//! adds the allowed actions. Without authentication nothing is logged.

use std::{fmt::Display, sync::Arc, time::Duration};

use larder_runtime::clock::{Clock, Timestamp};
use parking_lot::Mutex;

use super::{Identity, Owner, Principal};

/// The maximum number of logged characters of a text that the client chose.
const MAX_CHARS: usize = 200;
/// The maximum number of lines about unknown callers within a window.
const MAX_UNKNOWN: u32 = 20;
/// The length of the window.
const UNKNOWN_WINDOW: Duration = Duration::from_secs(10);

/// Logs an allowed action.
pub fn allowed(identity: &Identity, what: &dyn Display) {
    if *identity.principal() != Principal::Local {
        tracing::info!(
            target: "audit", who = %identity.principal(), client = identity.client(),
            jti = identity.token_id(), what = %Short(what), "allowed"
        );
    }
}

/// Logs a refused action.
pub fn refused(identity: &Identity, what: &dyn Display, why: &dyn Display) {
    tracing::warn!(
        target: "audit", who = %identity.principal(), client = identity.client(),
        jti = identity.token_id(), what = %Short(what), why = %Short(why), "refused"
    );
}

/// Logs that an operator has deleted all resources of an owner, or why that failed. A warning, so
/// that it is logged by default. `who` is the operator's principal, or `operator` for a command.
pub fn purged<E: Display>(who: &dyn Display, owner: &Owner, deleted: &Result<u64, E>) {
    let what = "purge";
    match deleted {
        Ok(resources) => {
            tracing::warn!(target: "audit", %who, what, %owner, resources, "allowed");
        }
        Err(why) => tracing::warn!(target: "audit", %who, what, %owner, %why, "failed"),
    }
}

/// Logs that an operator has ended all sessions of an owner, or why that failed, as [`purged`]
/// does.
pub fn sessions_ended<E: Display>(owner: &Owner, ended: &Result<u64, E>) {
    let who = "operator";
    let what = "end sessions";
    match ended {
        Ok(sessions) => {
            tracing::warn!(target: "audit", who, what, %owner, sessions, "allowed");
        }
        Err(why) => tracing::warn!(target: "audit", who, what, %owner, %why, "failed"),
    }
}

/// Logs refused actions of unknown callers. Anybody can send bad tokens, so it logs the first
/// ones of each window and the number of the others.
#[derive(Debug)]
pub struct UnknownCallers {
    clock: Arc<dyn Clock>,
    window: Mutex<AuditWindow>,
}

#[derive(Debug)]
struct AuditWindow {
    begun: Timestamp,
    lines: u32,
    omitted: u64,
}

impl UnknownCallers {
    /// With nothing logged yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let window = AuditWindow { begun: clock.now(), lines: 0, omitted: 0 };
        Self { clock, window: Mutex::new(window) }
    }

    /// Logs a refused action. The claims of a rejected token are not logged, because they are
    /// not verified.
    pub fn refused(&self, what: &dyn Display, why: &dyn Display) {
        if let Some(omitted) = self.sample() {
            let omitted = (omitted > 0).then_some(omitted);
            tracing::warn!(
                target: "audit", who = "unknown", what = %Short(what), why = %Short(why), omitted,
                "refused"
            );
        }
    }

    /// Whether to log a line, and how many were omitted before it.
    fn sample(&self) -> Option<u64> {
        let mut window = self.window.lock();
        let now = self.clock.now();
        if now.since(window.begun) >= UNKNOWN_WINDOW {
            (window.begun, window.lines) = (now, 0);
        }

        if window.lines == MAX_UNKNOWN {
            window.omitted += 1;
            return None;
        }

        window.lines += 1;
        Some(std::mem::take(&mut window.omitted))
    }
}

/// The first characters, on one line.
struct Short<'a>(&'a dyn Display);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(offset, _)| offset);
        write!(f, "{}", text[..end].escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_runtime::clock::ManualClock;

    #[test]
    fn lines_about_unknown_callers_are_sampled() {
        let clock = ManualClock::new();
        let unknown = UnknownCallers::new(Arc::new(clock.clone()));

        for _ in 0..MAX_UNKNOWN {
            assert_eq!(unknown.sample(), Some(0));
        }
        for _ in 0..500 {
            assert_eq!(unknown.sample(), None);
        }

        clock.advance(UNKNOWN_WINDOW);
        assert_eq!(unknown.sample(), Some(500));
        assert_eq!(unknown.sample(), Some(0));
    }
}
