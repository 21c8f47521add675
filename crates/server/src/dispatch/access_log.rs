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
    /// The calls that have ended without an error.
    done: AtomicU64,
}

/// The facts of a call that a line has, known before it runs. Only kept while calls are logged.
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
        is_error || self.done.fetch_add(1, Relaxed).is_multiple_of(every)
    }

    /// The facts of a call for its line, if calls are logged. `has_uri` says whether the request
    /// names a resource: an argument of a tool of another server may be anything.
    pub(super) fn caller(
        &self,
        identity: &Identity,
        method: Method,
        params: &Params,
        has_uri: impl FnOnce() -> bool,
    ) -> Option<Caller> {
        self.is_on().then(|| {
            let uri = if has_uri() { uri(method, params) } else { None };
            Caller { identity: identity.clone(), uri }
        })
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
    Some(shortened(&without_secrets(&found)).into_owned())
}

/// A URI without credentials, query and fragment, and without the ID of a shared resource: whoever
/// has that may read the resource.
fn without_secrets(uri: &str) -> Cow<'_, str> {
    const SHARED: &str = "larder://shared/";
    if let Some((prefix, rest)) = uri.split_at_checked(SHARED.len())
        && prefix.eq_ignore_ascii_case(SHARED)
    {
        let owner = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return format!("{SHARED}{owner}/…").into();
    }
    if uri.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
        return "data:…".into();
    }

    let (scheme, rest) = match uri.find("://") {
        Some(end) => uri.split_at(end + "://".len()),
        None => ("", uri),
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    // Passwords that nobody has encoded contain any character.
    let is_port = |(_, port): (&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = !authority.contains('@')
        && (authority.ends_with(']') || authority.rsplit_once(':').is_none_or(is_port));
    let (user, public) = match rest.rsplit_once('@') {
        Some((_, public)) if !is_host => ("…@", public),
        _ => ("", rest),
    };

    let (path, query) = match public.find(['?', '#']) {
        Some(end) => (&public[..end], "?…"),
        None => (public, ""),
    };
    if user.is_empty() && query.is_empty() {
        uri.into()
    } else {
        format!("{scheme}{user}{path}{query}").into()
    }
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
        // Errors take no turn of the others.
        assert!(log.is_due(true) && log.is_due(true));
        let due: Vec<_> = (0..3).map(|_| log.is_due(false)).collect();
        assert_eq!(due, [false, false, true]);

        log.set_every(1);
        assert!(log.is_due(false) && log.is_due(false));
    }

    #[test]
    fn a_uri_is_logged_without_what_opens_something() {
        for (uri, logged) in [
            ("x:csv", "x:csv"),
            ("temp://a/b", "temp://a/b"),
            ("https://a.example:8443/x/@me", "https://a.example:8443/x/@me"),
            ("https://[::1]/x@y", "https://[::1]/x@y"),
            ("postgres://u:pw@db.example/x", "postgres://…@db.example/x"),
            ("postgres://u:p/w@db.example/x", "postgres://…@db.example/x"),
            ("postgres://u:p?w@db.example/x", "postgres://…@db.example/x"),
            ("postgres://u:p#w@q@db.example/x", "postgres://…@db.example/x"),
            ("jdbc:postgresql://u:pw@db/x?a=b", "jdbc:postgresql://…@db/x?…"),
            ("user:pw@host/x", "…@host/x"),
            ("https://a.example/x?sig=secret", "https://a.example/x?…"),
            ("https://a.example/x#token=secret", "https://a.example/x?…"),
            ("https://a.example?sig=secret", "https://a.example?…"),
            ("larder://shared/local/6b94f99d", "larder://shared/local/…"),
            ("LARDER://Shared/local/6b94f99d", "larder://shared/local/…"),
            ("larder://shared/local?x/6b94f99d", "larder://shared/local/…"),
            ("data:text/plain,secret", "data:…"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(uri), logged, "{uri}");
        }
    }
}
