//! The endpoints for clients: JSON, readable by pages of any origin, because nothing depends on
//! cookies.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use larder_login::{ErrorCode, MAX_PARAMETER_BYTES, MAX_REGISTRATION, Problem};
use serde_json::json;

use super::{
    super::{error::Reply, response::value_response, route::Incoming},
    body, login_server,
};

const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=300");
const FORM: &str = "application/x-www-form-urlencoded";

/// The metadata of the authorization server (RFC 8414).
pub(in crate::http) async fn metadata(Incoming { endpoint, .. }: Incoming) -> Reply {
    Ok(cached(value_response(StatusCode::OK, &login_server(&endpoint)?.metadata())))
}

/// The public keys (RFC 7517).
pub(in crate::http) async fn keys(Incoming { endpoint, .. }: Incoming) -> Reply {
    let keys = login_server(&endpoint)?.jwk_set().await?;
    Ok(cached(value_response(StatusCode::OK, &keys)))
}

/// Registers a client (RFC 7591).
pub(in crate::http) async fn register(incoming: Incoming) -> Reply {
    let Incoming { endpoint, head, body: sent } = incoming;
    let registration = body(&endpoint, &head, sent, MAX_REGISTRATION).await?;
    let registered = login_server(&endpoint)?.register(&registration, head.peer())?;
    Ok(value_response(StatusCode::CREATED, &registered))
}

/// Gives tokens for a code or a refresh token.
pub(in crate::http) async fn token(incoming: Incoming) -> Reply {
    let login = login_server(&incoming.endpoint)?;
    let peer = incoming.head.peer();
    let has_credentials = has_credentials(&incoming);

    let tokens = login.token(form(incoming).await?, has_credentials, peer).await?;
    Ok(value_response(StatusCode::OK, &tokens))
}

/// Revokes a token (RFC 7009).
pub(in crate::http) async fn revoke(incoming: Incoming) -> Reply {
    let login = login_server(&incoming.endpoint)?;
    let peer = incoming.head.peer();
    let has_credentials = has_credentials(&incoming);

    login.revoke(&form(incoming).await?, has_credentials, peer).await?;
    Ok(value_response(StatusCode::OK, &json!({})))
}

/// The form of a request, which must not be one that a page could send without a preflight as
/// something else.
async fn form(Incoming { endpoint, head, body: sent }: Incoming) -> Reply<Vec<u8>> {
    if !head.media_type().eq_ignore_ascii_case(FORM) {
        let text = format!("The content type must be {FORM}.");
        return Err(Problem::Refused(ErrorCode::InvalidRequest, text).into());
    }

    body(&endpoint, &head, sent, MAX_PARAMETER_BYTES).await
}

/// Whether a client shows credentials, which none of ours has.
fn has_credentials(incoming: &Incoming) -> bool {
    incoming.head.has(&header::AUTHORIZATION)
}

fn cached(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, CACHED);
    response
}
