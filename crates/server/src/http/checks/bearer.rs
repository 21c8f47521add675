//! Bearer tokens: authenticates callers before the body is read. Rejections carry a
//! challenge (RFC 6750, 3; RFC 9728, 5.1).

use std::fmt::Write;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header, request::Parts};
use larder_oauth::{AuthError, Identity, audit, bearer_token};

use super::instrument::peer;
use crate::{
    admission::RequestPermit,
    era::Era,
    http::{
        Endpoint, ProtectedResource,
        error::{self, HttpError, MissingScopes},
    },
};

/// Authenticates the caller and admits the request.
///
/// # Errors
/// The response to an unauthenticated or limited caller.
pub(in crate::http) async fn authenticate(
    endpoint: &Endpoint,
    head: &Parts,
) -> Result<(Identity, RequestPermit), Box<Response>> {
    let identity = identify(endpoint, head).await.map_err(|error| {
        endpoint.unknown_callers.refused(&audited_action(head), &error);
        challenge_response(&error, endpoint.protected.as_ref())
    })?;

    let permit = endpoint.dispatcher.caller_limits().request(&identity).map_err(|limited| {
        audit::refused(&identity, &audited_action(head), &limited);
        error::fault_response(None, &limited.into(), Era::Legacy)
    })?;

    Ok((identity, permit))
}

/// Adds a challenge that names the required scopes, if the token lacks some.
pub(in crate::http) fn challenge(endpoint: &Endpoint, response: &mut Response) {
    if let Some(MissingScopes(scope)) = response.extensions_mut().remove() {
        let challenge = Challenge::new(endpoint.protected.as_ref()).error("insufficient_scope");
        challenge.scope(&scope).insert_into(response);
    }
}

/// The action for the audit log, without the query, which may contain a token.
fn audited_action(head: &Parts) -> String {
    format!("{} {}", head.method, head.uri.path())
}

async fn identify(endpoint: &Endpoint, head: &Parts) -> Result<Identity, AuthError> {
    let authenticator = &endpoint.authenticator;
    if !authenticator.is_required() {
        return Ok(Identity::local());
    }

    // The header alone is read: a token in the query would end up in logs (OAuth 2.1, 5.1).
    let values = head.headers.get_all(header::AUTHORIZATION);
    let token = bearer_token(values.iter().map(HeaderValue::as_bytes))?;
    verify(endpoint, head, token).await
}

/// The identity of a token. It has the token itself if that is exchanged for those of an upstream.
///
/// # Errors
/// The token is not accepted, or cannot be checked.
pub(in crate::http) async fn verify(
    endpoint: &Endpoint,
    head: &Parts,
    token: &str,
) -> Result<Identity, AuthError> {
    let identity = endpoint.authenticator.authenticate(token, peer(&head.extensions)).await?;
    if endpoint.dispatcher.registry().exchanges_tokens() {
        return Ok(identity.with_bearer(token));
    }
    Ok(identity)
}

fn challenge_response(error: &AuthError, protected: Option<&ProtectedResource>) -> Response {
    let challenge = Challenge::new(protected);
    let scope = protected.map_or("", |protected| &protected.scope);

    match error {
        // A request without credentials gets no error code (RFC 6750, 3.1).
        AuthError::Missing => challenge.scope(scope).response(HttpError::NoCredentials),
        AuthError::Malformed(why) => challenge
            .error("invalid_request")
            .description(why)
            .response(HttpError::Credentials(why)),
        AuthError::TooLong => HttpError::TokenTooLong.into_response(),
        AuthError::Invalid(denied) => challenge
            .error("invalid_token")
            .description(&denied.to_string())
            .scope(scope)
            .response(HttpError::Token(*denied)),
        // No challenge: another token would not help.
        AuthError::Unavailable { retry_after, .. } => {
            let mut response = HttpError::AuthUnavailable.into_response();
            error::set_retry_after(&mut response, *retry_after);
            response
        }
    }
}

/// Builds a `WWW-Authenticate` header. The values are the server's own, without quotes and
/// backslashes.
struct Challenge(String);

impl Challenge {
    fn new(protected: Option<&ProtectedResource>) -> Self {
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
            // Writing to a string never fails.
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

    fn response(self, error: HttpError) -> Response {
        let mut response = error.into_response();
        self.insert_into(&mut response);
        response
    }

    fn insert_into(self, response: &mut Response) {
        if let Ok(value) = HeaderValue::try_from(self.0) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
    }
}
