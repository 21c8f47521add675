//! Turns changes of the store and of the registry into notifications for clients.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio::sync::broadcast;

use crate::{
    protocol::Announcement,
    session::Sessions,
    store::{Change, ChangeKind, Changes},
};

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

/// Announces changes of resources to the sessions of their owners until the feed ends. One
/// task serves all sessions.
pub async fn announce_changes(mut changes: Changes, sessions: Arc<dyn Sessions>) {
    loop {
        match changes.next().await {
            Ok(Some(change)) => {
                for (index, announcement) in announcements(&change).enumerate() {
                    let change_id = change.id.as_ref().map(|id| format!("{index} {id}"));
                    sessions.announce(&change.owner, &announcement, change_id.as_deref()).await;
                }
                if change.kind == ChangeKind::Updated {
                    announce_shared(&change, &sessions).await;
                }
            }
            Ok(None) => return,
            Err(_) => {
                // The owners of the missed changes are unknown, so all sessions are
                // notified.
                sessions.announce_to_all(&Announcement::ResourceListChanged).await;
            }
        }
    }
}

/// Announces an update to the subscribers of links to the resource. Their access is checked
/// when the notification is sent.
async fn announce_shared(change: &Change, sessions: &Arc<dyn Sessions>) {
    // The session store has logged the error.
    let Ok(watches) = sessions.watches(&change.owner, change.uri.as_str()).await else { return };
    let announced =
        stream::iter(watches).for_each_concurrent(MAX_CONCURRENT_READERS, |watch| async move {
            let change_id = change.id.as_ref().map(|id| format!("{} {id}", watch.link));
            let updated = Announcement::ResourceUpdated { uri: watch.link };
            sessions.announce(&watch.reader, &updated, change_id.as_deref()).await;
        });
    announced.await;
}
