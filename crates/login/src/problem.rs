//! [`Problem`]: why a request to the authorization server fails.

use std::{fmt, time::Duration};

use larder_store::vault::VaultError;

use super::ProviderError;

/// How long a client waits before it tries again while something does not respond.
const RETRY: Duration = Duration::from_secs(5);

/// Why a request fails. The texts are for users and developers of clients, and have no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The request is refused.
    #[error("{1}")]
    Refused(ErrorCode, String),
    /// There were too many of the kind from this address.
    #[error("Too many requests from this address. Try again in a moment.")]
    Limited(Duration),
    /// Too many client metadata documents are being fetched.
    #[error("Too many client metadata documents are being fetched{0}. Try again in a moment.")]
    Busy(FetchLimit, Duration),
    /// Something that the login needs does not respond.
    #[error("The login is not available at the moment. Try again in a moment.")]
    Unavailable(Duration),
}

/// A limit of the client metadata documents that are fetched at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchLimit {
    /// The limit of the address that a request comes from.
    Address,
    /// The limit of this host, which has the document.
    Host(String),
    /// The limit of all clients together.
    Total,
}

impl fmt::Display for FetchLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str(" for clients of this address"),
            Self::Host(host) => write!(f, " from {host}"),
            Self::Total => Ok(()),
        }
    }
}

/// The error codes of RFC 6749, 7591 and 8707.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The request is malformed.
    InvalidRequest,
    /// The client is unknown, or shows credentials, which none of ours has.
    InvalidClient,
    /// The code or token is not valid, or not for this client.
    InvalidGrant,
    /// The user may have none of the scopes.
    InvalidScope,
    /// Only `authorization_code` and `refresh_token` are supported.
    UnsupportedGrantType,
    /// Only `code` is supported.
    UnsupportedResponseType,
    /// The resource is not this server.
    InvalidTarget,
    /// The user or the policy says no.
    AccessDenied,
    /// The user would have to be asked.
    InteractionRequired,
    /// A redirect URI cannot be registered.
    InvalidRedirectUri,
    /// Something else cannot be registered.
    InvalidClientMetadata,
    /// The provider does not respond.
    TemporarilyUnavailable,
}

impl ErrorCode {
    /// The code as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidScope => "invalid_scope",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidTarget => "invalid_target",
            Self::AccessDenied => "access_denied",
            Self::InteractionRequired => "interaction_required",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
        }
    }
}

impl Problem {
    pub(super) fn refused(code: ErrorCode, text: impl Into<String>) -> Self {
        Self::Refused(code, text.into())
    }

    pub(super) fn request(text: impl Into<String>) -> Self {
        Self::refused(ErrorCode::InvalidRequest, text)
    }

    pub(super) fn grant(text: impl Into<String>) -> Self {
        Self::refused(ErrorCode::InvalidGrant, text)
    }

    pub(super) fn unavailable(what: &str, error: &dyn std::fmt::Display) -> Self {
        tracing::warn!(%error, "a login cannot go on: {what}");
        Self::Unavailable(RETRY)
    }
}

impl From<VaultError> for Problem {
    fn from(error: VaultError) -> Self {
        Self::unavailable("the store does not respond", &error)
    }
}

impl From<ProviderError> for Problem {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Unavailable(_) => Self::unavailable("the provider", &error),
            ProviderError::Refused(_) => {
                tracing::warn!(%error, "a login has failed");
                let text = "The identity provider does not confirm this login.";
                Self::refused(ErrorCode::AccessDenied, text)
            }
        }
    }
}
