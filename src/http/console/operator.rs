//! What operators see: the servers behind this one.

use std::sync::{Arc, LazyLock};

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use serde_json::json;

use super::{access::admit, origin::is_from_another_site, problem};
use crate::{
    auth::{Identity, Scopes},
    http::{Endpoint, error::json_response},
};

/// The scope of operators.
const SCOPE: &str = "larder:admin";

static REQUIRED: LazyLock<Scopes> = LazyLock::new(|| Scopes::granted(SCOPE));

/// Whether a caller is an operator. Without authentication, every caller is.
pub(super) fn is_operator(identity: &Identity) -> bool {
    identity.allows(&REQUIRED)
}

/// The state of each upstream, as this instance knows it.
pub(super) async fn upstreams(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    if is_from_another_site(&head.headers) {
        return problem(StatusCode::FORBIDDEN, "This request comes from another site.");
    }
    let caller = match admit(&endpoint, &head).await {
        Ok(caller) => caller,
        Err(response) => return *response,
    };
    if !is_operator(&caller.identity) {
        let text = format!("This needs the scope {SCOPE}, which your token lacks.");
        return problem(StatusCode::FORBIDDEN, &text);
    }
    let states = endpoint.dispatcher.registry().provider_states();
    let body = json!({ "upstreams": states }).to_string();
    json_response(StatusCode::OK, body.into())
}
