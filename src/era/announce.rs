//! From the store's change feed to what clients hear of it.

use std::sync::Arc;

use crate::{
    protocol::Announcement,
    session::Sessions,
    store::{Change, ChangeKind, Changes},
};

/// What a change means to clients: the list changes when something comes or
/// goes, and whoever watches a resource hears of all that happens to it.
pub(super) fn announcements(change: &Change) -> impl Iterator<Item = Announcement> + use<> {
    let uri = change.uri.as_str().to_owned();
    let (listed, watched) = match change.kind {
        ChangeKind::Created => (true, false),
        ChangeKind::Updated => (false, true),
        ChangeKind::Deleted | ChangeKind::Expired => (true, true),
    };
    let listed = listed.then_some(Announcement::ResourceListChanged);
    listed.into_iter().chain(watched.then_some(Announcement::ResourceUpdated { uri }))
}

/// Carries changes to the sessions of their owners until the feed ends. One
/// task serves them all.
pub async fn announce_changes(mut changes: Changes, sessions: Arc<dyn Sessions>) {
    loop {
        match changes.next().await {
            Ok(Some(change)) => {
                for announcement in announcements(&change) {
                    sessions.announce(&change.owner, &announcement).await;
                }
            }
            Ok(None) => return,
            Err(_) => {
                // Which ones is not known, so no list can be named as changed
                // but everybody's.
                sessions.announce_to_all(&Announcement::ResourceListChanged).await;
            }
        }
    }
}
