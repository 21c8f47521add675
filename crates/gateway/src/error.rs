//! Why a request to an upstream has no result.

use std::{fmt, sync::Arc, time::Duration};

use larder_protocol::{ErrorResponse, Fault};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::login::LoginNeeded;

/// The JSON-RPC code of an error that has none of its own.
const INTERNAL: i32 = -32603;
/// The code of an error that names capabilities which the client must declare (2026-07-28, basic).
const MISSING_CAPABILITY: i64 = -32021;
/// The JSON-RPC code for a method that does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// An error of an upstream, as the caller reads it.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum UpstreamError {
    /// The upstream does not start.
    #[error("{}", .0.show())]
    Start(Arc<StartError>),
    /// The upstream ended while a request was running.
    #[error("{name} ended ({how}) during {request}; whether it was done is unknown.")]
    Ended { name: Arc<str>, how: Arc<str>, request: String },
    /// The upstream did not answer in time.
    #[error(
        "{name} did not answer within {} s (upstreams.call_timeout) and was told to stop.",
        .after.as_secs_f64()
    )]
    TimedOut { name: Arc<str>, after: Duration },
    /// The upstream's message was too long.
    #[error("{name} sent more than {} (upstreams.max_message); nothing was kept.", bytes(*.max))]
    TooLong { name: Arc<str>, max: usize },
    /// The upstream's message has too many JSON values.
    #[error(
        "{name} sent more than {max} JSON values in one message (upstreams.max_values); nothing was kept."
    )]
    TooManyValues { name: Arc<str>, max: usize },
    /// Too many messages were in one batch.
    #[error("{name} sent more than {max} messages in one batch; nothing was kept.")]
    TooManyMessages { name: Arc<str>, max: usize },
    /// There is no room for its message.
    #[error(
        "{name} sent a message for which there is no room: the share of these calls in the {} for messages of upstreams is used up (limits.upstream_bytes). Nothing was kept. Try again when other calls have ended, or ask for less.",
        bytes(*.max)
    )]
    NoRoom { name: Arc<str>, max: usize },
    /// The upstream did not process the request: sending it again is safe.
    #[error("{name} did not take the request: {reason}.")]
    NotProcessed { name: Arc<str>, reason: String },
    /// The upstream cannot be used now.
    #[error("{name} cannot be used: {problem}.")]
    Unavailable { name: Arc<str>, problem: String },
    /// The upstream's message does not follow the protocol.
    #[error("{name} sent an answer that cannot be used: {problem}")]
    Invalid { name: Arc<str>, problem: String },
    /// The upstream's answer to a call, which it has executed, does not follow the protocol.
    #[error("The upstream {name} executed the tool, but its answer is invalid: {problem}")]
    InvalidResult { name: Arc<str>, problem: String },
    /// The upstream sent no answer.
    #[error("{name} did not answer: {problem}; whether the request was done is unknown.")]
    NoAnswer { name: Arc<str>, problem: String },
    /// The upstream refused the request by a status of HTTP.
    #[error("{0}")]
    Status(Box<StatusError>),
    /// The call does not wait for its client's next round any more.
    #[error(
        "{name} no longer waits for this answer: it has got one already, or was told to stop after {} s (upstreams.answer_timeout). To start over, send the request without requestState.",
        .after.as_secs_f64()
    )]
    NoLongerWaits { name: Arc<str>, after: Duration },
    /// The call waits on another instance.
    #[error(
        "{name} waits for this answer on another instance of Larder, or on one that has stopped. The load balancer must send a caller's requests to one instance (see \"Several instances\" in docs/gateway.md). To start over, send the request without requestState."
    )]
    Elsewhere { name: Arc<str> },
    /// The session's process is on another instance.
    #[error(
        "{name} runs for this session on another instance of Larder, so nothing was done here. The load balancer must send all requests with the same Mcp-Session-Id to one instance (see \"Several instances\" in docs/gateway.md)."
    )]
    OtherInstance { name: Arc<str> },
    /// Too many calls wait for their clients.
    #[error(
        "{name} asks the client, but {max} calls wait for answers already ({setting}), so it was told to stop. Answer one of them first."
    )]
    TooManyParked { name: Arc<str>, max: usize, setting: &'static str },
    /// The upstream needs an answer that it does not get.
    #[error("{name} asks the client, and gets no answer: {reason}")]
    Unanswered { name: Arc<str>, reason: String },
    /// The caller must log in there.
    #[error("{0}")]
    Login(Arc<LoginNeeded>),
    /// The caller's login there cannot be used now.
    #[error("{name} cannot be used: its login cannot be used now: {problem}.")]
    StoredLogin { name: Arc<str>, problem: String },
    /// The caller's token cannot be exchanged for one of the upstream.
    #[error("{name} cannot be used with your token: {problem}.")]
    TokenExchange { name: Arc<str>, problem: String },
    /// The upstream's own error.
    #[error("{}", .0.message)]
    Refused(ErrorResponse),
}

/// A response with a status of HTTP that is no success.
#[derive(Debug, Clone)]
pub(super) struct StatusError {
    pub(super) name: Arc<str>,
    pub(super) status: u16,
    /// The value of `Retry-After`, as it was sent.
    pub(super) retry_after: Option<String>,
    /// The beginning of the body, if it is a text.
    pub(super) body: String,
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, status, retry_after, body } = self;
        write!(f, "{name} refused the request with HTTP {status}")?;
        if let Some(after) = retry_after {
            write!(f, " (Retry-After: {after})")?;
        }
        if body.is_empty() { f.write_str(".") } else { write!(f, ": {body}") }
    }
}

impl StatusError {
    /// The error for clients.
    fn into_fault(self) -> Fault {
        let mut data = json!({ "status": self.status });
        if let (Some(after), Value::Object(members)) = (&self.retry_after, &mut data) {
            members.insert("retryAfter".into(), after.as_str().into());
        }
        Fault::Relayed { code: INTERNAL, message: self.to_string(), data: Some(Box::new(data)) }
    }
}

/// Why an upstream could not be started, and when it is tried again.
#[derive(Debug)]
pub(super) struct StartError {
    pub(super) name: Arc<str>,
    /// `exit code 127`, or what else happened. Its standard error, which may have secrets, is in the
    /// log alone.
    pub(super) reason: String,
    pub(super) next_try: Instant,
    /// The caller's problem. Then it is no failure of the upstream.
    pub(super) caller: Option<Box<UpstreamError>>,
}

impl StartError {
    /// The login that is necessary first.
    pub(super) fn login(&self) -> Option<Arc<LoginNeeded>> {
        self.caller.as_ref()?.login()
    }

    fn show(&self) -> String {
        let Self { name, reason, next_try, caller } = self;
        if let Some(error) = caller {
            return error.to_string();
        }

        let wait = next_try.saturating_duration_since(Instant::now());
        let wait = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        format!(
            "{name} could not be started ({reason}). Next try in {wait} s, or with the next call."
        )
    }
}

impl UpstreamError {
    /// The class of the error, for metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            _ if self.is_callers() => "access",
            Self::Start(_) => "start",
            Self::Ended { .. } => "ended",
            Self::TimedOut { .. } => "timeout",
            Self::TooLong { .. } | Self::TooManyValues { .. } | Self::TooManyMessages { .. } => {
                "too_long"
            }
            Self::NoRoom { .. } => "no_room",
            Self::Refused(_) | Self::Status(_) => "refused",
            _ => "error",
        }
    }

    /// The login that is necessary first.
    pub(super) fn login(&self) -> Option<Arc<LoginNeeded>> {
        match self {
            Self::Login(login) => Some(Arc::clone(login)),
            Self::Start(error) => error.login(),
            _ => None,
        }
    }

    /// Whether the upstream does not have the method.
    pub(super) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused(ErrorResponse { code: METHOD_NOT_FOUND, .. }))
    }

    /// Whether only this caller has no access now: it says nothing about the upstream.
    pub(super) fn is_callers(&self) -> bool {
        match self {
            Self::Login(_) | Self::StoredLogin { .. } | Self::TokenExchange { .. } => true,
            Self::Start(error) => error.caller.is_some(),
            _ => false,
        }
    }

    /// This error as that of a call, during which it came.
    pub(super) fn of_call(self) -> Self {
        match self {
            Self::Invalid { name, problem } => Self::InvalidResult { name, problem },
            other => other,
        }
    }

    /// Whether the same call must not be repeated because of it.
    pub(super) fn is_permanent(&self) -> bool {
        matches!(self, Self::InvalidResult { .. })
    }

    /// The error of a whole request. An upstream's own error keeps its meaning.
    pub(super) fn into_fault(self) -> Fault {
        match self {
            Self::Refused(ErrorResponse { code: -32602, message, data }) => {
                Fault::InvalidParams { message, data }
            }
            Self::Refused(ErrorResponse {
                code: MISSING_CAPABILITY,
                data: Some(Value::Object(mut data)),
                ..
            }) if data.get("requiredCapabilities").is_some_and(Value::is_object) => {
                let required = data.remove("requiredCapabilities").unwrap_or_default();
                Fault::MissingCapability { required }
            }
            Self::Refused(ErrorResponse { code, message, data }) => {
                let code = i32::try_from(code).unwrap_or(INTERNAL);
                Fault::Relayed { code, message, data: data.map(Box::new) }
            }
            Self::Status(error) => error.into_fault(),
            other => Fault::Unavailable(other.to_string()),
        }
    }
}

/// A number of bytes, in the largest unit that divides it.
pub(super) fn bytes(bytes: usize) -> String {
    let units = [(1usize << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn errors_say_what_happened_and_what_follows() {
        let name: Arc<str> = "fs".into();
        let next_try = Instant::now() + Duration::from_millis(7_500);
        let reason = "exit code 127".to_owned();
        let start = StartError { name: "fs".into(), reason, next_try, caller: None };
        let refused = StatusError {
            name: name.clone(),
            status: 429,
            retry_after: Some("17".into()),
            body: "slow down".into(),
        };
        let how = "signal 9".into();
        let request = "read".to_owned();
        let max = 64 << 20;
        let after = Duration::from_secs(300);

        for (error, text) in [
            (
                UpstreamError::Start(Arc::new(start)),
                "fs could not be started (exit code 127). Next try in 8 s, or with the next call.",
            ),
            (
                UpstreamError::Status(Box::new(refused)),
                "fs refused the request with HTTP 429 (Retry-After: 17): slow down",
            ),
            (
                UpstreamError::Ended { name: name.clone(), how, request },
                "fs ended (signal 9) during read; whether it was done is unknown.",
            ),
            (
                UpstreamError::TimedOut { name: name.clone(), after },
                "fs did not answer within 300 s (upstreams.call_timeout) and was told to stop.",
            ),
            (
                UpstreamError::TooLong { name, max },
                "fs sent more than 64 MiB (upstreams.max_message); nothing was kept.",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }

        assert_eq!(bytes(1500), "1500 bytes");
    }

    #[test]
    fn an_error_of_an_upstream_keeps_its_words_code_and_data() {
        let refused = |code, data: Option<Value>| {
            let message = "Unknown tool: x".to_owned();
            UpstreamError::Refused(ErrorResponse { code, message, data }).into_fault()
        };
        let relayed = |code, data: Option<Value>| {
            let message = "Unknown tool: x".to_owned();
            Fault::Relayed { code, message, data: data.map(Box::new) }
        };

        for (code, data) in [
            (-32601, None),
            (-32601, Some(json!({ "name": "x" }))),
            (-32021, None),
            (-32021, Some(json!({}))),
            (-32021, Some(json!([]))),
            (-32021, Some(json!({ "requiredCapabilities": null }))),
            (-32021, Some(json!({ "requiredCapabilities": "roots", "hint": 1 }))),
            (-32002, Some(json!({ "uri": "a:b" }))),
            (1, None),
        ] {
            let relayed = relayed(i32::try_from(code).unwrap_or(0), data.clone());
            assert_eq!(refused(code, data), relayed);
            assert_eq!(relayed.to_string(), "Unknown tool: x");
        }

        let required = json!({ "elicitation": {} });
        let named = refused(-32021, Some(json!({ "requiredCapabilities": required })));
        assert_eq!(named, Fault::MissingCapability { required });
    }
}
