//! One line of log for each decision, on the target `audit`: who, what, and
//! whether they may or why not. Never a token, nor its hash.
//!
//! Refusals are warnings and therefore shown by default; `RUST_LOG=audit=info`
//! shows what was allowed as well. Where nobody is asked who they are, nothing
//! is decided and nothing is written.

use std::fmt::Display;

use super::{Identity, Principal};

/// The most characters shown of what a client chose.
const MOST: usize = 200;

/// They may.
pub fn allowed(identity: &Identity, what: &dyn Display) {
    if *identity.principal() != Principal::Local {
        tracing::info!(target: "audit", who = %identity.principal(), what = %Short(what), "allowed");
    }
}

/// They may not.
pub fn refused(identity: &Identity, what: &dyn Display, why: &dyn Display) {
    tracing::warn!(
        target: "audit", who = %identity.principal(), what = %Short(what), why = %Short(why),
        "refused"
    );
}

/// Nobody knows who it is. What a token that was not accepted says of its
/// bearer is worth nothing.
pub fn refused_unknown(what: &dyn Display, why: &dyn Display) {
    tracing::warn!(target: "audit", who = "unknown", what = %Short(what), why = %Short(why), "refused");
}

/// The beginning, on one line.
struct Short<'a>(&'a dyn Display);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        let end = text.char_indices().nth(MOST).map_or(text.len(), |(at, _)| at);
        write!(f, "{}", text[..end].escape_debug())
    }
}
