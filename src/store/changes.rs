//! The change feed: each change of a resource, published once to all subscribers.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::{Change, ChangeQueue};
use crate::auth::Owner;

/// How many changes a subscriber may fall behind before it misses some.
const BACKLOG: usize = 256;

/// The feed on which a backend publishes changes. Cheap to clone; all clones are
/// one feed.
///
/// A subscriber receives the changes of one owner, so that a busy owner wakes
/// no other subscribers, or of all owners: one task per process needs these.
#[derive(Debug, Clone)]
pub struct ChangeFeed(Arc<Channels>);

#[derive(Debug)]
struct Channels {
    all: Sender,
    owners: Mutex<HashMap<Owner, Sender>>,
    queues: Mutex<Vec<Weak<ChangeQueue>>>,
}

/// Sends a change, or `None` where some were missed.
type Sender = broadcast::Sender<Option<Arc<Change>>>;

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
        // Without subscribers, sending fails; that is no error.
        let _ = self.0.all.send(Some(change));
    }

    /// Tells all subscribers that changes were missed, where the backend itself
    /// does not know which. Never waits.
    pub fn publish_missed(&self) {
        self.0.for_each_queue(ChangeQueue::push_missed);
        let mut owners = self.0.owners.lock();
        owners.retain(|_, sender| sender.send(None).is_ok());
        drop(owners);
        let _ = self.0.all.send(None);
    }

    /// Subscribes to the changes of one owner's resources from now on.
    pub fn subscribe(&self, owner: &Owner) -> Changes {
        let mut owners = self.0.owners.lock();
        let sender = owners.entry(owner.clone()).or_insert_with(|| broadcast::Sender::new(BACKLOG));
        Changes(sender.subscribe())
    }

    /// The changes of all resources from now on, coalesced until they are taken.
    pub fn queue(&self) -> Arc<ChangeQueue> {
        let queue = Arc::new(ChangeQueue::default());
        self.0.queues.lock().push(Arc::downgrade(&queue));
        queue
    }

    /// Subscribes to the changes of all resources from now on.
    pub fn subscribe_all(&self) -> Changes {
        Changes(self.0.all.subscribe())
    }
}

impl Channels {
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
pub struct Changes(broadcast::Receiver<Option<Arc<Change>>>);

impl Changes {
    /// The next change; `Ok(None)` at the end of the feed.
    ///
    /// # Errors
    /// Some changes were missed: the subscriber must assume that any resource
    /// changed.
    pub async fn next(&mut self) -> Result<Option<Arc<Change>>, MissedChanges> {
        match self.0.recv().await {
            Ok(Some(change)) => Ok(Some(change)),
            Ok(None) | Err(broadcast::error::RecvError::Lagged(_)) => Err(MissedChanges),
            Err(broadcast::error::RecvError::Closed) => Ok(None),
        }
    }

    /// The next change that has already been published, if any. Does not wait.
    pub fn try_next(&mut self) -> Option<Arc<Change>> {
        self.0.try_recv().ok().flatten()
    }
}

/// The subscriber missed some changes: it was too slow, or the backend was not
/// reachable for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissedChanges;
