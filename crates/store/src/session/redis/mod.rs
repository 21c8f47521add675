//! Sessions and streams in Redis. Any instance serves any request of any session, and unused
//! sessions expire by themselves.
//!
//! All keys of an owner lie in one shard (see [`crate::redis::Keys`]) and begin with
//! its prefix. `<owner>`, `<session>` and `<stream>` are escaped.
//!
//! ```text
//! session:<owner>:<session>        hash    version, client (JSON), level, own (id of the standalone
//!                                          stream), subscribed (the time up to which it is in the
//!                                          sets of subscribers); expires after the idle time
//! subscriptions:<owner>:<session>  set     URIs; expires with the session
//! streams:<owner>:<session>        zset    streams of calls by the time at which they are removed
//! log:<owner>:<session>:<stream>   hash    last, trimmed: positions; bytes; since: when the oldest
//!                                          message was appended; writer: the instance; call: the
//!                                          request's id (JSON); until: the stream is closed and can be
//!                                          resumed until then; channel, follower: whom to wake;
//!                                          disconnect: ms; delivered, newest, change: only of the
//!                                          standalone stream
//! stream:<owner>:<session>:<stream> stream entries 0-<position>: m the message, t when it was
//!                                          appended (ms)
//! sessions:<owner>                 zset    sessions by expiry
//! subscribers:<owner>:<uri>        zset    the sessions that subscribe to a resource, by a time after
//!                                          their expiry
//! announced:<owner>:<uri>          zset    the changes of a resource, or of the list (no URI), that are
//!                                          announced, by time; expires after a minute
//! announcing:<owner>:<change>:<uri> string cursor of an announcement; expires after a minute
//! watched:<owner>:<uri>            zset    watches of a shared resource of the owner (reader and
//!                                          link) by expiry
//! owners                           zset    owners with sessions in this shard, by their last expiry
//! living                           zset    sessions in this shard by expiry, for counting
//! claim:<session>:<part>           string  the instance that holds a part of the session which cannot
//!                                          move; in the shard of the session; expires unless renewed
//! note:<session>:<part>            hash    text: what another instance needs to continue a part of the
//!                                          session; reads: how many times it was read; expires after
//!                                          the idle time unless extended
//! ```
//!
//! The instance that writes an open stream holds a lease on it and renews the lease, so the streams
//! of a dead instance soon expire.

mod announcements;
mod cache;
mod claims;
mod follower;
mod hub;
mod keys;
mod lease_renewal;
mod lifecycle;
mod notes;
mod owners;
mod record;
mod scripts;
mod subscriptions;
#[cfg(test)]
mod tests;
mod writer;

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use larder_identity::{Owner, Principal};
use larder_protocol::{Announcement, ClientFacts, LogLevel, ProtocolVersion, RequestId};
use larder_runtime::random::Random;

use self::{
    cache::SessionCache, hub::Hub, keys::SessionKeys, lease_renewal::Leases, scripts::Scripts,
};
pub use self::{claims::RedisClaims, notes::RedisNotes, owners::SessionOwnerPage};
use super::{
    Deliveries, EventId, Session, SessionError, SessionLimits, Sessions, Signal, Signals,
    StreamWriter, Watch,
    budget::{ReplayBudget, ReplayReservation},
};
use crate::redis::{Call, Instance, Redis, RedisError, Total, cmd};

/// The maximum age of a cached session.
const CACHE_TTL: Duration = Duration::from_secs(1);

/// How long a stream remains for its present follower after it can no longer be resumed.
const LINGER: Duration = Duration::from_secs(10);

/// How long a writer retries while Redis is unreachable.
const MAX_OUTAGE: Duration = Duration::from_secs(10);

/// The delay between two attempts.
const RETRY: Duration = Duration::from_millis(200);

/// Stores sessions and streams in Redis.
pub struct RedisSessions {
    inner: Arc<RedisSessionStore>,
    _tasks: [AbortOnDropHandle<()>; 3],
}

/// The state that the storage shares with its writers, followers and background tasks.
struct RedisSessionStore {
    redis: Redis,
    random: Random,
    limits: SessionLimits,
    scripts: Scripts,

    instance: Instance,
    hub: Hub,
    cache: SessionCache,
    leases: Arc<Leases>,
    budget: Arc<ReplayBudget>,

    /// The number of sessions of all owners.
    total: Total,
    /// The reservations for finished streams, ordered by their expiry.
    kept: Mutex<VecDeque<(Instant, ReplayReservation)>>,
}

impl RedisSessions {
    /// The sessions in the instance's Redis. Needs a Tokio runtime.
    pub fn new(instance: Instance, random: Random, limits: SessionLimits) -> Self {
        let redis = instance.redis().clone();
        let inner = Arc::new(RedisSessionStore {
            hub: Hub::new(redis.keys().clone(), Arc::clone(instance.name())),
            cache: SessionCache::new(CACHE_TTL.min(limits.idle / 8)),
            scripts: Scripts::new(),
            leases: Arc::default(),
            budget: ReplayBudget::new(&limits),
            total: Total::default(),
            kept: Mutex::default(),
            redis,
            random,
            limits,
            instance,
        });

        let hub = Arc::clone(&inner);
        let pruning = Arc::clone(&inner);
        let renewing = Arc::clone(&inner);
        let tasks = [
            tokio::spawn(async move { hub.hub.run(&hub.redis, &hub.cache).await }),
            tokio::spawn(async move { pruning.prune_cache().await }),
            tokio::spawn(async move { renewing.renew_leases().await }),
        ];
        Self { inner, _tasks: tasks.map(AbortOnDropHandle::new) }
    }
}

impl RedisSessionStore {
    /// Holds a reservation until its stream expires, and gives back expired reservations.
    fn keep(&self, reservation: Option<ReplayReservation>) {
        let now = Instant::now();

        let mut kept = self.kept.lock();
        while kept.front().is_some_and(|(until, _)| *until <= now) {
            kept.pop_front();
        }

        kept.extend(reservation.map(|reservation| (now + self.limits.replay, reservation)));
    }

    fn keys(&self, session: &Session) -> SessionKeys {
        SessionKeys::new(self.redis.keys(), &session.principal.owner(), Arc::clone(&session.id))
    }

    /// Runs a script whose reply begins with a status. The status `none` means no session.
    async fn call(&self, call: Call<'_>) -> Result<Vec<String>, SessionError> {
        let reply: Vec<String> =
            self.redis.call(&call).await.map_err(|error| unavailable(&error))?;

        match reply.first().map(String::as_str) {
            Some("none") | None => Err(SessionError::NotFound),
            _ => Ok(reply),
        }
    }
}

fn unavailable(error: &RedisError) -> SessionError {
    tracing::warn!(%error, "the session storage cannot be reached");
    SessionError::Unavailable
}

#[async_trait]
impl Sessions for RedisSessions {
    async fn create(
        &self,
        principal: Principal,
        version: ProtocolVersion,
        client: ClientFacts,
    ) -> Result<Arc<Session>, SessionError> {
        self.inner.create(principal, version, client).await
    }

    async fn get(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, SessionError> {
        self.inner.get(id, principal).await
    }

    async fn exists(&self, id: &str, principal: &Principal) -> Result<bool, SessionError> {
        self.inner.exists(id, principal).await
    }

    async fn delete(&self, id: &str, principal: &Principal) -> Result<bool, SessionError> {
        self.inner.delete(id.into(), &principal.owner()).await
    }

    async fn set_log_level(&self, session: &Session, level: LogLevel) -> Result<(), SessionError> {
        self.inner.set_log_level(session, level).await
    }

    async fn subscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        self.inner.subscribe(session, uri).await
    }

    async fn unsubscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        self.inner.unsubscribe(session, uri).await
    }

    async fn watch(
        &self,
        owner: &Owner,
        uri: &str,
        watch: Watch,
        ttl: Duration,
    ) -> Result<(), SessionError> {
        self.inner.watch(owner, uri, &watch, ttl).await
    }

    async fn watches(&self, owner: &Owner, uri: &str) -> Result<Vec<Watch>, SessionError> {
        self.inner.watches(owner, uri).await
    }

    async fn open(
        &self,
        session: &Session,
        call: &RequestId,
    ) -> Result<Box<dyn StreamWriter>, SessionError> {
        Ok(Box::new(self.inner.open(session, call).await?))
    }

    async fn follow(&self, session: &Session, after: &EventId) -> Result<Deliveries, SessionError> {
        // The script takes the empty name for the standalone stream, which has its own method.
        if after.stream.is_empty() {
            return Err(SessionError::NoStream(after.to_string()));
        }

        Ok(self.inner.follow(self.inner.keys(session), Some(after)).await?.1)
    }

    async fn standalone(&self, session: &Session) -> Result<(EventId, Deliveries), SessionError> {
        self.inner.follow(self.inner.keys(session), None).await
    }

    async fn send_now(&self, session: &Session, message: Bytes) -> Result<bool, SessionError> {
        self.inner.send_now(session, &message).await
    }

    async fn announce(&self, owner: &Owner, announcement: &Announcement, changes: &[Arc<str>]) {
        let keys = SessionKeys::of_owner(self.inner.redis.keys(), owner);
        let fresh = [self.inner.random.id().into()];
        let changes = if changes.is_empty() { &fresh } else { changes };

        // A failure has been logged, and no caller waits for the result.
        let _ = self.inner.announce(&keys, announcement, changes).await;
    }

    async fn announce_to_all(&self, announcement: &Announcement) {
        let _ = self.inner.announce_to_all(announcement).await;
    }

    async fn signal(&self, session: &Session, signal: Signal) -> Result<(), SessionError> {
        let mut publish = cmd("PUBLISH");
        publish.arg(self.inner.hub.common_channel());
        publish.arg(self.inner.hub.notice(&session.id, Some(signal)));
        self.inner.redis.query(&publish).await.map_err(|error| unavailable(&error))
    }

    fn signals(&self) -> Signals {
        self.inner.hub.signals()
    }

    fn shared_location(&self) -> Option<String> {
        Some(self.inner.redis.name())
    }

    async fn count(&self) -> Result<u64, SessionError> {
        self.inner.count().await
    }

    async fn maintain(&self) {
        // Redis removes expired keys itself.
        std::future::pending::<()>().await;
    }
}

impl fmt::Debug for RedisSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisSessions").field(&self.inner.redis).finish()
    }
}
