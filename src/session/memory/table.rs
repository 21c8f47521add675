//! The maps of sessions in memory.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use super::{Log, Session};
use crate::{auth::Owner, clock::Timestamp, protocol::Announcement};

#[derive(Debug, Default)]
pub(super) struct Table {
    records: HashMap<Arc<str>, Record>,
    by_owner: HashMap<Owner, HashSet<Arc<str>>>,
    /// When to check whether a session, or one of its streams, has expired. A session's
    /// sliding expiry does not update this; the check schedules the next one.
    checks: BTreeSet<(Timestamp, Arc<str>, Option<Arc<str>>)>,
}

/// A session and its mutable state. Small while idle.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) session: Arc<Session>,
    pub(super) expires: Timestamp,
    pub(super) subscriptions: Option<HashSet<String>>,
    standalone: Option<Arc<Log>>,
    calls: Vec<Arc<Log>>,
}

impl Record {
    /// The expiry: `idle` after the last request, connection or running call.
    pub(super) fn expires_at(&self, idle: Duration) -> Timestamp {
        let standalone = self.standalone.iter().map(|log| log.last_used(true));
        let calls = self.calls.iter().map(|log| log.last_used(false));
        let last_used = standalone.chain(calls).max();
        self.expires.max(last_used.map_or(self.expires, |used| used.saturating_add(idle)))
    }

    /// Adds a call's stream. If there are `max` streams already, removes the oldest
    /// finished one, or returns false if all are running.
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

    pub(super) fn standalone(&mut self, new: impl FnOnce() -> Arc<Log>) -> Arc<Log> {
        Arc::clone(self.standalone.get_or_insert_with(new))
    }

    pub(super) fn receives(&self, announcement: &Announcement) -> bool {
        match announcement {
            Announcement::ToolListChanged
            | Announcement::PromptListChanged
            | Announcement::ResourceListChanged => true,
            Announcement::ResourceUpdated { uri } => {
                self.subscriptions.as_ref().is_some_and(|s| s.contains(uri))
            }
        }
    }

    fn close(&self) {
        for log in self.calls.iter().chain(&self.standalone) {
            log.close();
        }
    }
}

impl Table {
    /// Inserts a session. Returns false if its owner has `max` sessions already.
    pub(super) fn insert(&mut self, session: Arc<Session>, expires: Timestamp, max: usize) -> bool {
        let of_owner = self.by_owner.entry(session.principal.owner()).or_default();
        if of_owner.len() >= max {
            return false;
        }
        let id = Arc::clone(&session.id);
        of_owner.insert(Arc::clone(&id));
        self.checks.insert((expires, Arc::clone(&id), None));
        let record =
            Record { session, expires, subscriptions: None, standalone: None, calls: Vec::new() };
        self.records.insert(id, record);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn record(&mut self, id: &str) -> Option<&mut Record> {
        self.records.get_mut(id)
    }

    /// The standalone streams of the sessions that receive the announcement, of one owner or
    /// of all.
    pub(super) fn standalone_streams_receiving(
        &mut self,
        owner: Option<&Owner>,
        announcement: &Announcement,
        new: impl Fn() -> Arc<Log>,
    ) -> Vec<Arc<Log>> {
        let ids: Vec<_> = match owner {
            Some(owner) => self.by_owner.get(owner).into_iter().flatten().cloned().collect(),
            None => self.records.keys().cloned().collect(),
        };
        let mut logs = Vec::new();
        for id in &ids {
            if let Some(record) = self.records.get_mut(id)
                && record.receives(announcement)
            {
                logs.push(record.standalone(&new));
            }
        }
        logs
    }

    pub(super) fn remove(&mut self, id: &str) {
        let Some(record) = self.records.remove(id) else { return };
        record.close();
        let owner = record.session.principal.owner();
        if let Some(ids) = self.by_owner.get_mut(&owner) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
    }

    pub(super) fn keep_stream_until(
        &mut self,
        until: Timestamp,
        session: &Arc<str>,
        stream: &Arc<str>,
    ) {
        if self.records.contains_key(session) {
            self.checks.insert((until, Arc::clone(session), Some(Arc::clone(stream))));
        }
    }

    pub(super) fn remove_expired(&mut self, now: Timestamp, idle: Duration) {
        while self.checks.first().is_some_and(|(time, ..)| *time <= now) {
            let Some((_, id, stream)) = self.checks.pop_first() else { break };
            let Some(record) = self.records.get_mut(&id) else { continue };
            match stream {
                Some(stream) => record.calls.retain(|log| log.stream != stream),
                None => match record.expires_at(idle) {
                    expired if expired <= now => self.remove(&id),
                    later => {
                        self.checks.insert((later, id, None));
                    }
                },
            }
        }
    }

    pub(super) fn next_check(&self) -> Option<Timestamp> {
        self.checks.first().map(|(time, ..)| *time)
    }
}
