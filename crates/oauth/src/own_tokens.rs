//! [`OwnTokens`]: access tokens that this server issues itself.

use std::{fmt, time::Duration};

use async_trait::async_trait;

use super::Principal;

/// How long a verified token is cached. After its session ends, it is accepted for that long.
pub(super) const CACHE_TTL: Duration = Duration::from_secs(10);

/// The issuer of this server's own access tokens, in the same process.
#[async_trait]
pub trait OwnTokens: fmt::Debug + Send + Sync + 'static {
    /// The public keys, as a JWK set.
    async fn jwk_set(&self) -> Result<Vec<u8>, String>;

    /// The session of a token's `sid`; `None` if it has ended.
    async fn session(&self, id: &str) -> Result<Option<OwnSession>, String>;
}

/// The session that a token stands for.
#[derive(Debug, Clone)]
pub struct OwnSession {
    /// The user, by the issuer and the subject of the identity provider.
    pub principal: Principal,
    /// The user's groups.
    pub groups: Vec<String>,
    /// The client, for the audit log.
    pub client: String,
}
