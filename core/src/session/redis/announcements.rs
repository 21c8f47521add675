//! Announcements to the standalone streams of sessions.

use std::{sync::Arc, time::Duration};

use super::{Inner, keys::SessionKeys, scripts::with_limits, unavailable};
use crate::{
    protocol::Announcement,
    redis::{Shard, cmd, escape, millis},
    session::SessionError,
};

/// The time to live of an announcement's cursor: how far instances may lag behind
/// each other.
const CURSOR_TTL: Duration = Duration::from_secs(60);

/// The number of sessions per script call, which takes some milliseconds, and about that of owners
/// per scan.
const BATCH: usize = 500;

impl Inner {
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

    pub(super) async fn announce_to_all(
        &self,
        announcement: &Announcement,
    ) -> Result<(), SessionError> {
        let change = [self.random.id().into()];
        let mut failed = None;
        for shard in self.redis.keys().shards() {
            // Other shards may be at a primary that answers.
            if let Err(error) = self.announce_in(&shard, announcement, &change).await {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Announces to all sessions of a shard.
    async fn announce_in(
        &self,
        shard: &Shard,
        announcement: &Announcement,
        change: &[Arc<str>],
    ) -> Result<(), SessionError> {
        let mut cursor = 0_u64;
        loop {
            let mut scan = cmd("ZSCAN");
            scan.arg(shard.single("owners")).arg(cursor).arg("COUNT").arg(BATCH);
            let (next, owners): (u64, Vec<(String, f64)>) =
                self.redis.query(&scan).await.map_err(|error| unavailable(&error))?;
            for (owner, _) in owners {
                let keys = SessionKeys::of_escaped_owner(shard, &owner);
                self.announce(&keys, announcement, change).await?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }
}
