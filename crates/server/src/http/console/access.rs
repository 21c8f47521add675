//! The caller of a request of the console: the identity of the token of its session.

use std::fmt::Display;

use http::{HeaderMap, StatusCode};
use larder_oauth::{AuthError, Identity, audit};

use super::{Console, console, problem, session_key::SessionKey, sessions::ConsoleSession};
use crate::{
    admission::{LimitReached, RequestPermit},
    http::{
        Endpoint,
        checks::bearer,
        error::{HttpError, Reply},
        head::Head,
        problem::Problem,
    },
};

/// The caller of an admitted request.
pub(super) struct Caller {
    pub(super) identity: Identity,
    /// None without authentication.
    pub(super) session: Option<(SessionKey, ConsoleSession)>,
    /// Held until there is a response.
    pub(super) permit: RequestPermit,
}

/// Authenticates a request by its session and counts it.
///
/// # Errors
/// 401 if there is no session any more; the caller has sent too many requests.
pub(super) async fn admit(endpoint: &Endpoint, head: &Head) -> Reply<Caller> {
    let (identity, session) = identify(endpoint, console(endpoint), head).await?;
    let permit = count(endpoint, head, &identity)?;
    Ok(Caller { identity, session, permit })
}

/// Counts a request of a caller. The permit is held until there is a response.
///
/// # Errors
/// The caller has sent too many requests, which is logged.
pub(super) fn count(
    endpoint: &Endpoint,
    head: &Head,
    identity: &Identity,
) -> Result<RequestPermit, LimitReached> {
    let permit = endpoint.dispatcher.caller_limits().request(identity);
    permit.inspect_err(|limited| audit::refused(identity, &head.action(), limited))
}

async fn identify(
    endpoint: &Endpoint,
    console: &Console,
    head: &Head,
) -> Reply<(Identity, Option<(SessionKey, ConsoleSession)>)> {
    if !endpoint.authenticator.is_required() {
        return Ok((Identity::local(), None));
    }

    let Some(key) = console.key(head) else {
        return Err(logged_out(console, "Log in first."));
    };

    let found = console.sessions.find(&key).await.map_err(unavailable)?;
    let Some(session) = found else {
        return Err(logged_out(console, "The session has ended. Log in again."));
    };

    match verify(endpoint, head, &session.token).await {
        Ok(identity) => Ok((identity, Some((key, session)))),
        Err(error @ AuthError::Unavailable { .. }) => Err(refused(&error)),
        // The token was revoked or has expired since the login.
        Err(_) => {
            let store = endpoint.dispatcher.store();
            console.sessions.end(store, &key).await.map_err(unavailable)?;

            let text = "The token of this session is no longer accepted. Log in again.";
            Err(logged_out(console, text))
        }
    }
}

/// The identity of a token, which is logged if it is refused.
pub(super) async fn verify(
    endpoint: &Endpoint,
    head: &Head,
    token: &str,
) -> Result<Identity, AuthError> {
    let found = bearer::verify(endpoint, head, token).await;
    found.inspect_err(|error| endpoint.unknown_callers.refused(&head.action(), error))
}

/// The token of a form is not accepted, or cannot be checked.
pub(super) fn refused(error: &AuthError) -> HttpError {
    match error {
        AuthError::Unavailable { retry_after, .. } => HttpError::AuthUnavailable(*retry_after),
        AuthError::Invalid(denied) => HttpError::Token(*denied),
        AuthError::Missing => problem(StatusCode::UNAUTHORIZED, "Enter a token."),
        AuthError::Malformed(why) => {
            problem(StatusCode::UNAUTHORIZED, format!("This is not a token: {why}."))
        }
        AuthError::TooLong => HttpError::TokenTooLong,
    }
}

/// The store of sessions does not respond, or is full.
#[allow(clippy::needless_pass_by_value, reason = "passed to map_err")]
pub(super) fn unavailable<E: Display>(error: E) -> HttpError {
    tracing::error!(%error, "a session of the console cannot be read or written");
    problem(StatusCode::SERVICE_UNAVAILABLE, "Sessions are not available now. Try again shortly.")
}

/// Makes the browser forget its session.
fn logged_out(console: &Console, text: &str) -> HttpError {
    let mut headers = HeaderMap::new();
    console.remove_key(&mut headers);
    Problem::new(StatusCode::UNAUTHORIZED, text).headers(&headers).into()
}
