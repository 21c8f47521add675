//! Sessions in this process's memory.

mod log;
mod table;
#[cfg(test)]
mod tests;
mod watches;

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use self::{
    log::Log,
    table::{Record, Table},
    watches::Watches,
};
use super::{
    Deliveries, EventId, Session, SessionError, SessionLimits, Sessions, Signal, Signals,
    StreamWriter, Watch,
};
use crate::{
    auth::{Owner, Principal},
    clock::Clock,
    protocol::{Announcement, ClientFacts, LogLevel, ProtocolVersion, RequestId},
    random::Random,
};

/// Keeps sessions and streams in memory.
#[derive(Debug)]
pub struct MemorySessions {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    random: Random,
    limits: SessionLimits,
    // A plain mutex: held for a few map operations and never across an await.
    table: Mutex<Table>,
    watches: Mutex<Watches>,
    sooner: Notify,
}

impl MemorySessions {
    /// None yet.
    pub fn new(clock: Arc<dyn Clock>, random: Random, limits: SessionLimits) -> Self {
        let (table, watches, sooner) = (Mutex::default(), Mutex::default(), Notify::new());
        Self { inner: Arc::new(Inner { clock, random, limits, table, watches, sooner }) }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    fn watches(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock()
    }

    fn new_log(&self) -> Arc<Log> {
        Arc::new(Log::new(self.random.id().into(), &self.limits, Arc::clone(&self.clock)))
    }

    fn announce(&self, owner: Option<&Owner>, announcement: &Announcement, change: Option<&str>) {
        let message = announcement.encode(None);
        let logs = self.lock().own_streams_wanting(owner, announcement, || self.new_log());
        for log in logs {
            log.append_once(message.clone(), change);
        }
    }

    fn with_record<T>(
        &self,
        session: &Session,
        act: impl FnOnce(&mut Record) -> T,
    ) -> Result<T, SessionError> {
        let mut table = self.lock();
        table.record(&session.id).map(act).ok_or(SessionError::NotFound)
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
        let (id, log_level) = (inner.random.id().into(), LogLevel::Info);
        let client = Arc::new(client);
        let session = Arc::new(Session { id, principal, version, client, log_level });
        let expires = inner.clock.now().saturating_add(inner.limits.idle);
        let most = inner.limits.sessions_per_principal;
        let inserted = inner.lock().insert(Arc::clone(&session), expires, most);
        if !inserted {
            return Err(SessionError::too_many_sessions(most));
        }
        inner.sooner.notify_one();
        Ok(session)
    }

    async fn get(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, SessionError> {
        let (now, idle) = (self.inner.clock.now(), self.inner.limits.idle);
        let mut table = self.inner.lock();
        let record = table.record(id).filter(|r| r.session.principal == *principal);
        let record = record.filter(|r| r.expires_at(idle) > now).ok_or(SessionError::NotFound)?;
        record.expires = now.saturating_add(idle);
        Ok(Arc::clone(&record.session))
    }

    async fn delete(&self, id: &str, principal: &Principal) -> Result<bool, SessionError> {
        let (now, idle) = (self.inner.clock.now(), self.inner.limits.idle);
        let mut table = self.inner.lock();
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
        let most = self.inner.limits.subscriptions_per_session;
        self.inner.with_record(session, |record| {
            let subscriptions = record.subscriptions.get_or_insert_with(HashSet::new);
            if subscriptions.len() >= most && !subscriptions.contains(uri) {
                return Err(SessionError::too_many_subscriptions(most));
            }
            subscriptions.insert(uri.to_owned());
            Ok(())
        })?
    }

    async fn unsubscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError> {
        self.inner.with_record(session, |record| {
            if let Some(subscriptions) = &mut record.subscriptions {
                subscriptions.remove(uri);
            }
        })
    }

    async fn watch(
        &self,
        owner: &Owner,
        uri: &str,
        watch: Watch,
        lasting: Duration,
    ) -> Result<(), SessionError> {
        let now = self.inner.clock.now();
        let (resource, until) = ((owner.clone(), uri.to_owned()), now.saturating_add(lasting));
        self.inner.watches().add(resource, watch, until, now);
        Ok(())
    }

    async fn watches(&self, owner: &Owner, uri: &str) -> Result<Vec<Watch>, SessionError> {
        let now = self.inner.clock.now();
        Ok(self.inner.watches().of(&(owner.clone(), uri.to_owned()), now))
    }

    async fn open(
        &self,
        session: &Session,
        _call: &RequestId,
    ) -> Result<Box<dyn StreamWriter>, SessionError> {
        let log = self.inner.new_log();
        let most = self.inner.limits.streams_per_session;
        let opened =
            self.inner.with_record(session, |record| record.add_stream(Arc::clone(&log), most))?;
        if !opened {
            return Err(SessionError::too_many_streams(most));
        }
        let session = Arc::clone(&session.id);
        Ok(Box::new(MemoryWriter { inner: Arc::clone(&self.inner), session, log }))
    }

    async fn follow(&self, session: &Session, after: &EventId) -> Result<Deliveries, SessionError> {
        let log = self.inner.with_record(session, |record| record.stream(&after.stream))?;
        let log = log.ok_or_else(|| SessionError::NoStream(after.to_string()))?;
        log.follow(after.position)
    }

    async fn standalone(&self, session: &Session) -> Result<(EventId, Deliveries), SessionError> {
        let log =
            self.inner.with_record(session, |record| record.own_stream(|| self.inner.new_log()))?;
        let start = EventId { stream: Arc::clone(&log.stream), position: log.undelivered() };
        Ok((start.clone(), log.follow(start.position)?))
    }

    async fn announce(&self, owner: &Owner, announcement: &Announcement, change: Option<&str>) {
        self.inner.announce(Some(owner), announcement, change);
    }

    async fn announce_to_all(&self, announcement: &Announcement) {
        self.inner.announce(None, announcement, None);
    }

    async fn signal(&self, _session: &Session, _signal: Signal) -> Result<(), SessionError> {
        // Whoever could be concerned is in this process and has been asked.
        Ok(())
    }

    fn signals(&self) -> Signals {
        futures_util::stream::pending().boxed()
    }

    fn shared(&self) -> Option<String> {
        None
    }

    async fn count(&self) -> Result<u64, SessionError> {
        Ok(self.inner.lock().len() as u64)
    }

    async fn maintain(&self) {
        let Inner { clock, limits, sooner, .. } = &*self.inner;
        loop {
            let added = sooner.notified();
            let now = clock.now();
            let next = {
                let mut table = self.inner.lock();
                table.remove_expired(now, limits.idle);
                table.next_expiry()
            };
            let next = next.unwrap_or_else(|| now.saturating_add(Duration::from_secs(60 * 60)));
            tokio::select! {
                () = clock.sleep_until(next) => {}
                () = added => {}
            }
        }
    }
}

/// Writes one stream; closes it and starts its replay time when dropped.
struct MemoryWriter {
    inner: Arc<Inner>,
    session: Arc<str>,
    log: Arc<Log>,
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

    async fn finish(&mut self, message: Bytes) -> Result<(), SessionError> {
        self.log.append(message);
        self.log.close();
        Ok(())
    }

    async fn disconnect(&mut self, retry: Duration) -> Result<(), SessionError> {
        self.log.disconnect(retry);
        Ok(())
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.log.close();
        let until = self.inner.clock.now().saturating_add(self.inner.limits.replay);
        self.inner.lock().keep_stream_until(until, &self.session, &self.log.stream);
        self.inner.sooner.notify_one();
    }
}
