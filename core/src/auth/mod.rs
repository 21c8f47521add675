//! Authentication and authorization: from a bearer token to an [`Identity`], by
//! the rules for an OAuth resource server (2025-11-25 and 2026-07-28,
//! authorization; OAuth 2.1; RFC 6750, 8707, 9068). Independent of HTTP requests;
//! sends its own requests to authorization servers.

pub mod audit;
mod authenticator;
mod bearer;
#[cfg(feature = "oauth")]
mod discovery;
mod error;
#[cfg(feature = "oauth")]
mod fetch;
#[cfg(feature = "login")]
mod id_token;
mod identity;
#[cfg(feature = "oauth")]
mod introspection;
#[cfg(feature = "oauth")]
mod introspection_queue;
#[cfg(feature = "oauth")]
mod issuer;
#[cfg(feature = "oauth")]
mod jwks;
#[cfg(feature = "oauth")]
mod jwt;
#[cfg(feature = "oauth")]
mod keys;
#[cfg(feature = "oauth")]
mod oauth;
#[cfg(feature = "oauth")]
mod own_tokens;
mod principal;
#[cfg(feature = "oauth")]
mod refreshing;
mod scopes;
mod secret;
mod static_tokens;
#[cfg(any(feature = "login", feature = "upstream"))]
mod token_requests;
#[cfg(any(feature = "http", feature = "oauth"))]
mod url;
mod validity;
#[cfg(feature = "oauth")]
mod verified;

pub use authenticator::{
    AuthOptions, AuthOptionsError, Authenticator, IntrospectionLimits, IntrospectionOptions,
    IssuerOptions,
};
pub use bearer::{MAX_TOKEN_BYTES, bearer_token};
#[cfg(any(feature = "login", feature = "upstream"))]
pub use discovery::metadata_urls;
pub use error::{AuthError, Denied};
#[cfg(any(feature = "login", feature = "upstream"))]
pub use fetch::{FetchError, Fetcher};
#[cfg(feature = "login")]
pub use id_token::IdTokens;
pub use identity::Identity;
#[cfg(feature = "oauth")]
pub use oauth::install_crypto;
#[cfg(feature = "oauth")]
pub use own_tokens::{OwnSession, OwnTokens};
pub use principal::{Owner, Principal};
#[cfg(feature = "login")]
pub use refreshing::Refreshing;
pub use scopes::{Grant, Hierarchy, ScopeError, Scopes};
pub use secret::Secret;
pub use static_tokens::StaticToken;
#[cfg(any(feature = "login", feature = "upstream"))]
pub use token_requests::{TokenRequestError, TokenRequests};
#[cfg(any(feature = "login", feature = "upstream"))]
pub use url::safe_url;
#[cfg(any(feature = "http", feature = "oauth"))]
pub use url::{canonical_url, check_url};
pub use validity::Validity;
