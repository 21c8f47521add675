//! [`Problem`]: an error of content over HTTP, and its document (RFC 9457).

use std::{fmt, time::Duration};

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_store::store::StoreError;
use serde_json::{Value, json};

use super::response::json_response;

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The registry of problem types.
const TYPES: &str = "https://iana.org/assignments/http-problem-types";

/// An error with a status and a text for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    /// How long to wait before the request is sent again, if that may help.
    pub(super) retry_after: Option<Duration>,
    /// Headers of the response.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The registered type, if the status alone does not say enough.
    kind: Option<&'static str>,
    /// The members that the problem type adds to the document.
    members: Vec<(&'static str, Value)>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let is_temporary = status == StatusCode::SERVICE_UNAVAILABLE;
        Self {
            status,
            detail: detail.into(),
            retry_after: is_temporary.then_some(Duration::from_secs(1)),
            headers: Vec::new(),
            kind: None,
            members: Vec::new(),
        }
    }

    /// Sets the type, which is in the registry of IANA.
    pub(super) fn of_type(self, kind: &'static str) -> Self {
        Self { kind: Some(kind), ..self }
    }

    pub(super) fn member(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    /// Adds a header to the response, unless the value cannot be one.
    pub(super) fn header(mut self, name: HeaderName, value: String) -> Self {
        if let Ok(value) = HeaderValue::try_from(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub(super) fn headers(mut self, headers: &HeaderMap) -> Self {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        self.headers.extend(headers);
        self
    }

    pub(super) fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// The document, without the headers that every format has.
    pub(super) fn document(&self) -> Response {
        let mut document = document(self.status, &self.detail);
        if let Some(kind) = self.kind {
            document["type"] = format!("{TYPES}#{kind}").into();
        }
        for (name, value) in &self.members {
            document[*name] = value.clone();
        }

        response(self.status, &document)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        error.log_internal();

        let status = match &error {
            error if error.is_not_found() => StatusCode::NOT_FOUND,
            StoreError::ReadOnly { .. } => StatusCode::FORBIDDEN,
            StoreError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            error if error.is_temporary() => StatusCode::SERVICE_UNAVAILABLE,
            StoreError::Corrupt { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };

        Self::new(status, error.to_string())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Content that is not stored may fail with a problem.
impl std::error::Error for Problem {}

/// The document of an error that only a status and a text describe.
pub(super) fn plain(status: StatusCode, detail: &str) -> Response {
    response(status, &document(status, detail))
}

fn response(status: StatusCode, document: &Value) -> Response {
    let mut response = json_response(status, document.to_string().into());
    response.headers_mut().insert(header::CONTENT_TYPE, MEDIA_TYPE);
    response
}

/// The status says all that a program can act on, so the type is `about:blank`, unless there is a
/// registered one.
fn document(status: StatusCode, detail: &str) -> Value {
    let title = status.canonical_reason().unwrap_or_default();
    json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_protocol::Fault;
    use larder_runtime::compute::Busy;
    use larder_store::store::ResourceUri;

    use crate::handler::ResourceError;

    fn uri() -> ResourceUri {
        ResourceUri::parse("a:b").expect("it is a URI")
    }

    #[test]
    fn what_may_succeed_later_says_so() {
        let contended = Problem::from(StoreError::Contended { uri: uri() });
        assert_eq!(contended.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(Problem::from(StoreError::Full("full".into())).status.as_u16(), 507);

        let busy = || Busy::Owner { limit: 2, setting: "compute.queued_per_owner" };
        assert!(matches!(Fault::from(StoreError::Busy(busy())), Fault::Limited { .. }));
        let read = ResourceError::from(StoreError::Busy(busy()));
        assert!(matches!(read, ResourceError::Fault(Fault::Limited { .. })), "{read:?}");
    }

    #[test]
    fn damaged_content_is_no_outage() {
        let damaged = StoreError::Corrupt { uri: uri(), source: "a block is missing".into() };
        assert!(!Fault::from(damaged).is_transient());
    }
}
