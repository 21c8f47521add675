//! Bearer tokens: authenticates callers before the body is read. Rejections carry a
//! challenge (RFC 6750, 3; RFC 9728, 5.1).

use std::fmt::Write;

use axum::response::Response;
use http::{HeaderValue, header};
use larder_oauth::{AuthError, Identity, audit, bearer_token};

use crate::{
    admission::RequestPermit,
    http::{
        Endpoint, ProtectedResource,
        error::{HttpError, Reply},
        head::Head,
    },
};

/// A request of a caller who was authenticated and is within their limits.
pub(in crate::http) struct Admission {
    pub(in crate::http) identity: Identity,
    /// Held until there is a response.
    pub(in crate::http) permit: RequestPermit,
}

/// Authenticates the caller and admits the request.
///
/// # Errors
/// The caller is not authenticated, or over a limit.
pub(in crate::http) async fn authenticate(endpoint: &Endpoint, head: &Head) -> Reply<Admission> {
    let identity = identify(endpoint, head).await.map_err(|error| {
        endpoint.unknown_callers.refused(&head.action(), &error);
        refused(&error)
    })?;

    let permit = endpoint.dispatcher.caller_limits().request(&identity);
    let permit =
        permit.inspect_err(|limited| audit::refused(&identity, &head.action(), limited))?;
    Ok(Admission { identity, permit })
}

async fn identify(endpoint: &Endpoint, head: &Head) -> Result<Identity, AuthError> {
    if !endpoint.authenticator.is_required() {
        return Ok(Identity::local());
    }

    // The header alone is read: a token in the query would end up in logs (OAuth 2.1, 5.1).
    let token = bearer_token(head.credentials())?;
    verify(endpoint, head, token).await
}

/// The identity of a token. It has the token itself if that is exchanged for those of an upstream.
///
/// # Errors
/// The token is not accepted, or cannot be checked.
pub(in crate::http) async fn verify(
    endpoint: &Endpoint,
    head: &Head,
    token: &str,
) -> Result<Identity, AuthError> {
    let identity = endpoint.authenticator.authenticate(token, head.peer()).await?;
    if endpoint.dispatcher.registry().exchanges_tokens() {
        return Ok(identity.with_bearer(token));
    }
    Ok(identity)
}

fn refused(error: &AuthError) -> HttpError {
    match error {
        AuthError::Missing => HttpError::NoCredentials,
        AuthError::Malformed(why) => HttpError::Credentials(why),
        AuthError::TooLong => HttpError::TokenTooLong,
        AuthError::Invalid(denied) => HttpError::Token(*denied),
        AuthError::Unavailable { retry_after, .. } => HttpError::AuthUnavailable(*retry_after),
    }
}

/// Adds a challenge to the response to a caller whom another token would help.
pub(in crate::http) fn challenge(endpoint: &Endpoint, error: &HttpError, response: &mut Response) {
    let protected = endpoint.protected.as_ref();
    let challenge = Challenge::new(protected);
    let scope = protected.map_or("", |protected| &protected.scope);

    let challenge = match error {
        // A request without credentials gets no error code (RFC 6750, 3.1).
        HttpError::NoCredentials => challenge.scope(scope),
        HttpError::Credentials(why) => challenge.error("invalid_request").description(why),
        HttpError::Token(denied) => {
            challenge.error("invalid_token").description(&denied.to_string()).scope(scope)
        }
        error => match error.missing_scopes() {
            Some(scopes) => challenge.error("insufficient_scope").scope(&scopes.join(" ")),
            None => return,
        },
    };

    if let Ok(value) = HeaderValue::try_from(challenge.0) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
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
}
