//! The login of a caller at an upstream, for terminals.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;

use crate::{
    http::{
        checks::Admission,
        error::{HttpError, Reply},
        response::value_response,
        route::Incoming,
    },
    registry::ProviderLogin,
};

/// Whether the caller is logged in.
pub(in crate::http) async fn show(incoming: Incoming, admission: Admission) -> Reply {
    let login = login(&incoming)?;
    let is_logged_in = login.is_logged_in(admission.identity.owner()).await?;
    Ok(value_response(StatusCode::OK, &json!({ "logged_in": is_logged_in })))
}

/// The link for a login of the caller.
pub(in crate::http) async fn link(incoming: Incoming, admission: Admission) -> Reply {
    let login = login(&incoming)?;
    Ok(value_response(StatusCode::OK, &json!({ "url": login.link(&admission.identity) })))
}

pub(in crate::http) async fn log_out(incoming: Incoming, admission: Admission) -> Reply {
    let login = login(&incoming)?;
    login.log_out(admission.identity.owner()).await?;
    Ok(value_response(StatusCode::OK, &json!({ "logged_in": false })))
}

fn login(incoming: &Incoming) -> Reply<Arc<dyn ProviderLogin>> {
    let endpoint = &incoming.endpoint;
    let login = endpoint.dispatcher.registry().login(&incoming.segment_from_end(1));
    login.ok_or_else(|| HttpError::Path(endpoint.options().path.clone()))
}
