//! From the store's change feed to what clients hear of it.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio::sync::broadcast;

use crate::{
    protocol::Announcement,
    session::Sessions,
    store::{Change, ChangeKind, Changes},
};

/// How many of those with whom something is shared are told together.
const TOLD_TOGETHER: usize = 16;

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

/// Carries changes of what the server offers to everybody's sessions.
pub async fn announce_edits(
    mut edits: broadcast::Receiver<Announcement>,
    sessions: Arc<dyn Sessions>,
) {
    loop {
        match edits.recv().await {
            Ok(announcement) => sessions.announce_to_all(&announcement).await,
            Err(broadcast::error::RecvError::Closed) => return,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                for announcement in every_list() {
                    sessions.announce_to_all(&announcement).await;
                }
            }
        }
    }
}

/// What to say when it is not known what changed.
pub(super) fn every_list() -> [Announcement; 3] {
    [
        Announcement::ToolListChanged,
        Announcement::PromptListChanged,
        Announcement::ResourceListChanged,
    ]
}

/// Carries changes to the sessions of their owners until the feed ends. One
/// task serves them all.
pub async fn announce_changes(mut changes: Changes, sessions: Arc<dyn Sessions>) {
    loop {
        match changes.next().await {
            Ok(Some(change)) => {
                for (nth, announcement) in announcements(&change).enumerate() {
                    let change_id = change.id.as_ref().map(|id| format!("{nth} {id}"));
                    sessions.announce(&change.owner, &announcement, change_id.as_deref()).await;
                }
                if change.kind == ChangeKind::Updated {
                    announce_shared(&change, &sessions).await;
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

/// Carries an update to those who watch the resource by a link. Whether they
/// may hear of it is seen when it reaches them.
async fn announce_shared(change: &Change, sessions: &Arc<dyn Sessions>) {
    // Why not has been logged.
    let Ok(watches) = sessions.watches(&change.owner, change.uri.as_str()).await else { return };
    let telling = stream::iter(watches).for_each_concurrent(TOLD_TOGETHER, |watch| async move {
        let change_id = change.id.as_ref().map(|id| format!("{} {id}", watch.link));
        let updated = Announcement::ResourceUpdated { uri: watch.link };
        sessions.announce(&watch.reader, &updated, change_id.as_deref()).await;
    });
    telling.await;
}
