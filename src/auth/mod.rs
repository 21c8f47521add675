//! Authentication and authorization: from a bearer token to an [`Identity`], by
//! the rules for an OAuth resource server (2025-11-25 and 2026-07-28,
//! authorization; OAuth 2.1; RFC 6750, 8707, 9068). Independent of HTTP requests;
//! sends its own requests to authorization servers.

pub mod audit;
mod authenticator;
mod bearer;
mod discovery;
mod error;
mod fetch;
mod identity;
mod introspection;
mod issuer;
mod jwks;
mod jwt;
mod keys;
mod principal;
mod scopes;
mod static_tokens;
mod verified;

pub use authenticator::{
    AuthOptions, AuthOptionsError, Authenticator, IntrospectionOptions, IssuerOptions,
    install_crypto,
};
pub use bearer::{MOST_TOKEN_BYTES, bearer_token};
pub use error::{AuthError, Denied};
pub use fetch::{canonical_url, check_url};
pub use identity::Identity;
pub use introspection::Secret;
pub use principal::{Owner, Principal};
pub use scopes::{Grant, Hierarchy, ScopeError, Scopes};
pub use static_tokens::StaticToken;
