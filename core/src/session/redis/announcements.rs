//! Announcements to the standalone streams of sessions.

use std::{sync::Arc, time::Duration};

use super::{Inner, keys::SessionKeys, scripts::with_limits, unavailable};
use crate::{
    protocol::Announcement,
    redis::{cmd, escape, millis},
    session::SessionError,
};

/// The time to live of an announcement's cursor: how far instances may lag behind
/// each other.
const CURSOR_TTL: Duration = Duration::from_secs(60);

/// The number of sessions per script call, which takes some milliseconds.
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
        for shard in self.redis.keys().shards() {
            let owners: Vec<String> = self
                .redis
                .query(cmd("ZRANGE").arg(shard.single("owners")).arg(0).arg(-1))
                .await
                .map_err(|error| unavailable(&error))?;
            for owner in owners {
                let keys = SessionKeys::of_escaped_owner(&shard, &owner);
                self.announce(&keys, announcement, &change).await?;
            }
        }
        Ok(())
    }
}
