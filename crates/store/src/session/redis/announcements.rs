//! Announcements to the standalone streams of sessions.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use larder_protocol::Announcement;

use super::{RedisSessionStore, keys::SessionKeys, scripts::with_limits, unavailable};
use crate::{
    redis::{Shard, escape, millis},
    session::{Session, SessionError},
};

/// The time to live of an announcement's cursor: how far instances may lag behind each other.
const CURSOR_TTL: Duration = Duration::from_secs(60);

/// The number of sessions per script call, which takes some milliseconds, and the approximate
/// number of owners per scan.
const BATCH: usize = 500;

/// The shards that are announced to at once, so that the shards of a primary that does not answer
/// delay no others.
const CONCURRENT_SHARDS: usize = 16;

impl RedisSessionStore {
    pub(super) async fn announce(
        &self,
        keys: &SessionKeys,
        announcement: &Announcement,
        changes: &[Arc<str>],
    ) -> Result<(), SessionError> {
        let uri = match announcement {
            Announcement::ResourceUpdated { uri } => uri.as_str(),
            _ => "",
        };
        let message = announcement.encode(None);

        loop {
            let call = keys.all(&self.scripts.announce).arg(uri);
            let call = call.arg(&message[..]).arg(millis(CURSOR_TTL)).arg(BATCH);
            let call = with_limits(call, &self.limits);
            let call = changes.iter().fold(call, |call, change| call.arg(escape(change)));

            if self.call(call).await?[0] != "again" {
                return Ok(());
            }
        }
    }

    /// Appends a message to the standalone stream of a session, if a connection follows it.
    pub(super) async fn send_now(
        &self,
        session: &Session,
        message: &[u8],
    ) -> Result<bool, SessionError> {
        let keys = self.keys(session);
        let call = keys.session(&self.scripts.send_now).arg(message);
        Ok(self.call(with_limits(call, &self.limits)).await?[0] == "ok")
    }

    pub(super) async fn announce_to_all(
        &self,
        announcement: &Announcement,
    ) -> Result<(), SessionError> {
        let change = [self.random.id().into()];
        let shards = stream::iter(self.redis.keys().shards());

        let announcing = shards.map(|shard| {
            let change = &change;
            async move { self.announce_in(&shard, announcement, change).await }
        });

        // A failed shard does not stop the others, which may be at a primary that answers.
        let announced: Vec<_> = announcing.buffer_unordered(CONCURRENT_SHARDS).collect().await;
        announced.into_iter().collect()
    }

    /// Announces to all sessions of a shard.
    async fn announce_in(
        &self,
        shard: &Shard,
        announcement: &Announcement,
        change: &[Arc<str>],
    ) -> Result<(), SessionError> {
        let mut cursor = "0".to_owned();
        loop {
            let scanned = self.redis.scan_shard("ZSCAN", "owners", shard, &cursor, BATCH).await;
            let (next, owners) = scanned.map_err(|error| unavailable(&error))?;

            for owner in owners {
                let keys = SessionKeys::of_escaped_owner(shard, &owner);
                self.announce(&keys, announcement, change).await?;
            }

            cursor = next;
            if cursor == "0" {
                return Ok(());
            }
        }
    }
}
