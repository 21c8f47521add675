//! The audit log: one line on the target `audit` for each decision, with the
//! principal, the action and the reason of a refusal. Never contains a token or
//! its hash.
//!
//! Refusals are warnings and therefore logged by default; `RUST_LOG=audit=info`
//! adds the allowed actions. Without authentication nothing is logged.

use std::fmt::Display;

use super::{Identity, Principal};

/// The maximum number of logged characters of a text that the client chose.
const MAX_CHARS: usize = 200;

/// Logs an allowed action.
pub fn allowed(identity: &Identity, what: &dyn Display) {
    if *identity.principal() != Principal::Local {
        tracing::info!(target: "audit", who = %identity.principal(), what = %Short(what), "allowed");
    }
}

/// Logs a refused action.
pub fn refused(identity: &Identity, what: &dyn Display, why: &dyn Display) {
    tracing::warn!(
        target: "audit", who = %identity.principal(), what = %Short(what), why = %Short(why),
        "refused"
    );
}

/// Logs a refused action of an unknown caller. The claims of a rejected token
/// are not logged, because they are not verified.
pub fn refused_unknown(what: &dyn Display, why: &dyn Display) {
    tracing::warn!(target: "audit", who = "unknown", what = %Short(what), why = %Short(why), "refused");
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
