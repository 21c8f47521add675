//! Sessions and streams in Redis: any replica serves any request of any
//! session, and whatever nobody uses expires by itself.
//!
//! All keys of an owner lie in one shard (see [`crate::redis::Keys`]), and
//! begin with its prefix. `<owner>`, `<session>` and `<stream>` are escaped.
//!
//! ```text
//! session:<owner>:<session>        hash    version, client (JSON), level, own (its own stream's id);
//!                                          expires when it was not used for the idle time
//! subscriptions:<owner>:<session>  set     URIs; expires with the session
//! streams:<owner>:<session>        zset    streams of calls by the time at which they are forgotten
//! log:<owner>:<session>:<stream>   hash    last, trimmed: positions; bytes; since: when the oldest came;
//!                                          writer: the replica; call: the request's id (JSON);
//!                                          until: closed, and to be resumed until then;
//!                                          channel, follower: who is woken; disconnect: ms;
//!                                          delivered, newest, change: of a session's own stream
//! stream:<owner>:<session>:<stream> stream entries 0-<position>: m the message, t when it came (ms)
//! sessions:<owner>                 zset    sessions by the time at which they expire
//! announced:<owner>:<change>       string  how far a change has been announced; for a minute
//! watched:<owner>:<uri>            zset    who watches that resource of the owner's from outside:
//!                                          reader and link, by the time at which that is over
//! owners                           zset    owners with sessions in this shard, by their last expiry
//! living                           zset    sessions in this shard by the time at which they expire,
//!                                          to be counted
//! ```
//!
//! A stream that is open is kept by its writer's replica, which puts its expiry
//! off again and again; so nothing of a replica that died stays for long.

mod cache;
mod follower;
mod hub;
mod lease_renewal;
mod record;
mod scripts;
#[cfg(test)]
mod tests;
mod writer;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio_util::task::AbortOnDropHandle;

use self::{
    cache::Cache,
    hub::Hub,
    lease_renewal::Held,
    scripts::{Place, Scripts, limited},
    writer::RedisWriter,
};
use super::{
    Deliveries, EventId, Session, SessionError, SessionLimits, Sessions, Signal, Signals,
    StreamWriter, Watch,
};
use crate::{
    auth::{Owner, Principal},
    protocol::{Announcement, ClientFacts, LogLevel, ProtocolVersion, RequestId},
    random::Random,
    redis::{Instance, Redis, RedisError, cmd, escape, millis},
};

/// How long a look-up is good for at most.
const CACHED: Duration = Duration::from_secs(1);

/// How long a stream stays for those who are reading it, after it can no
/// longer be resumed.
const LINGER: Duration = Duration::from_secs(10);

/// How long writers put up with a Redis that does not answer, and how long
/// they wait before they try again.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(200);

/// How long replicas may be behind each other with what they announce.
const ANNOUNCED: Duration = Duration::from_secs(60);

/// How many sessions are told in one step: some milliseconds.
const BATCH: usize = 500;

/// Keeps sessions and streams in Redis.
pub struct RedisSessions {
    inner: Arc<Inner>,
    _tasks: [AbortOnDropHandle<()>; 3],
}

struct Inner {
    redis: Redis,
    random: Random,
    limits: SessionLimits,
    scripts: Scripts,
    instance: Instance,
    hub: Hub,
    cache: Cache,
    held: Arc<Held>,
}

impl RedisSessions {
    /// Those that lie in the replica's Redis. Needs a Tokio runtime.
    pub fn new(instance: Instance, random: Random, limits: SessionLimits) -> Self {
        let redis = instance.redis().clone();
        let inner = Arc::new(Inner {
            hub: Hub::new(redis.keys().clone(), Arc::clone(instance.name())),
            cache: Cache::new(CACHED.min(limits.idle / 8)),
            scripts: Scripts::new(),
            held: Arc::default(),
            redis,
            random,
            limits,
            instance,
        });
        let (hearing, tidying, renewing) =
            (Arc::clone(&inner), Arc::clone(&inner), Arc::clone(&inner));
        let tasks = [
            tokio::spawn(async move { hearing.hub.hear(&hearing.redis, &hearing.cache).await }),
            tokio::spawn(async move { tidying.tidy().await }),
            tokio::spawn(async move { renewing.renew().await }),
        ];
        Self { inner, _tasks: tasks.map(AbortOnDropHandle::new) }
    }
}

impl Inner {
    fn place(&self, session: &Session) -> Place {
        Place::new(self.redis.keys(), &session.principal.owner(), Arc::clone(&session.id))
    }

    #[allow(clippy::unused_self, reason = "reads as the step that it is")]
    fn unavailable(&self, error: &RedisError) -> SessionError {
        tracing::warn!(%error, "sessions cannot be reached");
        SessionError::Unavailable
    }

    /// The first word of an answer says how it went.
    async fn call(&self, call: crate::redis::Call<'_>) -> Result<Vec<String>, SessionError> {
        let answer: Vec<String> =
            self.redis.call(&call).await.map_err(|error| self.unavailable(&error))?;
        match answer.first().map(String::as_str) {
            Some("none") | None => Err(SessionError::NotFound),
            _ => Ok(answer),
        }
    }

    async fn announce(
        &self,
        place: &Place,
        announcement: &Announcement,
        change: &str,
    ) -> Result<(), SessionError> {
        let uri = match announcement {
            Announcement::ResourceUpdated { uri } => uri.as_str(),
            _ => "",
        };
        let message = announcement.encode(None);
        loop {
            let call = place.all(&self.scripts.announce).arg(escape(change)).arg(uri);
            let call = call.arg(&message[..]).arg(millis(ANNOUNCED)).arg(BATCH);
            if self.call(limited(call, &self.limits)).await?[0] != "again" {
                return Ok(());
            }
        }
    }

    async fn announce_to_all(&self, announcement: &Announcement) -> Result<(), SessionError> {
        let change = self.random.id();
        for shard in self.redis.keys().shards() {
            let owners: Vec<String> = self
                .redis
                .query(cmd("ZRANGE").arg(shard.single("owners")).arg(0).arg(-1))
                .await
                .map_err(|error| self.unavailable(&error))?;
            for owner in owners {
                self.announce(&Place::of_owner(&shard, &owner), announcement, &change).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Sessions for RedisSessions {
    async fn create(
        &self,
        principal: Principal,
        version: ProtocolVersion,
        client: ClientFacts,
    ) -> Result<Arc<Session>, SessionError> {
        let inner = &self.inner;
        let (id, log_level) = (inner.random.id().into(), LogLevel::Info);
        let client = Arc::new(client);
        let session = Arc::new(Session { id, principal, version, client, log_level });
        let (most, idle) = (inner.limits.sessions_per_principal, millis(inner.limits.idle));
        let call = inner.place(&session).session(&inner.scripts.create).arg(inner.random.id());
        let call = call.arg(idle).arg(most).arg(version.as_str());
        let call = call.arg(record::client(&session.client)).arg(record::level(log_level));
        if inner.call(call).await?[0] == "many" {
            return Err(SessionError::too_many_sessions(most));
        }
        Ok(session)
    }

    async fn get(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, SessionError> {
        let inner = &self.inner;
        // What is not heard of cannot be forgotten in time.
        let hears = inner.hub.is_listening();
        if hears && let Some(session) = inner.cache.get(id, principal) {
            return Ok(session);
        }
        let place = Place::new(inner.redis.keys(), &principal.owner(), id.into());
        let call = place.session(&inner.scripts.look).arg(millis(inner.limits.idle));
        let answer = inner.call(call).await?;
        let session = record::session(id, principal, &answer[1..]).ok_or_else(|| {
            tracing::error!("a session in Redis cannot be read");
            SessionError::NotFound
        })?;
        let session = Arc::new(session);
        if hears {
            inner.cache.put(&session);
        }
        Ok(session)
    }

    async fn delete(&self, id: &str, principal: &Principal) -> Result<bool, SessionError> {
        let inner = &self.inner;
        let id: Arc<str> = id.into();
        let place = Place::new(inner.redis.keys(), &principal.owner(), Arc::clone(&id));
        let (notice, heard) = inner.hub.urgent_notice(&id, Some(Signal::Ended));
        let call = place.session(&inner.scripts.delete).arg(inner.hub.common_channel()).arg(notice);
        match inner.call(call).await {
            Ok(_) => {
                inner.cache.remove(&id);
                heard.by(&inner.instance.alive().await.unwrap_or_default()).await;
                Ok(true)
            }
            Err(SessionError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn set_log_level(&self, session: &Session, level: LogLevel) -> Result<(), SessionError> {
        let inner = &self.inner;
        let (notice, heard) = inner.hub.urgent_notice(&session.id, None);
        let call = inner.place(session).session(&inner.scripts.level).arg(record::level(level));
        inner.call(call.arg(inner.hub.common_channel()).arg(notice)).await?;
        inner.cache.remove(&session.id);
        heard.by(&inner.instance.alive().await.unwrap_or_default()).await;
        Ok(())
    }

    async fn subscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        let inner = &self.inner;
        let most = inner.limits.subscriptions_per_session;
        let call = inner.place(session).session(&inner.scripts.subscribe).arg(uri).arg(most);
        if inner.call(call).await?[0] == "many" {
            return Err(SessionError::too_many_subscriptions(most));
        }
        Ok(())
    }

    async fn unsubscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        let inner = &self.inner;
        let call = inner.place(session).session(&inner.scripts.subscribe).arg(uri).arg(0);
        inner.call(call).await.map(drop)
    }

    async fn watch(
        &self,
        owner: &Owner,
        uri: &str,
        watch: Watch,
        lasting: Duration,
    ) -> Result<(), SessionError> {
        let inner = &self.inner;
        let place = Place::new(inner.redis.keys(), owner, "".into());
        let call = place.all(&inner.scripts.watch).arg(uri);
        let call = call.arg(record::watch(&watch)).arg(millis(lasting));
        inner.call(call).await.map(drop)
    }

    async fn watches(&self, owner: &Owner, uri: &str) -> Result<Vec<Watch>, SessionError> {
        let inner = &self.inner;
        let place = Place::new(inner.redis.keys(), owner, "".into());
        let watches = inner.call(place.all(&inner.scripts.watches).arg(uri)).await?;
        Ok(watches.iter().filter_map(|watch| record::read_watch(watch)).collect())
    }

    async fn open(
        &self,
        session: &Session,
        call: &RequestId,
    ) -> Result<Box<dyn StreamWriter>, SessionError> {
        let inner = &self.inner;
        let (place, stream) = (inner.place(session), Arc::from(inner.random.id()));
        let most = inner.limits.streams_per_session;
        let hold = inner.held.hold(&place, Some(&stream));
        let open = place.session(&inner.scripts.open).arg(&*stream).arg(most);
        let open = open.arg(millis(inner.limits.replay)).arg(millis(LINGER));
        let open = open.arg(&**inner.instance.name()).arg(serde_json::json!(call).to_string());
        if inner.call(open).await?[0] == "many" {
            return Err(SessionError::too_many_streams(most));
        }
        let (inner, call) = (Arc::clone(inner), call.clone());
        Ok(Box::new(RedisWriter {
            inner,
            place,
            stream,
            call,
            position: 0,
            finished: false,
            broken: false,
            hold: Some(hold),
        }))
    }

    async fn follow(&self, session: &Session, after: &EventId) -> Result<Deliveries, SessionError> {
        let place = self.inner.place(session);
        // The empty name stands for the session's own stream, which is asked for by another.
        if after.stream.is_empty() {
            return Err(SessionError::NoStream(after.to_string()));
        }
        Ok(self.inner.follow(place, Some(after)).await?.1)
    }

    async fn standalone(&self, session: &Session) -> Result<(EventId, Deliveries), SessionError> {
        self.inner.follow(self.inner.place(session), None).await
    }

    async fn announce(&self, owner: &Owner, announcement: &Announcement, change: Option<&str>) {
        let place = Place::new(self.inner.redis.keys(), owner, "".into());
        let change = change.map_or_else(|| self.inner.random.id(), str::to_owned);
        // It has been logged, and nobody waits for it.
        let _ = self.inner.announce(&place, announcement, &change).await;
    }

    async fn announce_to_all(&self, announcement: &Announcement) {
        let _ = self.inner.announce_to_all(announcement).await;
    }

    async fn signal(&self, session: &Session, signal: Signal) -> Result<(), SessionError> {
        let inner = &self.inner;
        let mut publish = cmd("PUBLISH");
        publish.arg(inner.hub.common_channel());
        publish.arg(inner.hub.notice(&session.id, Some(signal)));
        inner.redis.query(&publish).await.map_err(|error| inner.unavailable(&error))
    }

    fn signals(&self) -> Signals {
        self.inner.hub.signals()
    }

    fn shared(&self) -> Option<String> {
        Some(self.inner.redis.name())
    }

    async fn count(&self) -> Result<u64, SessionError> {
        let inner = &self.inner;
        let shards = inner.redis.keys().shards().map(|shard| async move {
            let call = Place::of_owner(&shard, "").all(&inner.scripts.count);
            inner.redis.call::<u64>(&call).await
        });
        let shards = try_join_all(shards).await.map_err(|error| inner.unavailable(&error))?;
        Ok(shards.into_iter().sum())
    }

    async fn maintain(&self) {
        // Redis removes what has expired.
        std::future::pending::<()>().await;
    }
}

impl fmt::Debug for RedisSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisSessions").field(&self.inner.redis).finish()
    }
}
