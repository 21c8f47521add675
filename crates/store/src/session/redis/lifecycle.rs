//! Creating, looking up, changing and ending sessions.

use std::sync::Arc;

use futures_util::future::try_join_all;
use larder_identity::{Owner, Principal};
use larder_protocol::{ClientFacts, LogLevel, ProtocolVersion};

use super::{RedisSessionStore, keys::SessionKeys, record, unavailable};
use crate::{
    redis::millis,
    session::{Session, SessionError, Signal},
};

impl RedisSessionStore {
    pub(super) async fn create(
        &self,
        principal: Principal,
        version: ProtocolVersion,
        client: ClientFacts,
    ) -> Result<Arc<Session>, SessionError> {
        let log_level = LogLevel::Info;
        let session = Arc::new(Session {
            id: self.random.id().into(),
            principal,
            version,
            client: Arc::new(client),
            log_level,
        });

        let max = self.limits.sessions_per_principal;
        let total = self.limits.sessions_total;
        let Some(added) = self.total.admit(total, self.count()).await? else {
            return Err(SessionError::too_many_in_total(total));
        };

        let call = self.keys(&session).session(&self.scripts.create).arg(self.random.id());
        let call = call.arg(millis(self.limits.idle)).arg(max).arg(version.as_str());
        let call = call.arg(record::encode_client(&session.client));
        if self.call(call.arg(record::encode_level(log_level))).await?[0] == "many" {
            return Err(SessionError::too_many_sessions(max));
        }

        added.keep();
        Ok(session)
    }

    pub(super) async fn get(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Result<Arc<Session>, SessionError> {
        // Without notices from other instances, the cache could not be invalidated in time.
        let may_cache = self.hub.is_subscribed();
        if may_cache && let Some(session) = self.cache.get(id, principal) {
            return Ok(session);
        }

        let lookup = may_cache.then(|| self.cache.look_up(id));
        let keys = SessionKeys::new(self.redis.keys(), &principal.owner(), id.into());
        let call = keys.session(&self.scripts.get).arg(millis(self.limits.idle));
        let reply = self.call(call).await?;
        let session = record::decode_session(id, principal, &reply[1..]).ok_or_else(|| {
            tracing::error!("cannot decode a session in Redis");
            SessionError::NotFound
        })?;

        let session = Arc::new(session);

        if let Some(lookup) = lookup {
            lookup.found(&session);
        }

        Ok(session)
    }

    pub(super) async fn exists(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Result<bool, SessionError> {
        let keys = SessionKeys::new(self.redis.keys(), &principal.owner(), id.into());
        match self.call(keys.session(&self.scripts.exists)).await {
            Ok(_) => Ok(true),
            Err(SessionError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn delete(&self, id: Arc<str>, owner: &Owner) -> Result<bool, SessionError> {
        let keys = SessionKeys::new(self.redis.keys(), owner, Arc::clone(&id));
        let (notice, acknowledgements) = self.hub.acknowledged_notice(&id, Some(Signal::Ended));
        let call = keys.session(&self.scripts.delete).arg(self.hub.common_channel()).arg(notice);

        match self.call(call).await {
            Ok(_) => {
                self.cache.remove(&id);
                acknowledgements.wait_for(&self.instance.alive().await.unwrap_or_default()).await;
                Ok(true)
            }
            Err(SessionError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn set_log_level(
        &self,
        session: &Session,
        level: LogLevel,
    ) -> Result<(), SessionError> {
        let (notice, acknowledgements) = self.hub.acknowledged_notice(&session.id, None);
        let call = self.keys(session).session(&self.scripts.set_level);
        let call = call.arg(record::encode_level(level));
        self.call(call.arg(self.hub.common_channel()).arg(notice)).await?;

        self.cache.remove(&session.id);
        acknowledgements.wait_for(&self.instance.alive().await.unwrap_or_default()).await;
        Ok(())
    }

    pub(super) async fn count(&self) -> Result<u64, SessionError> {
        let counts = self.redis.keys().shards().map(|shard| async move {
            let call = SessionKeys::of_escaped_owner(&shard, "").all(&self.scripts.count);
            self.redis.call::<u64>(&call).await
        });

        let counts = try_join_all(counts).await.map_err(|error| unavailable(&error))?;
        Ok(counts.into_iter().sum())
    }
}
