//! Subscriptions of sessions to resources, and watches of shared resources.

use std::time::Duration;

use larder_identity::Owner;

use super::{RedisSessionStore, keys::SessionKeys, record};
use crate::{
    redis::millis,
    session::{Session, SessionError, Watch},
};

impl RedisSessionStore {
    pub(super) async fn subscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        let max = self.limits.subscriptions_per_session;
        let call = self.keys(session).session(&self.scripts.subscribe).arg(uri).arg(max);
        let call = call.arg(millis(self.limits.idle));

        if self.call(call).await?[0] == "many" {
            return Err(SessionError::too_many_subscriptions(max));
        }
        Ok(())
    }

    pub(super) async fn unsubscribe(
        &self,
        session: &Session,
        uri: &str,
    ) -> Result<(), SessionError> {
        let call = self.keys(session).session(&self.scripts.subscribe).arg(uri).arg(0);
        self.call(call).await.map(drop)
    }

    pub(super) async fn watch(
        &self,
        owner: &Owner,
        uri: &str,
        watch: &Watch,
        ttl: Duration,
    ) -> Result<(), SessionError> {
        let keys = SessionKeys::of_owner(self.redis.keys(), owner);
        let call = keys.all(&self.scripts.watch).arg(uri);
        self.call(call.arg(record::encode_watch(watch)).arg(millis(ttl))).await.map(drop)
    }

    pub(super) async fn watches(
        &self,
        owner: &Owner,
        uri: &str,
    ) -> Result<Vec<Watch>, SessionError> {
        let keys = SessionKeys::of_owner(self.redis.keys(), owner);
        let reply = self.call(keys.all(&self.scripts.watches).arg(uri)).await?;
        // The first item is the status of the reply.
        Ok(reply[1..].iter().filter_map(|watch| record::decode_watch(watch)).collect())
    }
}
