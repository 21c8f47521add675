//! Sessions in this process's memory.

mod log;
mod table;
#[cfg(test)]
mod tests;
mod watches;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use larder_identity::{Owner, Principal};
use larder_protocol::{Announcement, ClientFacts, LogLevel, ProtocolVersion, RequestId};
use larder_runtime::{clock::Clock, held::HeldBytes, random::Random};

use self::{
    log::Log,
    table::{SessionRecord, SessionTable},
    watches::Watches,
};
use super::{
    Deliveries, EventId, Retention, Session, SessionError, SessionLimits, Sessions, Signal,
    Signals, StreamWriter, Watch,
    budget::{ReplayBudget, ReplayReservation},
    unkept_answer_error,
};

/// Stores sessions and streams in memory.
#[derive(Debug)]
pub struct MemorySessions {
    inner: Arc<MemorySessionStore>,
}

/// The state that the storage shares with its writers.
#[derive(Debug)]
struct MemorySessionStore {
    clock: Arc<dyn Clock>,
    random: Random,
    limits: SessionLimits,

    /// The lock is held for a few map operations and never across an await.
    table: Mutex<SessionTable>,
    watches: Mutex<Watches>,
    budget: Arc<ReplayBudget>,

    /// Notified when something is added that may be the next to expire.
    added: Notify,
}

impl MemorySessions {
    /// Creates an empty storage.
    pub fn new(clock: Arc<dyn Clock>, random: Random, limits: SessionLimits) -> Self {
        let inner = MemorySessionStore {
            budget: ReplayBudget::new(&limits),
            clock,
            random,
            limits,
            table: Mutex::default(),
            watches: Mutex::default(),
            added: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl MemorySessionStore {
    fn new_log(&self) -> Arc<Log> {
        Arc::new(Log::new(self.random.id().into(), &self.limits, Arc::clone(&self.clock)))
    }

    fn announce(&self, owner: Option<&Owner>, announcement: &Announcement, change: Option<&str>) {
        let message = announcement.encode(None);
        let logs =
            self.table.lock().standalone_streams_receiving(owner, announcement, || self.new_log());

        for log in logs {
            log.append_once(message.clone(), change);
        }
    }

    fn with_record<T>(
        &self,
        session: &Session,
        action: impl FnOnce(&mut SessionRecord) -> T,
    ) -> Result<T, SessionError> {
        let mut table = self.table.lock();
        table.record(&session.id).map(action).ok_or(SessionError::NotFound)
    }
}

#[async_trait]
impl Sessions for MemorySessions {
    async fn create(
        &self,
        principal: Principal,
        version: ProtocolVersion,
        client: ClientFacts,
    ) -> Result<Arc<Session>, SessionError> {
        let inner = &self.inner;
        let session = Arc::new(Session {
            id: inner.random.id().into(),
            principal,
            version,
            client: Arc::new(client),
            log_level: LogLevel::Info,
        });

        let expires = inner.clock.now().saturating_add(inner.limits.idle);
        inner.table.lock().insert(Arc::clone(&session), expires, &inner.limits)?;
        inner.added.notify_one();
        Ok(session)
    }

    async fn get(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, SessionError> {
        let now = self.inner.clock.now();
        let idle = self.inner.limits.idle;

        let mut table = self.inner.table.lock();
        let record = table.record(id).filter(|r| r.session.principal == *principal);
        let record = record.filter(|r| r.expires_at(idle) > now).ok_or(SessionError::NotFound)?;

        record.expires = now.saturating_add(idle);
        Ok(Arc::clone(&record.session))
    }

    async fn exists(&self, id: &str, principal: &Principal) -> Result<bool, SessionError> {
        let now = self.inner.clock.now();
        let idle = self.inner.limits.idle;

        let mut table = self.inner.table.lock();
        let record = table.record(id).filter(|r| r.session.principal == *principal);
        Ok(record.is_some_and(|r| r.expires_at(idle) > now))
    }

    async fn delete(&self, id: &str, principal: &Principal) -> Result<bool, SessionError> {
        let now = self.inner.clock.now();
        let idle = self.inner.limits.idle;

        let mut table = self.inner.table.lock();
        let record = table.record(id).filter(|r| r.session.principal == *principal);
        let Some(expired) = record.map(|r| r.expires_at(idle) <= now) else { return Ok(false) };

        table.remove(id);
        Ok(!expired)
    }

    async fn set_log_level(&self, session: &Session, level: LogLevel) -> Result<(), SessionError> {
        self.inner.with_record(session, |record| {
            let session = Session { log_level: level, ..(*record.session).clone() };
            record.session = Arc::new(session);
        })
    }

    async fn subscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        let max = self.inner.limits.subscriptions_per_session;
        match self.inner.table.lock().subscribe(&session.id, uri, max) {
            Some(true) => Ok(()),
            Some(false) => Err(SessionError::too_many_subscriptions(max)),
            None => Err(SessionError::NotFound),
        }
    }

    async fn unsubscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        let found = self.inner.table.lock().unsubscribe(&session.id, uri);
        found.then_some(()).ok_or(SessionError::NotFound)
    }

    async fn watch(
        &self,
        owner: &Owner,
        uri: &str,
        watch: Watch,
        ttl: Duration,
    ) -> Result<(), SessionError> {
        let now = self.inner.clock.now();
        let resource = (owner.clone(), uri.into());
        let until = now.saturating_add(ttl);
        self.inner.watches.lock().add(resource, watch, until, now);
        Ok(())
    }

    async fn watches(&self, owner: &Owner, uri: &str) -> Result<Vec<Watch>, SessionError> {
        let now = self.inner.clock.now();
        Ok(self.inner.watches.lock().get(&(owner.clone(), uri.into()), now))
    }

    async fn open(
        &self,
        session: &Session,
        call: &RequestId,
    ) -> Result<Box<dyn StreamWriter>, SessionError> {
        let log = self.inner.new_log();
        let max = self.inner.limits.streams_per_session;
        let opened =
            self.inner.with_record(session, |record| record.add_stream(Arc::clone(&log), max))?;
        if !opened {
            return Err(SessionError::too_many_streams(max));
        }

        Ok(Box::new(MemoryWriter {
            inner: Arc::clone(&self.inner),
            session: Arc::clone(&session.id),
            owner: session.principal.owner(),
            call: call.clone(),
            log,
        }))
    }

    async fn follow(&self, session: &Session, after: &EventId) -> Result<Deliveries, SessionError> {
        let log = self.inner.with_record(session, |record| record.stream(&after.stream))?;
        let log = log.ok_or_else(|| SessionError::NoStream(after.to_string()))?;
        log.follow(after.position)
    }

    async fn standalone(&self, session: &Session) -> Result<(EventId, Deliveries), SessionError> {
        let log =
            self.inner.with_record(session, |record| record.standalone(|| self.inner.new_log()))?;

        let start = EventId { stream: Arc::clone(&log.stream), position: log.undelivered() };
        Ok((start.clone(), log.follow(start.position)?))
    }

    async fn send_now(&self, session: &Session, message: Bytes) -> Result<bool, SessionError> {
        let log =
            self.inner.with_record(session, |record| record.standalone(|| self.inner.new_log()))?;
        Ok(log.append_followed(message))
    }

    async fn announce(&self, owner: &Owner, announcement: &Announcement, changes: &[Arc<str>]) {
        self.inner.announce(Some(owner), announcement, changes.last().map(|change| &**change));
    }

    async fn announce_to_all(&self, announcement: &Announcement) {
        self.inner.announce(None, announcement, None);
    }

    async fn signal(&self, _session: &Session, _signal: Signal) -> Result<(), SessionError> {
        // Memory has no other processes.
        Ok(())
    }

    fn signals(&self) -> Signals {
        futures_util::stream::pending().boxed()
    }

    fn shared_location(&self) -> Option<String> {
        None
    }

    async fn count(&self) -> Result<u64, SessionError> {
        Ok(self.inner.table.lock().len() as u64)
    }

    async fn maintain(&self) {
        let MemorySessionStore { clock, limits, added, .. } = &*self.inner;
        loop {
            let notified = added.notified();
            let now = clock.now();

            let next = {
                let mut table = self.inner.table.lock();
                table.remove_expired(now, limits.idle);
                table.next_check()
            };

            let next = next.unwrap_or_else(|| now.saturating_add(Duration::from_secs(60 * 60)));

            tokio::select! {
                () = clock.sleep_until(next) => {}
                () = notified => {}
            }
        }
    }
}

/// The writer of a stream. Dropping it closes the stream and starts the replay time.
struct MemoryWriter {
    inner: Arc<MemorySessionStore>,
    session: Arc<str>,
    owner: Owner,
    call: RequestId,
    log: Arc<Log>,
}

impl MemoryWriter {
    fn reserve(&self, bytes: usize) -> Option<ReplayReservation> {
        self.inner.budget.reserve(&self.owner, bytes)
    }
}

#[async_trait]
impl StreamWriter for MemoryWriter {
    fn start(&self) -> EventId {
        EventId { stream: Arc::clone(&self.log.stream), position: 0 }
    }

    async fn append(&mut self, message: Bytes) -> Result<(), SessionError> {
        self.log.append(message);
        Ok(())
    }

    async fn finish(
        &mut self,
        message: HeldBytes,
        retention: Retention,
    ) -> Result<(), SessionError> {
        let lost = || unkept_answer_error(&self.call).into();
        if self.log.finish(message, retention, |bytes| self.reserve(bytes), lost) {
            return Ok(());
        }

        // The present follower holds the log until it has read everything.
        let mut table = self.inner.table.lock();
        if let Some(record) = table.record(&self.session) {
            record.remove_stream(&self.log.stream);
        }
        Ok(())
    }

    async fn disconnect(&mut self, retry: Duration) -> Result<(), SessionError> {
        self.log.disconnect(retry);
        Ok(())
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.log.abandon(|bytes| self.reserve(bytes));

        let until = self.inner.clock.now().saturating_add(self.inner.limits.replay);
        self.inner.table.lock().keep_stream_until(until, &self.session, &self.log.stream);
        self.inner.added.notify_one();
    }
}
