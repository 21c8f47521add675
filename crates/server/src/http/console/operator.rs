//! Who is an operator, and what operators see of the servers behind this one.

use std::sync::{Arc, LazyLock};

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{StatusCode, request::Parts};
use larder_oauth::{Identity, Scopes};
use serde_json::json;

use super::{
    access::{Caller, admit},
    origin::is_from_another_site,
    problem,
};
use crate::http::{Endpoint, error::json_response};

/// The scope of operators.
const SCOPE: &str = "larder:admin";

static REQUIRED: LazyLock<Scopes> = LazyLock::new(|| Scopes::granted(SCOPE));

/// Whether a caller is an operator. Without authentication, every caller is.
pub(super) fn is_operator(identity: &Identity) -> bool {
    identity.allows(&REQUIRED)
}

/// Authenticates a request as [`admit`] does, and requires an operator.
///
/// # Errors
/// The response.
pub(super) async fn admit_operator(
    endpoint: &Endpoint,
    head: &Parts,
) -> Result<Caller, Box<Response>> {
    if is_from_another_site(&head.headers) {
        let text = "This request comes from another site.";
        return Err(Box::new(problem(StatusCode::FORBIDDEN, text)));
    }

    let caller = admit(endpoint, head).await?;
    if !is_operator(&caller.identity) {
        let text = format!("This needs the scope {SCOPE}, which your token lacks.");
        return Err(Box::new(problem(StatusCode::FORBIDDEN, &text)));
    }
    Ok(caller)
}

/// The state of each upstream, as this instance knows it.
pub(super) async fn upstreams(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let _caller = match admit_operator(&endpoint, &head).await {
        Ok(caller) => caller,
        Err(response) => return *response,
    };

    let states = endpoint.dispatcher.registry().provider_states();
    let body = json!({ "upstreams": states }).to_string();
    json_response(StatusCode::OK, body.into())
}
