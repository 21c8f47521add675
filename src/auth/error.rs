//! Why credentials are not accepted.

use std::time::Duration;

/// What becomes of a request whose credentials do not show who calls. How
/// HTTP says it stands in `http`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// There are none (401, without an error code: RFC 6750, 3.1).
    #[error("no credentials")]
    Missing,
    /// The Authorization header cannot be read (400 `invalid_request`).
    #[error("{0}")]
    Malformed(&'static str),
    /// The token is longer than any honest one (431).
    #[error("the token is longer than {} bytes", super::MOST_TOKEN_BYTES)]
    TooLong,
    /// The token is no good (401 `invalid_token`).
    #[error("{0}")]
    Invalid(#[from] Denied),
    /// Whether the token is good cannot be told now (503).
    #[error("{reason}")]
    Unavailable {
        /// What cannot be reached; for the log.
        reason: String,
        /// When trying again makes sense.
        retry_after: Duration,
    },
}

/// What is wrong with a token. The texts have no quotes and nothing of the
/// token in them, so that they can be told as an `error_description`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token of any kind that is accepted here.
    #[error("the token is not known here")]
    Unknown,
    /// Three parts, but no JWT.
    #[error("the token is malformed")]
    Malformed,
    /// Encrypted (five parts).
    #[error("encrypted tokens are not accepted")]
    Encrypted,
    /// An ID token, an assertion, or no type at all (RFC 9068, 4).
    #[error("the token is no access token: its typ must be at+jwt")]
    Type,
    /// `crit` names extensions; none is understood (RFC 7515, 4.1.11).
    #[error("the token has critical extensions that are not understood")]
    Critical,
    /// `none`, symmetric, or not the algorithm of the key.
    #[error("the token's algorithm is not accepted")]
    Algorithm,
    /// The issuer has no such key.
    #[error("the token's key is not known")]
    Key,
    /// No `kid`, and more than one key that it could be.
    #[error("the token names no key")]
    NoKey,
    /// Signed by somebody else, or changed since.
    #[error("the token's signature is wrong")]
    Signature,
    /// Missing, or of the wrong type.
    #[error("the token's {0} is missing or malformed")]
    Claim(&'static str),
    /// Not one of the issuers.
    #[error("the token's issuer is not trusted here")]
    Issuer,
    /// Issued for somebody else (RFC 8707, 2).
    #[error("the token is not for this resource")]
    Audience,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// `nbf` or `iat` lies in the future.
    #[error("the token is not valid yet")]
    NotYet,
    /// Bound to a key that a bearer does not show (RFC 7800).
    #[error("the token is bound to a key and cannot be used as a bearer token")]
    Bound,
    /// The authorization server says that it is not active (RFC 7662, 2.2).
    #[error("the token is not active")]
    Inactive,
}
