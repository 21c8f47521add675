//! Authentication and authorization: from a bearer token to an [`Identity`], by
//! the rules for an OAuth resource server (2025-11-25 and 2026-07-28,
//! authorization; OAuth 2.1; RFC 6750, 8707, 9068), and Larder as a [`client`] of
//! authorization servers. Independent of HTTP requests; sends its own requests to
//! authorization servers.

pub mod audit;
mod authenticator;
mod bearer;
pub mod client;
mod error;
mod fetch;
mod id_token;
mod introspection;
mod introspection_queue;
mod issuer;
mod jwks;
mod jwt;
mod keys;
mod oauth;
mod own_tokens;
mod refreshing;
mod static_tokens;
mod url;
mod verified;

pub use authenticator::{
    AuthOptions, AuthOptionsError, Authenticator, IntrospectionLimits, IntrospectionOptions,
    IssuerOptions,
};
pub use bearer::{MAX_TOKEN_BYTES, bearer_token};
pub use error::{AuthError, Denied};
pub use fetch::{FetchError, Fetcher};
pub use id_token::IdTokens;
pub use larder_identity::{
    Grant, Hierarchy, Identity, Owner, Principal, ScopeError, Scopes, Secret, Validity,
};
pub use oauth::install_crypto;
pub use own_tokens::{OwnSession, OwnTokens};
pub use refreshing::Refreshing;
pub use static_tokens::StaticToken;
pub use url::safe_url;
pub use url::{canonical_url, check_url};
