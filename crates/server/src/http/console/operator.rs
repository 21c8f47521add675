//! The permission of operators, and their view of the servers behind this one.

use std::sync::LazyLock;

use http::StatusCode;
use larder_oauth::{Identity, Scopes};
use serde_json::json;

use super::{
    access::{Caller, admit},
    problem,
};
use crate::http::{Endpoint, error::Reply, head::Head, response::value_response, route::Incoming};

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
/// The errors of [`admit`], and 403.
pub(super) async fn admit_operator(endpoint: &Endpoint, head: &Head) -> Reply<Caller> {
    if head.is_from_another_site() {
        return Err(problem(StatusCode::FORBIDDEN, "This request comes from another site."));
    }

    let caller = admit(endpoint, head).await?;
    if !is_operator(&caller.identity) {
        let text = format!("This needs the scope {SCOPE}, which your token lacks.");
        return Err(problem(StatusCode::FORBIDDEN, text));
    }
    Ok(caller)
}

/// The state of each upstream, as this instance knows it.
pub(in crate::http) async fn upstreams(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let _caller = admit_operator(&endpoint, &head).await?;
    let states = endpoint.dispatcher.registry().provider_states();
    Ok(value_response(StatusCode::OK, &json!({ "upstreams": states })))
}
