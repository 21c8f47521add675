//! Errors of content over HTTP as problem documents (RFC 9457).

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use larder_protocol::Fault;
use larder_store::store::StoreError;
use serde_json::{Map, Value, json};

use super::error::{ErrorText, fault_response, json_response, set_retry_after};
use crate::era::Era;

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The registry of problem types.
const TYPES: &str = "https://iana.org/assignments/http-problem-types";

/// An error with a status and a text for people and programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    /// The registered type, if the status alone does not say enough.
    kind: Option<&'static str>,
    /// What the type adds, as members of the document.
    members: Map<String, Value>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), kind: None, members: Map::new() }
    }

    /// The same of a type in the registry of IANA.
    pub(super) fn of_type(self, kind: &'static str) -> Self {
        Self { kind: Some(kind), ..self }
    }

    pub(super) fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
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

/// A response that ends a request early.
pub(super) struct Refused(pub(super) Box<Response>);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem.into_response()))
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Problem::from(error).into()
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self(Box::new(fault_response(None, &fault, Era::Legacy)))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut document = document(self.status, &self.detail);
        if let Some(kind) = self.kind {
            document["type"] = format!("{TYPES}#{kind}").into();
        }
        for (name, value) in self.members {
            document[name] = value;
        }

        let (status, document) = (self.status, document.to_string());
        let mut response = json_response(status, document.into());
        response.headers_mut().insert(header::CONTENT_TYPE, MEDIA_TYPE);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            set_retry_after(&mut response, std::time::Duration::from_secs(1));
        }
        response
    }
}

/// The same response, with a problem document in place of a JSON-RPC error.
pub(super) fn instead_of_json_rpc(mut response: Response) -> Response {
    let Some(ErrorText(detail)) = response.extensions_mut().remove() else { return response };
    let document = document(response.status(), &detail);
    response.headers_mut().insert(header::CONTENT_TYPE, MEDIA_TYPE);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.map(|_| document.to_string().into())
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
