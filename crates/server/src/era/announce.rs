//! Turns changes of the store and of the registry into notifications for clients.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use larder_oauth::Owner;
use larder_protocol::Announcement;
use larder_store::{
    session::Sessions,
    store::{
        Change, ChangeKind, ChangeQueue, Changed, CoalescedChange, NextChanges, OwnerTurn,
        ResourceUri,
    },
};
use tokio::sync::broadcast;

/// The number of owners whose sessions are notified concurrently.
const MAX_CONCURRENT_OWNERS: usize = 16;

/// The number of readers of a shared resource that are notified concurrently.
const MAX_CONCURRENT_READERS: usize = 16;

/// The notifications for a change. Creating or removing a resource changes the list;
/// updating or removing it notifies its subscribers.
pub(super) fn announcements(change: &Change) -> impl Iterator<Item = Announcement> + use<> {
    let uri = change.uri.as_str().to_owned();
    let (list_changed, resource_changed) = match change.kind {
        ChangeKind::Created => (true, false),
        ChangeKind::Updated => (false, true),
        ChangeKind::Deleted | ChangeKind::Expired => (true, true),
    };

    let list_changed = list_changed.then_some(Announcement::ResourceListChanged);
    list_changed
        .into_iter()
        .chain(resource_changed.then_some(Announcement::ResourceUpdated { uri }))
}

/// Announces changes of the registry to all sessions.
pub async fn announce_edits(
    mut edits: broadcast::Receiver<Announcement>,
    sessions: Arc<dyn Sessions>,
) {
    loop {
        match edits.recv().await {
            Ok(announcement) => sessions.announce_to_all(&announcement).await,
            Err(broadcast::error::RecvError::Closed) => return,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                for announcement in all_lists_changed() {
                    sessions.announce_to_all(&announcement).await;
                }
            }
        }
    }
}

/// The notifications for unknown changes, after a receiver has lagged.
pub(super) fn all_lists_changed() -> [Announcement; 3] {
    [
        Announcement::ToolListChanged,
        Announcement::PromptListChanged,
        Announcement::ResourceListChanged,
    ]
}

/// Announces changes of resources to the sessions of their owners, for ever. Owners are served
/// concurrently, each in its turn. One task serves all sessions.
pub async fn announce_changes(changes: Arc<ChangeQueue>, sessions: Arc<dyn Sessions>) {
    let turns = stream::unfold(changes, |changes| async move {
        let next = changes.next().await;
        Some((next, changes))
    });

    let announced = turns.for_each_concurrent(MAX_CONCURRENT_OWNERS, |next| async {
        match next {
            NextChanges::Of(turn) => announce_turn(&turn, &sessions).await,
            // The owners of the missed changes are unknown, so all sessions are notified.
            NextChanges::Missed => {
                sessions.announce_to_all(&Announcement::ResourceListChanged).await;
            }
        }
    });
    announced.await;
}

/// Announces the changes of one owner, in their order.
async fn announce_turn(turn: &OwnerTurn, sessions: &Arc<dyn Sessions>) {
    for CoalescedChange { changed, has_new_content, ids } in &turn.changes {
        let announcement = match changed {
            Changed::List => Announcement::ResourceListChanged,
            Changed::Resource(uri) => {
                Announcement::ResourceUpdated { uri: uri.as_str().to_owned() }
            }
        };

        sessions.announce(&turn.owner, &announcement, ids).await;
        if let (Changed::Resource(uri), true) = (changed, has_new_content) {
            announce_shared(&turn.owner, uri, ids, sessions).await;
        }
    }
}

/// Announces an update to the subscribers of links to the resource. Their access is checked
/// when the notification is sent.
async fn announce_shared(
    owner: &Owner,
    uri: &ResourceUri,
    ids: &[Arc<str>],
    sessions: &Arc<dyn Sessions>,
) {
    // The session store has logged the error.
    let Ok(watches) = sessions.watches(owner, uri.as_str()).await else { return };

    let announced =
        stream::iter(watches).for_each_concurrent(MAX_CONCURRENT_READERS, |watch| async move {
            let updated = Announcement::ResourceUpdated { uri: watch.link };
            sessions.announce(&watch.reader, &updated, ids).await;
        });
    announced.await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    use super::*;
    use larder_oauth::Principal;
    use larder_protocol::{ClientFacts, ProtocolVersion};
    use larder_runtime::{clock::ManualClock, random::Random};
    use larder_store::{
        session::{Delivery, MemorySessions, SessionLimits},
        store::{ChangeFeed, ChangeKind},
    };

    fn update(owner: &Owner, uri: &str) -> Change {
        let uri = ResourceUri::parse(uri).unwrap();
        Change { owner: owner.clone(), uri, kind: ChangeKind::Updated, id: None }
    }

    #[tokio::test]
    async fn a_quiet_owner_hears_each_update_while_another_writes_as_fast_as_it_can() {
        let clock = Arc::new(ManualClock::new());
        let feed = ChangeFeed::new();
        let sessions: Arc<dyn Sessions> =
            Arc::new(MemorySessions::new(clock, Random::counting(), SessionLimits::default()));

        let mut listeners = Vec::new();
        let mut owners = Vec::new();
        for n in 0..50 {
            let principal = Principal::Static { name: format!("owner {n}").into() };
            let version = ProtocolVersion::LATEST_LEGACY;
            let facts = ClientFacts::default();
            let session = sessions.create(principal.clone(), version, facts).await.unwrap();
            sessions.subscribe(&session, "x:1").await.unwrap();
            listeners.push(sessions.standalone(&session).await.unwrap().1);
            owners.push(principal.owner());
        }

        let announcing = tokio::spawn(announce_changes(feed.queue(), Arc::clone(&sessions)));
        let stop = Arc::new(AtomicBool::new(false));
        let writing = tokio::spawn({
            let feed = feed.clone();
            let busy = owners[0].clone();
            let stop = Arc::clone(&stop);
            async move {
                while !stop.load(Ordering::Relaxed) {
                    // A feed of limited length holds fewer changes.
                    for n in 0..1000 {
                        feed.publish(update(&busy, &format!("x:{}", n % 7)));
                    }
                    tokio::task::yield_now().await;
                }
            }
        });

        for _ in 0..20 {
            for (owner, listener) in owners.iter().zip(&mut listeners).skip(1) {
                feed.publish(update(owner, "x:1"));
                let heard = tokio::time::timeout(Duration::from_secs(20), listener.next()).await;
                let Ok(Some(Ok(Delivery::Event(event)))) = heard else { panic!("{heard:?}") };
                assert!(event.data.ends_with(br#""params":{"uri":"x:1"}}"#), "{event:?}");
            }
        }

        stop.store(true, Ordering::Relaxed);
        writing.await.unwrap();
        announcing.abort();
    }
}
