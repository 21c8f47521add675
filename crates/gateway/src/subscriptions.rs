//! [`Subscriptions`]: which resources of an upstream clients follow.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use larder_oauth::Owner;
use larder_protocol::Fault;
use larder_store::store::{Change, ChangeFeed, ChangeKind, ResourceUri};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The resources of one connection that clients follow.
pub(super) struct Subscriptions {
    table: Mutex<Table>,
    /// Counts the changes of the set of resources.
    changed: watch::Sender<u64>,
    /// The latest change that the upstream was told.
    applied: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    /// By the upstream's own URIs.
    followers: HashMap<String, HashMap<Follower, Target>>,
    /// Why the upstream has refused those of them that it has.
    refused: HashMap<String, Fault>,
    streams: u64,
}

/// The follower of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Follower {
    /// A client's session.
    Session(Arc<str>),
    /// A stream of a client without sessions.
    Stream(u64),
}

/// The place where updates are announced.
pub(super) struct Target {
    pub(super) owner: Owner,
    /// The URI under which the resource is offered.
    pub(super) offered: ResourceUri,
    pub(super) feed: ChangeFeed,
}

impl Target {
    fn announce(&self) {
        let owner = self.owner.clone();
        let uri = self.offered.clone();
        self.feed.publish(Change { owner, uri, kind: ChangeKind::Updated, id: None });
    }
}

impl Subscriptions {
    pub(super) fn new() -> Self {
        let changed = watch::Sender::new(0);
        let applied = watch::Sender::new(0);
        Self { table: Mutex::default(), changed, applied }
    }

    /// Adds a follower; without a session, as a stream. The sessions and the
    /// streams of a caller are bounded, and so are their subscriptions.
    pub(super) fn add(&self, own: &str, session: Option<&Arc<str>>, target: Target) -> Follower {
        let mut table = self.table.lock();
        let Table { followers, refused, streams } = &mut *table;
        let follower = match session {
            Some(session) => Follower::Session(Arc::clone(session)),
            None => {
                *streams += 1;
                Follower::Stream(*streams)
            }
        };

        let followers = followers.entry(own.to_owned()).or_default();
        followers.insert(follower.clone(), target);
        if followers.len() == 1 {
            refused.remove(own);
            self.changed.send_modify(|n| *n += 1);
        }
        follower
    }

    /// Removes a follower of one resource.
    pub(super) fn remove(&self, own: &str, follower: &Follower) {
        let mut table = self.table.lock();
        let Some(followers) = table.followers.get_mut(own) else { return };
        followers.remove(follower);
        if followers.is_empty() {
            table.followers.remove(own);
            table.refused.remove(own);
            self.changed.send_modify(|n| *n += 1);
        }
    }

    /// Removes a session that has ended.
    pub(super) fn end_session(&self, session: &Arc<str>) {
        let follower = Follower::Session(Arc::clone(session));
        let mut table = self.table.lock();
        let Table { followers, refused, .. } = &mut *table;
        let before = followers.len();
        followers.retain(|_, followers| {
            followers.remove(&follower);
            !followers.is_empty()
        });
        refused.retain(|own, _| followers.contains_key(own));

        if followers.len() != before {
            self.changed.send_modify(|n| *n += 1);
        }
    }

    /// The upstream has announced an update.
    pub(super) fn updated(&self, own: &str) {
        let table = self.table.lock();
        table.followers.get(own).into_iter().flat_map(HashMap::values).for_each(Target::announce);
    }

    /// Updates may have been missed.
    pub(super) fn missed(&self) {
        let table = self.table.lock();
        table.followers.values().flat_map(HashMap::values).for_each(Target::announce);
    }

    /// Changes of the set of resources.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The resources that clients follow now, by the upstream's own URIs.
    pub(super) fn wanted(&self) -> HashSet<String> {
        self.table.lock().followers.keys().cloned().collect()
    }

    /// The upstream has refused to announce updates of a resource.
    pub(super) fn refuse(&self, own: &str, why: Fault) {
        let mut table = self.table.lock();
        if table.followers.contains_key(own) {
            table.refused.insert(own.to_owned(), why);
        }
    }

    /// Why the upstream has refused to announce updates of a resource, if it has.
    pub(super) fn refusal(&self, own: &str) -> Option<Fault> {
        self.table.lock().refused.get(own).cloned()
    }

    /// The upstream was told the changes up to that one.
    pub(super) fn set_applied(&self, change: u64) {
        self.applied.send_replace(change);
    }

    /// Whether an upstream was told any resource.
    pub(super) fn was_applied(&self) -> bool {
        *self.applied.borrow() > 0
    }

    /// Waits until the upstream was told the changes that were made until now.
    pub(super) async fn applied(&self) {
        let change = *self.changed.borrow();
        // The sender lives as long as these subscriptions, so the wait cannot fail.
        let _ = self.applied.subscribe().wait_for(|applied| *applied >= change).await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_oauth::Principal;

    fn target(feed: &ChangeFeed, owner: &Owner) -> Target {
        let offered = ResourceUri::parse("fs+file:///a").unwrap();
        Target { owner: owner.clone(), offered, feed: feed.clone() }
    }

    #[tokio::test]
    async fn only_followers_hear_and_the_last_one_ends_the_subscription() {
        let feed = ChangeFeed::new();
        let subscriptions = Subscriptions::new();
        let owner = |name: &str| Principal::Static { name: name.into() }.owner();
        let ana = owner("ana");
        let bob = owner("bob");
        let mut to_ana = feed.subscribe(&ana);
        let mut to_bob = feed.subscribe(&bob);

        let session: Arc<str> = "s".into();
        subscriptions.add("file:///a", Some(&session), target(&feed, &ana));
        let stream = subscriptions.add("file:///a", None, target(&feed, &ana));

        assert_eq!(subscriptions.wanted(), HashSet::from(["file:///a".to_owned()]));
        assert_eq!(*subscriptions.changes().borrow(), 1);

        subscriptions.updated("file:///other");
        subscriptions.updated("file:///a");
        let heard = to_ana.next().await.unwrap().unwrap();
        assert_eq!(heard.uri.as_str(), "fs+file:///a");

        subscriptions.end_session(&session);
        assert_eq!(subscriptions.wanted().len(), 1);
        subscriptions.remove("file:///a", &stream);
        assert!(subscriptions.wanted().is_empty());

        // A refusal lasts as long as the followers that it is for.
        subscriptions.refuse("file:///a", Fault::invalid_params("no"));
        assert_eq!(subscriptions.refusal("file:///a"), None);
        subscriptions.add("file:///a", Some(&session), target(&feed, &ana));
        subscriptions.refuse("file:///a", Fault::invalid_params("no"));
        let late = subscriptions.add("file:///a", None, target(&feed, &ana));
        subscriptions.end_session(&session);
        assert_eq!(subscriptions.refusal("file:///a"), Some(Fault::invalid_params("no")));
        subscriptions.remove("file:///a", &late);
        assert_eq!(subscriptions.refusal("file:///a"), None);

        // Bob has heard nothing until now.
        subscriptions.add("file:///a", None, target(&feed, &bob));
        subscriptions.missed();
        assert_eq!(to_bob.next().await.unwrap().unwrap().owner, bob);
    }
}
