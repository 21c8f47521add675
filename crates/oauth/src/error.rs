//! Authentication errors.

use std::time::Duration;

/// Why a request is not authenticated. `http` maps it to a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request has no credentials (401, without an error code: RFC 6750,
    /// section 3.1).
    #[error("no credentials")]
    Missing,
    /// The Authorization header is malformed (400 `invalid_request`).
    #[error("{0}")]
    Malformed(&'static str),
    /// The token is too long (431).
    #[error("the token is longer than {} bytes", super::MAX_TOKEN_BYTES)]
    TooLong,
    /// The token is not accepted (401 `invalid_token`).
    #[error("{0}")]
    Invalid(#[from] Denied),
    /// The token cannot be verified now (503).
    #[error("{reason}")]
    Unavailable {
        /// The problem, for the log only.
        reason: String,
        /// The delay before a retry.
        retry_after: Duration,
    },
}

/// Why a token is not accepted. The texts have no quotes and no part of the
/// token, so that they can be sent as an `error_description`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Not a token of any accepted kind.
    #[error("the token is unknown")]
    Unknown,
    /// Three parts, but not a JWT.
    #[error("the token is malformed")]
    Malformed,
    /// Encrypted (five parts).
    #[error("encrypted tokens are not accepted")]
    Encrypted,
    /// An ID token, an assertion, or without a type (RFC 9068, section 4).
    #[error("the token is not an access token: its typ must be at+jwt")]
    Type,
    /// `crit` lists extensions; none is supported (RFC 7515, section 4.1.11).
    #[error("the token has critical extensions that are not supported")]
    Critical,
    /// `none`, symmetric, or not the algorithm of the key.
    #[error("the token's algorithm is not accepted")]
    Algorithm,
    /// The issuer has no such key.
    #[error("the token's key is unknown")]
    Key,
    /// No `kid`, and the issuer has more than one key for the algorithm.
    #[error("the token names no key")]
    NoKey,
    /// The signature does not match.
    #[error("the token's signature is wrong")]
    Signature,
    /// A required claim is missing, or a claim has the wrong type.
    #[error("the token's {0} is missing or malformed")]
    Claim(&'static str),
    /// Not one of the configured issuers.
    #[error("the token's issuer is not trusted")]
    Issuer,
    /// Issued for another resource (RFC 8707, section 2).
    #[error("the token is not for this resource")]
    Audience,
    /// Of an ID token: given to several parties, and not for this client (`azp`).
    #[error("the ID token is not for this client: its azp is another one")]
    AuthorizedParty,
    /// Of an ID token: another kind of token.
    #[error("the token is not an ID token: its typ must be JWT")]
    IdTokenType,
    /// Of an ID token: given for another login.
    #[error("the ID token is for another login: its nonce is another one")]
    Nonce,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// `nbf` or `iat` is in the future.
    #[error("the token is not valid yet")]
    NotYet,
    /// Bound to a key (RFC 7800), which a bearer token does not prove.
    #[error("the token is bound to a key and cannot be used as a bearer token")]
    Bound,
    /// Not active according to introspection (RFC 7662, section 2.2).
    #[error("the token is not active")]
    Inactive,
}
