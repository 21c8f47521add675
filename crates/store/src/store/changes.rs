//! The change feed: each change of a resource, published once to all subscribers.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use larder_identity::Owner;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::{Change, ChangeQueue};

/// How many changes a subscriber may fall behind before it misses some.
const BACKLOG: usize = 256;

/// The feed on which a backend publishes changes. Cheap to clone; all clones are
/// one feed.
///
/// A subscriber receives the changes of one owner, so that a busy owner wakes
/// no other subscribers, or of all owners: one task per process needs all changes.
#[derive(Debug, Clone)]
pub struct ChangeFeed(Arc<Channels>);

#[derive(Debug)]
struct Channels {
    all: ChangeSender,
    owners: Mutex<HashMap<Owner, ChangeSender>>,
    queues: Mutex<Vec<Weak<ChangeQueue>>>,
}

/// Sends a change, or `None` where changes were missed.
type ChangeSender = broadcast::Sender<Option<Arc<Change>>>;

impl ChangeFeed {
    /// A feed without subscribers.
    pub fn new() -> Self {
        let all = broadcast::Sender::new(BACKLOG);
        Self(Arc::new(Channels { all, owners: Mutex::default(), queues: Mutex::default() }))
    }

    /// Sends a change to all subscribers. Never waits.
    pub fn publish(&self, change: Change) {
        let change = Arc::new(change);
        self.0.for_each_queue(|queue| queue.push(&change));

        {
            let mut owners = self.0.owners.lock();
            if let Some(sender) = owners.get(&change.owner)
                && sender.send(Some(Arc::clone(&change))).is_err()
            {
                // The last subscriber of this owner has gone.
                owners.remove(&change.owner);
            }
        }

        // Without subscribers, sending fails, which is no error.
        let _ = self.0.all.send(Some(change));
    }

    /// Tells all subscribers that changes were missed, where the backend itself
    /// does not know which changes. Never waits.
    pub fn publish_missed(&self) {
        self.0.for_each_queue(ChangeQueue::push_missed);

        {
            let mut owners = self.0.owners.lock();
            owners.retain(|_, sender| sender.send(None).is_ok());
        }

        let _ = self.0.all.send(None);
    }

    /// Subscribes to the changes of one owner's resources from now on.
    pub fn subscribe(&self, owner: &Owner) -> Changes {
        let mut owners = self.0.owners.lock();
        let sender = owners.entry(owner.clone()).or_insert_with(|| broadcast::Sender::new(BACKLOG));

        let of = Some((Arc::clone(&self.0), owner.clone()));
        Changes { receiver: Some(sender.subscribe()), of }
    }

    /// The changes of all resources from now on, coalesced until they are taken.
    pub fn queue(&self) -> Arc<ChangeQueue> {
        let queue = Arc::new(ChangeQueue::default());
        self.0.queues.lock().push(Arc::downgrade(&queue));
        queue
    }

    /// Subscribes to the changes of all resources from now on.
    pub fn subscribe_all(&self) -> Changes {
        Changes { receiver: Some(self.0.all.subscribe()), of: None }
    }
}

impl Channels {
    /// Calls `act` for each queue that still has a consumer.
    fn for_each_queue(&self, act: impl Fn(&ChangeQueue)) {
        self.queues.lock().retain(|queue| {
            queue.upgrade().is_some_and(|queue| {
                act(&queue);
                true
            })
        });
    }
}

impl Default for ChangeFeed {
    fn default() -> Self {
        Self::new()
    }
}

/// A subscription to a [`ChangeFeed`].
#[derive(Debug)]
pub struct Changes {
    /// Present until the subscription is dropped.
    receiver: Option<broadcast::Receiver<Option<Arc<Change>>>>,
    /// The owner of a subscription for one owner, and the channels to remove it from.
    of: Option<(Arc<Channels>, Owner)>,
}

/// Frees the owner's channel with its last subscriber.
impl Drop for Changes {
    fn drop(&mut self) {
        let Some((channels, owner)) = self.of.take() else { return };

        let mut owners = channels.owners.lock();
        self.receiver = None;
        if owners.get(&owner).is_some_and(|sender| sender.receiver_count() == 0) {
            owners.remove(&owner);
        }
    }
}

impl Changes {
    /// The next change; `Ok(None)` at the end of the feed.
    ///
    /// # Errors
    /// [`MissedChanges`]: the subscriber must assume that any resource changed.
    pub async fn next(&mut self) -> Result<Option<Arc<Change>>, MissedChanges> {
        let Some(receiver) = &mut self.receiver else { return Ok(None) };

        match receiver.recv().await {
            Ok(Some(change)) => Ok(Some(change)),
            Ok(None) | Err(broadcast::error::RecvError::Lagged(_)) => Err(MissedChanges),
            Err(broadcast::error::RecvError::Closed) => Ok(None),
        }
    }
}

/// The subscriber missed some changes: it was too slow, or the backend was not
/// reachable for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedChanges;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_who_no_longer_listens_has_no_channel() {
        let feed = ChangeFeed::new();
        let owners = || feed.0.owners.lock().len();
        let subscriptions: Vec<_> =
            (0..100).map(|n| feed.subscribe(&Owner::new(format!("{}", n % 50)))).collect();

        assert_eq!(owners(), 50);

        let mut subscriptions = subscriptions.into_iter();
        assert_eq!(subscriptions.by_ref().take(50).count(), 50);
        assert_eq!(owners(), 50, "each has another subscriber");

        drop(subscriptions);
        assert_eq!(owners(), 0);
    }
}
