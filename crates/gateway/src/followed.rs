//! A client follows a resource of an upstream.

use std::{sync::Arc, time::Duration};

use larder_protocol::Fault;
use larder_server::registry::{Followed, Subscriber};
use larder_store::store::ResourceUri;

use super::{
    connections::InUse,
    subscriptions::{Follower, Subscriptions, Target},
};

/// How long a client waits for the upstream to take a subscription. It takes it later if it
/// takes longer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A client follows a resource until this is dropped.
struct Following {
    /// Keeps the process running.
    in_use: InUse,
    own: String,
    follower: Follower,
    /// Whether the session ends it instead.
    is_of_session: bool,
}

impl Following {
    /// The subscription as it lasts once the upstream has taken it: in a session, until the session
    /// ends or unsubscribes.
    fn lasting(mut self) -> Followed {
        match self.follower {
            Follower::Session(_) => {
                self.is_of_session = true;
                Box::new(())
            }
            Follower::Stream(_) => Box::new(self),
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if !self.is_of_session {
            self.in_use.subscriptions.remove(&self.own, &self.follower);
        }
    }
}

impl InUse {
    /// Follows a resource for a client.
    ///
    /// # Errors
    /// The upstream refuses it.
    pub(super) async fn follow(
        self,
        own: String,
        offered: ResourceUri,
        subscriber: &Subscriber,
    ) -> Result<Followed, Fault> {
        let target = Target {
            owner: subscriber.identity.owner().clone(),
            offered,
            feed: subscriber.feed.clone(),
        };

        let subscriptions: Arc<Subscriptions> = Arc::clone(&self.subscriptions);
        let follower = subscriptions.add(&own, subscriber.session.as_ref(), target);
        self.ensure_task();
        let following = Following { in_use: self, own, follower, is_of_session: false };

        let _ = tokio::time::timeout(TIMEOUT, subscriptions.applied()).await;
        if let Some(refusal) = subscriptions.refusal(&following.own) {
            return Err(refusal);
        }
        Ok(following.lasting())
    }
}
