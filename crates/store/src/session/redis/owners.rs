//! The sessions of owners, for their operator.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use larder_identity::Owner;

use super::{RedisSessionStore, RedisSessions, keys::SessionKeys, unavailable};
use crate::{redis::unescape, session::SessionError};

/// The number of sessions that are ended at once. Each waits until all instances know of its end.
const AT_ONCE: usize = 16;

/// The number of sessions that are read at once.
const PAGE: usize = 256;

/// A page of the owners of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOwnerPage {
    /// The owners with their numbers of sessions. May be empty although more pages follow.
    pub owners: Vec<(Owner, u64)>,
    /// The cursor of the next page; `None` after the last one.
    pub next: Option<String>,
}

impl RedisSessions {
    /// A page of about `limit` owners of sessions. `after` is the `next` of the previous page.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if Redis does not answer.
    pub async fn owners(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<SessionOwnerPage, SessionError> {
        let found = self.inner.redis.scan_names("ZSCAN", "owners", after, limit).await;
        let found = found.map_err(|error| unavailable(&error))?;

        let mut owners = Vec::new();
        for owner in found.names.iter().filter_map(|name| unescape(name)).map(Owner::new) {
            let sessions = self.count_of(&owner).await?;
            if sessions > 0 {
                owners.push((owner, sessions));
            }
        }

        Ok(SessionOwnerPage { owners, next: found.next })
    }

    /// The number of an owner's sessions.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if Redis does not answer.
    pub async fn count_of(&self, owner: &Owner) -> Result<u64, SessionError> {
        Ok(self.inner.sessions_of(owner, 0, 0).await?.0)
    }

    /// Ends all sessions of an owner and their streams. Returns their number. A session that begins
    /// during the call may stay.
    ///
    /// # Errors
    /// [`SessionError::Unavailable`] if Redis does not answer; some sessions may have ended then.
    pub async fn end_all(&self, owner: &Owner) -> Result<u64, SessionError> {
        let mut ended = 0;
        let mut left = 0;

        loop {
            let (_, ids) = self.inner.sessions_of(owner, left, PAGE).await?;
            if ids.is_empty() {
                return Ok(ended);
            }

            let found = ids.len();
            let ids = stream::iter(ids.into_iter().map(Arc::from));
            let existed: Vec<bool> = ids
                .map(|id| self.inner.delete(id, owner))
                .buffer_unordered(AT_ONCE)
                .try_collect()
                .await?;

            let existed = existed.into_iter().filter(|existed| *existed).count();
            ended += existed as u64;

            // Sessions that another instance ended meanwhile may be listed twice.
            left += found - existed;
        }
    }
}

impl RedisSessionStore {
    /// The number of an owner's sessions, and the IDs of at most `limit` sessions after the first
    /// `skip`.
    async fn sessions_of(
        &self,
        owner: &Owner,
        skip: usize,
        limit: usize,
    ) -> Result<(u64, Vec<String>), SessionError> {
        let call =
            SessionKeys::of_owner(self.redis.keys(), owner).all(&self.scripts.owner_sessions);
        let call = call.arg(skip).arg(limit);

        let (count, ids): (u64, Vec<String>) =
            self.redis.call(&call).await.map_err(|error| unavailable(&error))?;

        Ok((count, ids.iter().filter_map(|id| unescape(id)).collect()))
    }
}
