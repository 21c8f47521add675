//! [`SessionTable`]: the sessions in memory, by their ID, their owner and their subscriptions.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use larder_identity::Owner;
use larder_protocol::Announcement;
use larder_runtime::clock::Timestamp;

use super::{Log, Session, SessionError, SessionLimits};
use crate::expiring::ExpiringMap;

/// All sessions in memory.
#[derive(Debug, Default)]
pub(super) struct SessionTable {
    records: HashMap<Arc<str>, SessionRecord>,
    by_owner: HashMap<Owner, HashSet<Arc<str>>>,
    /// The sessions that subscribe to a resource, by owner and URI.
    subscribers: HashMap<Owner, HashMap<Box<str>, HashSet<Arc<str>>>>,
    /// The times at which to check whether a session, or a stream of it, has expired. A map of its
    /// own, because each request moves the expiry of its session, and none moves the check: the
    /// check schedules the next one.
    checks: ExpiringMap<DueCheck, ()>,
}

/// A session to check, or a finished stream of it to remove.
type DueCheck = (Arc<str>, Option<Arc<str>>);

/// A session and its mutable state, which is small while the session is idle.
#[derive(Debug)]
pub(super) struct SessionRecord {
    pub(super) session: Arc<Session>,
    pub(super) expires: Timestamp,
    subscriptions: Option<HashSet<Box<str>>>,
    standalone: Option<Arc<Log>>,
    calls: Vec<Arc<Log>>,
}

impl SessionRecord {
    /// The time of the expiry: `idle` after the last request, connection or running call.
    pub(super) fn expires_at(&self, idle: Duration) -> Timestamp {
        let standalone = self.standalone.iter().map(|log| log.last_used(true));
        let calls = self.calls.iter().map(|log| log.last_used(false));

        let last_used = standalone.chain(calls).max();
        self.expires.max(last_used.map_or(self.expires, |used| used.saturating_add(idle)))
    }

    /// Adds a call's stream. If there are `max` streams already, removes the oldest finished
    /// stream, or returns false if all are running.
    pub(super) fn add_stream(&mut self, log: Arc<Log>, max: usize) -> bool {
        if self.calls.len() >= max {
            let Some(finished) = self.calls.iter().position(|log| log.is_closed()) else {
                return false;
            };
            self.calls.remove(finished);
        }

        self.calls.push(log);
        true
    }

    pub(super) fn remove_stream(&mut self, stream: &str) {
        self.calls.retain(|log| *log.stream != *stream);
    }

    pub(super) fn stream(&self, stream: &str) -> Option<Arc<Log>> {
        let logs = self.calls.iter().chain(&self.standalone);
        logs.into_iter().find(|log| *log.stream == *stream).cloned()
    }

    /// The standalone stream, opened at its first use.
    pub(super) fn standalone(&mut self, new: impl FnOnce() -> Arc<Log>) -> Arc<Log> {
        Arc::clone(self.standalone.get_or_insert_with(new))
    }

    fn close(&self) {
        for log in self.calls.iter().chain(&self.standalone) {
            log.close();
        }
    }
}

impl SessionTable {
    /// Inserts a session, unless the owner or all owners have too many.
    pub(super) fn insert(
        &mut self,
        session: Arc<Session>,
        expires: Timestamp,
        limits: &SessionLimits,
    ) -> Result<(), SessionError> {
        let max = limits.sessions_per_principal;
        let total = limits.sessions_total;
        let owner = session.principal.owner();

        if self.by_owner.get(&owner).map_or(0, HashSet::len) >= max {
            return Err(SessionError::too_many_sessions(max));
        }
        if total != 0 && self.records.len() >= total {
            return Err(SessionError::too_many_in_total(total));
        }

        let id = Arc::clone(&session.id);
        self.by_owner.entry(owner).or_default().insert(Arc::clone(&id));
        self.checks.insert((Arc::clone(&id), None), (), expires);

        let record = SessionRecord {
            session,
            expires,
            subscriptions: None,
            standalone: None,
            calls: Vec::new(),
        };
        self.records.insert(id, record);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn record(&mut self, id: &str) -> Option<&mut SessionRecord> {
        self.records.get_mut(id)
    }

    /// The standalone streams of the sessions that receive an announcement: the sessions of
    /// `owner`, or all sessions.
    pub(super) fn standalone_streams_receiving(
        &mut self,
        owner: Option<&Owner>,
        announcement: &Announcement,
        new: impl Fn() -> Arc<Log>,
    ) -> Vec<Arc<Log>> {
        let ids: Vec<_> = match (owner, announcement) {
            (Some(owner), Announcement::ResourceUpdated { uri }) => {
                let by_uri = self.subscribers.get(owner);
                by_uri.and_then(|uris| uris.get(&**uri)).into_iter().flatten().cloned().collect()
            }
            (Some(owner), _) => self.by_owner.get(owner).into_iter().flatten().cloned().collect(),
            (None, _) => self.records.keys().cloned().collect(),
        };

        let records = &mut self.records;
        let log = |id| Some(records.get_mut(id)?.standalone(&new));
        ids.iter().filter_map(log).collect()
    }

    /// Adds a subscription. Returns false if the session has `max` subscriptions already, and
    /// `None` if the session does not exist.
    pub(super) fn subscribe(&mut self, id: &str, uri: &str, max: usize) -> Option<bool> {
        let record = self.records.get_mut(id)?;
        let subscriptions = record.subscriptions.get_or_insert_with(HashSet::new);

        if subscriptions.contains(uri) {
            return Some(true);
        }
        if subscriptions.len() >= max {
            return Some(false);
        }

        subscriptions.insert(uri.into());

        let session = &record.session;
        let uris = self.subscribers.entry(session.principal.owner()).or_default();
        uris.entry(uri.into()).or_default().insert(Arc::clone(&session.id));
        Some(true)
    }

    /// Removes a subscription. Returns whether the session exists.
    pub(super) fn unsubscribe(&mut self, id: &str, uri: &str) -> bool {
        let Some(record) = self.records.get_mut(id) else { return false };
        if record.subscriptions.as_mut().is_some_and(|uris| uris.remove(uri)) {
            let owner = record.session.principal.owner();
            self.remove_subscribers(&owner, id, [uri.into()]);
        }
        true
    }

    fn remove_subscribers(
        &mut self,
        owner: &Owner,
        id: &str,
        uris: impl IntoIterator<Item = Box<str>>,
    ) {
        let Some(of_owner) = self.subscribers.get_mut(owner) else { return };

        for uri in uris {
            if let Some(sessions) = of_owner.get_mut(&uri) {
                sessions.remove(id);
                if sessions.is_empty() {
                    of_owner.remove(&uri);
                }
            }
        }

        if of_owner.is_empty() {
            self.subscribers.remove(owner);
        }
    }

    /// Removes a session and closes its streams.
    pub(super) fn remove(&mut self, id: &str) {
        let Some(mut record) = self.records.remove(id) else { return };

        let id = &record.session.id;
        let streams = record.calls.iter().map(|log| Some(Arc::clone(&log.stream)));
        for stream in streams.chain([None]) {
            self.checks.remove(&(Arc::clone(id), stream));
        }
        record.close();

        let owner = record.session.principal.owner();
        self.remove_subscribers(&owner, id, record.subscriptions.take().unwrap_or_default());

        if let Some(ids) = self.by_owner.get_mut(&owner) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
    }

    /// Schedules the removal of a finished stream.
    pub(super) fn keep_stream_until(
        &mut self,
        until: Timestamp,
        session: &Arc<str>,
        stream: &Arc<str>,
    ) {
        if self.records.contains_key(session) {
            self.checks.insert((Arc::clone(session), Some(Arc::clone(stream))), (), until);
        }
    }

    /// Removes the sessions and finished streams that have expired.
    pub(super) fn remove_expired(&mut self, now: Timestamp, idle: Duration) {
        while let Some(((id, stream), ())) = self.checks.pop_expired(now) {
            let Some(record) = self.records.get_mut(&id) else { continue };

            match stream {
                Some(stream) => record.calls.retain(|log| log.stream != stream),
                None => match record.expires_at(idle) {
                    expired if expired <= now => self.remove(&id),
                    later => {
                        self.checks.insert((id, None), (), later);
                    }
                },
            }
        }
    }

    /// The time of the next check of [`remove_expired`](Self::remove_expired).
    pub(super) fn next_check(&self) -> Option<Timestamp> {
        self.checks.next_expiry()
    }
}
