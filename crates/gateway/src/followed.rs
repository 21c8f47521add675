//! A client follows a resource of an upstream.

use std::{sync::Arc, time::Duration};

use larder_server::registry::{Followed, Subscriber};
use larder_store::store::ResourceUri;

use super::{
    connections::InUse,
    subscriptions::{Follower, Subscriptions, Target},
};

/// How long a client waits for the upstream to take a subscription. It takes it later if it
/// takes longer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A client without sessions follows a resource until this is dropped.
struct Following {
    /// Keeps the process running.
    in_use: InUse,
    own: String,
    follower: Follower,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.in_use.subscriptions.remove(&self.own, &self.follower);
    }
}

impl InUse {
    /// Follows a resource for a client.
    pub(super) async fn follow(
        self,
        own: String,
        offered: ResourceUri,
        subscriber: &Subscriber,
    ) -> Followed {
        let target = Target {
            owner: subscriber.identity.owner().clone(),
            offered,
            feed: subscriber.feed.clone(),
        };

        let subscriptions: Arc<Subscriptions> = Arc::clone(&self.subscriptions);
        let follower = subscriptions.add(&own, subscriber.session.as_ref(), target);
        self.ensure_task();
        let followed: Followed = match follower {
            // Lasts until the session ends or unsubscribes.
            Follower::Session(_) => Box::new(()),
            Follower::Stream(_) => Box::new(Following { in_use: self, own, follower }),
        };

        let _ = tokio::time::timeout(TIMEOUT, subscriptions.applied()).await;
        followed
    }
}
