//! Who sends a request of the console: the identity of the token of its session.

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use http::{StatusCode, request::Parts};
use larder_oauth::{AuthError, Identity, audit};

use super::{Console, console, problem, session_key::Key, sessions::Session};
use crate::{
    admission::{LimitReached, RequestPermit},
    era::Era,
    http::{
        Endpoint,
        checks::bearer,
        error::{HttpError, fault_response, set_retry_after},
    },
};

/// The caller of an admitted request.
pub(super) struct Caller {
    pub(super) identity: Identity,
    /// None without authentication.
    pub(super) session: Option<(Key, Session)>,
    /// Held until there is a response.
    pub(super) permit: RequestPermit,
}

/// Authenticates a request by its session and counts it.
///
/// # Errors
/// The response: 401 if there is no session any more.
pub(super) async fn admit(endpoint: &Endpoint, head: &Parts) -> Result<Caller, Box<Response>> {
    let console = console(endpoint);
    let (identity, session) = identify(endpoint, console, head).await?;
    let permit = count(endpoint, head, &identity).map_err(limited)?;
    Ok(Caller { identity, session, permit })
}

/// Counts a request of a caller. The permit is held until there is a response.
///
/// # Errors
/// The caller has sent too many requests, which is logged.
pub(super) fn count(
    endpoint: &Endpoint,
    head: &Parts,
    identity: &Identity,
) -> Result<RequestPermit, LimitReached> {
    let permit = endpoint.dispatcher.caller_limits().request(identity);
    permit.inspect_err(|limited| audit::refused(identity, &action(head), limited))
}

/// The response to a caller who has sent too many requests.
#[allow(clippy::unnecessary_box_returns, reason = "passed to map_err")]
pub(super) fn limited(limited: LimitReached) -> Box<Response> {
    Box::new(fault_response(None, &limited.into(), Era::Legacy))
}

async fn identify(
    endpoint: &Endpoint,
    console: &Console,
    head: &Parts,
) -> Result<(Identity, Option<(Key, Session)>), Box<Response>> {
    if !endpoint.authenticator.is_required() {
        return Ok((Identity::local(), None));
    }

    let Some(key) = console.key(&head.headers) else {
        return Err(Box::new(logged_out(console, "Log in first.")));
    };

    let found = console.sessions.find(&key).await.map_err(unavailable)?;
    let Some(session) = found else {
        return Err(Box::new(logged_out(console, "The session has ended. Log in again.")));
    };

    match verify(endpoint, head, &session.token).await {
        Ok(identity) => Ok((identity, Some((key, session)))),
        Err(error @ AuthError::Unavailable { .. }) => Err(Box::new(refused(&error))),
        // The token was revoked or has expired since the login.
        Err(_) => {
            let store = endpoint.dispatcher.store();
            console.sessions.end(store, &key).await.map_err(unavailable)?;

            let text = "The token of this session is no longer accepted. Log in again.";
            Err(Box::new(logged_out(console, text)))
        }
    }
}

/// The identity of a token, which is logged if it is refused.
pub(super) async fn verify(
    endpoint: &Endpoint,
    head: &Parts,
    token: &str,
) -> Result<Identity, AuthError> {
    let found = bearer::verify(endpoint, head, token).await;
    found.inspect_err(|error| endpoint.unknown_callers.refused(&action(head), error))
}

/// The response to a token that is not accepted, or cannot be checked.
pub(super) fn refused(error: &AuthError) -> Response {
    match error {
        AuthError::Unavailable { retry_after, .. } => {
            let text = HttpError::AuthUnavailable.to_string();
            let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, &text);
            set_retry_after(&mut response, *retry_after);
            response
        }

        AuthError::Invalid(denied) => {
            problem(StatusCode::UNAUTHORIZED, &HttpError::Token(*denied).to_string())
        }
        AuthError::Missing => problem(StatusCode::UNAUTHORIZED, "Enter a token."),
        AuthError::Malformed(why) => {
            problem(StatusCode::UNAUTHORIZED, &format!("This is not a token: {why}."))
        }
        AuthError::TooLong => HttpError::TokenTooLong.into_response(),
    }
}

/// The response when the store of sessions does not respond, or is full.
#[allow(
    clippy::needless_pass_by_value,
    clippy::unnecessary_box_returns,
    reason = "passed to map_err"
)]
pub(super) fn unavailable<E: Display>(error: E) -> Box<Response> {
    tracing::error!(%error, "a session of the console cannot be read or written");
    let text = "Sessions are not available now. Try again shortly.";
    Box::new(problem(StatusCode::SERVICE_UNAVAILABLE, text))
}

fn logged_out(console: &Console, text: &str) -> Response {
    let mut response = problem(StatusCode::UNAUTHORIZED, text);
    console.remove_key(response.headers_mut());
    response
}

fn action(head: &Parts) -> String {
    format!("{} {}", head.method, head.uri.path())
}
