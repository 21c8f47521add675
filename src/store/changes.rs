//! The change feed: who wrote or lost what, once each, to whoever listens.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::ResourceUri;
use crate::auth::Owner;

/// How far a listener may fall behind before it is told that it missed some.
const BACKLOG: usize = 256;

/// One change to one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Whose.
    pub owner: Owner,
    /// Which.
    pub uri: ResourceUri,
    /// What happened.
    pub kind: ChangeKind,
    /// Names it where several processes hear of it; without one, this
    /// process alone does.
    pub id: Option<Arc<str>>,
}

/// What happened to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// It has new content.
    Updated,
    /// Someone removed it.
    Deleted,
    /// Its time was over.
    Expired,
}

/// Where backends say what changed. Cheap to clone; all clones are one feed.
///
/// A listener hears one owner, so that a busy owner wakes nobody else, or all
/// of them, for the one task that serves every session.
#[derive(Debug, Clone)]
pub struct ChangeFeed(Arc<Hub>);

#[derive(Debug)]
struct Hub {
    all: Sender,
    owners: Mutex<HashMap<Owner, Sender>>,
}

/// A change, or that some were missed.
type Sender = broadcast::Sender<Option<Arc<Change>>>;

impl ChangeFeed {
    /// A feed that nobody listens to yet.
    pub fn new() -> Self {
        let all = broadcast::Sender::new(BACKLOG);
        Self(Arc::new(Hub { all, owners: Mutex::default() }))
    }

    /// Tells whoever listens. Never waits.
    pub fn publish(&self, change: Change) {
        let change = Arc::new(change);
        {
            let mut owners = self.0.owners.lock();
            if let Some(sender) = owners.get(&change.owner)
                && sender.send(Some(Arc::clone(&change))).is_err()
            {
                // The last listener has gone: so does the channel.
                owners.remove(&change.owner);
            }
        }
        // Nobody listening is no failure.
        let _ = self.0.all.send(Some(change));
    }

    /// Tells everybody that some changes were missed: the backend itself does
    /// not know which. Never waits.
    pub fn skip(&self) {
        let mut owners = self.0.owners.lock();
        owners.retain(|_, sender| sender.send(None).is_ok());
        drop(owners);
        let _ = self.0.all.send(None);
    }

    /// Hears what happens to one owner's resources from now on.
    pub fn listen(&self, owner: &Owner) -> Changes {
        let mut owners = self.0.owners.lock();
        let sender = owners.entry(owner.clone()).or_insert_with(|| broadcast::Sender::new(BACKLOG));
        Changes(sender.subscribe())
    }

    /// Hears everything from now on.
    pub fn listen_to_all(&self) -> Changes {
        Changes(self.0.all.subscribe())
    }
}

impl Default for ChangeFeed {
    fn default() -> Self {
        Self::new()
    }
}

/// A listener's end of the feed.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<Option<Arc<Change>>>);

impl Changes {
    /// The next change; `Err` says that some were missed, so that the
    /// listener can assume that anything changed; `Ok(None)` ends the feed.
    pub async fn next(&mut self) -> Result<Option<Arc<Change>>, Missed> {
        match self.0.recv().await {
            Ok(Some(change)) => Ok(Some(change)),
            Ok(None) | Err(broadcast::error::RecvError::Lagged(_)) => Err(Missed),
            Err(broadcast::error::RecvError::Closed) => Ok(None),
        }
    }

    /// A change that has already happened, if there is one.
    pub fn try_next(&mut self) -> Option<Arc<Change>> {
        self.0.try_recv().ok().flatten()
    }
}

/// Some changes are lost to the listener: it was too slow, or the backend
/// could not be heard for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed;
