//! [`Claim`]: a session's process lives on one instance, which has a claim to it.

use std::sync::Arc;

use larder_store::session::Claims;

use super::error::UpstreamError;

/// This instance's claim to a session's process.
pub(super) struct Claim {
    claims: Arc<dyn Claims>,
    session: Arc<str>,
    upstream: Arc<str>,
}

impl Claim {
    /// Claims the process of a session.
    ///
    /// # Errors
    /// Another instance has it, or that cannot be found out.
    pub(super) async fn take(
        claims: &Arc<dyn Claims>,
        session: &Arc<str>,
        upstream: &str,
    ) -> Result<Self, UpstreamError> {
        let claims = Arc::clone(claims);
        let session = Arc::clone(session);
        let upstream = upstream.into();
        let claim = Self { claims, session, upstream };
        let name = || Arc::clone(&claim.upstream);

        match claim.claims.claim(&claim.session, &claim.upstream).await {
            Ok(true) => Ok(claim),
            Ok(false) => Err(UpstreamError::OtherInstance { name: name() }),
            Err(error) => {
                tracing::warn!(upstream = &*claim.upstream, %error, "cannot claim a process");
                let problem = "its process cannot be found. Try again shortly".to_owned();
                Err(UpstreamError::Unavailable { name: name(), problem })
            }
        }
    }

    /// Keeps the claim. Returns when another instance has it.
    pub(super) async fn keep(&self) {
        loop {
            tokio::time::sleep(self.claims.renewal()).await;
            match self.claims.claim(&self.session, &self.upstream).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(upstream = &*self.upstream, %error, "cannot renew a claim");
                }
            }
        }
    }

    /// Gives the claim up. Otherwise it expires.
    pub(super) async fn release(&self) {
        if let Err(error) = self.claims.release(&self.session, &self.upstream).await {
            tracing::debug!(upstream = &*self.upstream, %error, "cannot release a claim");
        }
    }
}
