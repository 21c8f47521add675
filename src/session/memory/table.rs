//! The maps behind sessions in memory.

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
    /// When to look at a session, or at one of its streams, again. A session's
    /// expiry slides without touching this; who is due is asked anew.
    due: BTreeSet<(Timestamp, Arc<str>, Option<Arc<str>>)>,
}

/// A session and what changes in it. Small while it is idle.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) session: Arc<Session>,
    pub(super) expires: Timestamp,
    pub(super) subscriptions: Option<HashSet<String>>,
    own: Option<Arc<Log>>,
    calls: Vec<Arc<Log>>,
}

impl Record {
    /// So long after the last request, connection or running call.
    pub(super) fn expires_at(&self, idle: Duration) -> Timestamp {
        let own = self.own.iter().map(|log| log.last_used(true));
        let calls = self.calls.iter().map(|log| log.last_used(false));
        let last_used = own.chain(calls).max();
        self.expires.max(last_used.map_or(self.expires, |at| at.saturating_add(idle)))
    }

    /// Adds a call's stream; forgets the oldest finished one when there are
    /// too many, and refuses when all are running.
    pub(super) fn add_stream(&mut self, log: Arc<Log>, most: usize) -> bool {
        if self.calls.len() >= most {
            let Some(finished) = self.calls.iter().position(|log| log.is_closed()) else {
                return false;
            };
            self.calls.remove(finished);
        }
        self.calls.push(log);
        true
    }

    pub(super) fn stream(&self, stream: &str) -> Option<Arc<Log>> {
        let logs = self.calls.iter().chain(&self.own);
        logs.into_iter().find(|log| *log.stream == *stream).cloned()
    }

    pub(super) fn own_stream(&mut self, new: impl FnOnce() -> Arc<Log>) -> Arc<Log> {
        Arc::clone(self.own.get_or_insert_with(new))
    }

    pub(super) fn wants(&self, announcement: &Announcement) -> bool {
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
        for log in self.calls.iter().chain(&self.own) {
            log.close();
        }
    }
}

impl Table {
    /// Says whether there was room for it.
    pub(super) fn insert(
        &mut self,
        session: Arc<Session>,
        expires: Timestamp,
        most: usize,
    ) -> bool {
        let of_owner = self.by_owner.entry(session.principal.owner()).or_default();
        if of_owner.len() >= most {
            return false;
        }
        let id = Arc::clone(&session.id);
        of_owner.insert(Arc::clone(&id));
        self.due.insert((expires, Arc::clone(&id), None));
        let record = Record { session, expires, subscriptions: None, own: None, calls: Vec::new() };
        self.records.insert(id, record);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn record(&mut self, id: &str) -> Option<&mut Record> {
        self.records.get_mut(id)
    }

    /// The own streams of that owner's sessions, or everybody's, that want the announcement.
    pub(super) fn own_streams_wanting(
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
                && record.wants(announcement)
            {
                logs.push(record.own_stream(&new));
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
            self.due.insert((until, Arc::clone(session), Some(Arc::clone(stream))));
        }
    }

    pub(super) fn remove_expired(&mut self, now: Timestamp, idle: Duration) {
        while self.due.first().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, id, stream)) = self.due.pop_first() else { break };
            let Some(record) = self.records.get_mut(&id) else { continue };
            match stream {
                Some(stream) => record.calls.retain(|log| log.stream != stream),
                None => match record.expires_at(idle) {
                    expired if expired <= now => self.remove(&id),
                    again => {
                        self.due.insert((again, id, None));
                    }
                },
            }
        }
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, ..)| *at)
    }
}
