//! [`Lifespan`]: when a connection ends.

use std::sync::Arc;

use super::Connection;

type Forget = Box<dyn Fn() -> bool + Send + Sync>;

/// How long a connection lives.
pub(crate) struct Lifespan {
    /// Forgets this connection unless it is in use again; returns whether it did.
    pub(crate) forget: Forget,
    /// Whether it ends with the session of a client, and not before.
    pub(crate) ends_with_session: bool,
    /// Why it takes the place of an earlier one, if the callers do not know.
    pub(crate) anew: Option<String>,
}

impl Connection {
    pub(super) async fn keep_session(&self) {
        if let Some(kept) = &self.kept {
            tokio::select! {
                () = kept.extend() => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Stops the connection if another instance takes its session's process over.
    pub(super) async fn keep_claim(&self) {
        let Some(claim) = &self.claim else { return };
        tokio::select! {
            () = claim.keep() => {
                let upstream = &self.shared.settings.name;
                tracing::warn!(upstream, "another instance has taken a session over");
                self.stop.cancel();
            }
            () = self.stop.cancelled() => {}
        }
    }

    /// Stops the connection when nobody has used it for a while, unless it ends with a session that
    /// still exists.
    pub(super) async fn stop_when_idle(self: Arc<Self>) {
        let Some(idle) = self.shared.settings.idle else { return };
        let mut users = self.users.subscribe();
        loop {
            let unused = async {
                // The sender lives as long as this task, so the wait cannot fail.
                let _ = users.wait_for(|users| users.count == 0).await;
                let used = users.wait_for(|users| users.count > 0);
                tokio::time::timeout(idle, used).await.is_err()
            };
            let is_idle = tokio::select! {
                is_idle = unused => is_idle,
                () = self.stop.cancelled() => return,
            };
            if !is_idle
                || (self.lifespan.ends_with_session && self.has_session().await == Some(true))
            {
                continue;
            }

            if (self.lifespan.forget)() {
                tracing::debug!(upstream = self.shared.settings.name, "an idle process ends");
                self.stop.cancel();
                return;
            }
        }
    }
}
