//! Bearer tokens: who calls is found out before the body is read, and what is
//! refused for want of a token says what token it takes (RFC 6750, 3;
//! RFC 9728, 5.1).

use std::fmt::Write;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header, request::Parts};

use super::{
    Endpoint, Protected,
    error::{self, HttpError, StepUp},
};
use crate::{
    auth::{AuthError, Identity, audit, bearer_token},
    era::Era,
};

/// Finds out who calls.
///
/// # Errors
/// The answer to whoever may not.
pub(super) async fn check(endpoint: &Endpoint, head: &Parts) -> Result<Identity, Box<Response>> {
    let identity = identify(endpoint, &head.headers).await.map_err(|error| {
        audit::refused_unknown(&what(head), &error);
        refuse(&error, endpoint.protected.as_ref())
    })?;
    endpoint.dispatcher.principals().request(&identity).map_err(|limited| {
        audit::refused(&identity, &what(head), &limited);
        error::fault(None, &limited.into(), Era::Legacy)
    })?;
    Ok(identity)
}

/// Says which scopes it takes, where it takes more than the token has.
pub(super) fn challenge(endpoint: &Endpoint, response: &mut Response) {
    if let Some(StepUp(scope)) = response.extensions_mut().remove() {
        let challenge = Challenge::new(endpoint.protected.as_ref()).error("insufficient_scope");
        challenge.scope(&scope).put_on(response);
    }
}

/// For the audit log. Without the query, which may have a token in it.
fn what(head: &Parts) -> String {
    format!("{} {}", head.method, head.uri.path())
}

async fn identify(endpoint: &Endpoint, headers: &HeaderMap) -> Result<Identity, AuthError> {
    let authenticator = &endpoint.authenticator;
    if !authenticator.is_required() {
        return Ok(Identity::local());
    }
    // The header only: a token in the query ends up in logs (OAuth 2.1, 5.1).
    let values = headers.get_all(header::AUTHORIZATION);
    let token = bearer_token(values.iter().map(HeaderValue::as_bytes))?;
    authenticator.identify(token).await
}

fn refuse(error: &AuthError, protected: Option<&Protected>) -> Response {
    let challenge = Challenge::new(protected);
    let scope = protected.map_or("", |protected| &protected.scope);
    match error {
        // No error code where nothing came: there was nothing wrong with it.
        AuthError::Missing => challenge.scope(scope).with(HttpError::NoCredentials),
        AuthError::Malformed(why) => {
            challenge.error("invalid_request").description(why).with(HttpError::Credentials(why))
        }
        AuthError::TooLong => HttpError::TokenTooLong.into_response(),
        AuthError::Invalid(denied) => challenge
            .error("invalid_token")
            .description(&denied.to_string())
            .scope(scope)
            .with(HttpError::Token(*denied)),
        // No challenge: another token would not help.
        AuthError::Unavailable { retry_after, .. } => {
            let mut response = HttpError::CannotCheck.into_response();
            error::retry(&mut response, *retry_after);
            response
        }
    }
}

/// A `WWW-Authenticate` header in the making. What goes in is ours and has
/// neither quotes nor backslashes.
struct Challenge(String);

impl Challenge {
    fn new(protected: Option<&Protected>) -> Self {
        Self(match protected {
            Some(protected) => {
                format!("Bearer resource_metadata=\"{}\"", protected.metadata_url)
            }
            // A challenge needs a parameter (RFC 9110, 11.3).
            None => "Bearer realm=\"larder\"".into(),
        })
    }

    fn parameter(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(self.0, ", {name}=\"{value}\"");
        }
        self
    }

    fn error(self, code: &str) -> Self {
        self.parameter("error", code)
    }

    fn description(self, text: &str) -> Self {
        self.parameter("error_description", text)
    }

    fn scope(self, scope: &str) -> Self {
        self.parameter("scope", scope)
    }

    fn with(self, error: HttpError) -> Response {
        let mut response = error.into_response();
        self.put_on(&mut response);
        response
    }

    fn put_on(self, response: &mut Response) {
        if let Ok(value) = HeaderValue::try_from(self.0) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
    }
}
