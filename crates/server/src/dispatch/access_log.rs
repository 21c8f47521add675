//! The access log (`log.access`): a line for a call that has ended, on the target `access`. The span of
//! the line has the ID of the request.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use larder_oauth::Identity;
use larder_protocol::{Member, Method, Params, quote::shortened};
use serde::Deserialize;

use super::End;

/// Longer arguments are not searched for the URI that they name.
const MAX_ARGUMENTS: usize = 16 << 10;

/// Which calls have a line.
#[derive(Debug, Default)]
pub struct AccessLog {
    /// One of so many calls without an error has a line; 0 for no lines at all.
    every: AtomicU32,
    ended: AtomicU64,
}

/// What a line says of a call before it runs. Only kept while there are lines.
#[derive(Debug)]
pub(super) struct Caller {
    identity: Identity,
    uri: Option<String>,
}

impl AccessLog {
    /// Logs one of so many calls, and each that ends with an error; 0 logs none.
    pub fn set_every(&self, every: u32) {
        self.every.store(every, Relaxed);
    }

    /// Whether there are lines.
    pub fn is_on(&self) -> bool {
        self.every.load(Relaxed) > 0
    }

    /// Whether what has ended now has a line.
    pub fn is_due(&self, is_error: bool) -> bool {
        let every = u64::from(self.every.load(Relaxed));
        if every == 0 {
            return false;
        }
        let before = self.ended.fetch_add(1, Relaxed);
        is_error || before.is_multiple_of(every)
    }

    /// What a line will say of a call, if there are lines.
    pub(super) fn caller(
        &self,
        identity: &Identity,
        method: Method,
        params: &Params,
    ) -> Option<Caller> {
        self.is_on().then(|| Caller { identity: identity.clone(), uri: uri(method, params) })
    }

    /// Logs a call, if it is due.
    pub(super) fn ended(&self, caller: &Caller, call: &EndedCall<'_>) {
        if !self.is_due(call.end.is_error()) {
            return;
        }

        let Caller { identity, uri } = caller;
        let outcome = match call.end.error_type() {
            "" => "ok",
            error => error,
        };
        let ms = u64::try_from(call.took.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(
            target: "access", who = %identity.principal(), client = identity.client(),
            method = call.method.as_str(), tool = call.tool.map(shortened).as_deref(),
            uri = uri.as_deref(), outcome, bytes_in = call.bytes_in, bytes_out = call.bytes_out, ms,
            "call"
        );
    }
}

/// A call that has ended.
pub(super) struct EndedCall<'a> {
    pub(super) method: Method,
    pub(super) tool: Option<&'a str>,
    pub(super) end: End,
    /// The bytes of the parameters, and of the result of a tool.
    pub(super) bytes_in: u64,
    pub(super) bytes_out: Option<u64>,
    pub(super) took: Duration,
}

/// The URI that a request is about.
fn uri(method: Method, params: &Params) -> Option<String> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        uri: Option<Cow<'a, str>>,
    }

    let found = if method == Method::CallTool {
        let arguments = params.member(Member::Arguments)?;
        if arguments.len() > MAX_ARGUMENTS {
            return None;
        }
        serde_json::from_slice::<Named<'_>>(arguments).ok()?.uri?
    } else {
        params.text(Member::Uri).ok()??
    };
    Some(shortened(&found).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_so_many_is_logged_and_each_error() {
        let log = AccessLog::default();
        assert!(!log.is_on() && !log.is_due(true));

        log.set_every(3);
        let due: Vec<_> = (0..7).map(|_| log.is_due(false)).collect();
        assert_eq!(due, [true, false, false, true, false, false, true]);
        assert!(log.is_due(true));

        log.set_every(1);
        assert!(log.is_due(false) && log.is_due(false));
    }
}
