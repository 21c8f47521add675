//! [`Connections`]: one upstream's processes, one for each session of a client
//! or each caller, as the settings say.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::{
    catalogue::{Catalogue, Tool},
    connection::Connection,
    error::UpstreamError,
    names::Naming,
    questions::capabilities,
    settings::{SessionPolicy, Settings},
    shared::Shared,
};
use crate::{auth::Owner, handler::Scope};

/// Who shares a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Everybody.
    All,
    /// A session of a client.
    Session(Arc<str>),
    /// A caller, by the capabilities that its client declares: an upstream may
    /// offer other items to other clients.
    Caller { owner: Owner, capabilities: String },
}

#[derive(Default)]
struct Open {
    connections: HashMap<Key, Arc<Connection>>,
    is_closed: bool,
}

/// The connections of one upstream.
pub(super) struct Connections {
    pub(super) shared: Arc<Shared>,
    open: Arc<Mutex<Open>>,
}

/// A connection that does not end by idling while this is held.
pub(super) struct InUse(Arc<Connection>);

impl std::ops::Deref for InUse {
    type Target = Arc<Connection>;

    fn deref(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.users.send_modify(|users| {
            users.count -= 1;
            users.since = Instant::now();
        });
    }
}

impl Connections {
    pub(super) fn new(settings: Settings, naming: Naming) -> Self {
        let shared = Arc::new(Shared::new(settings, naming));
        Self { shared, open: Arc::default() }
    }

    /// The connection of a call. The process starts when it is needed.
    pub(super) fn of(&self, scope: &Scope) -> Result<InUse, UpstreamError> {
        let key = self.shared.settings.session.key(scope);
        let mut open = self.open.lock();
        if open.is_closed {
            return Err(self.invalid("it is being stopped"));
        }
        if let Some(connection) = open.connections.get(&key) {
            return Ok(InUse::new(connection));
        }
        if open.connections.len() >= self.shared.settings.max_processes {
            self.make_room(&mut open)?;
        }
        // Others could be asked what concerns one of those who share a process.
        let client = match key {
            Key::Session(_) => capabilities(scope),
            Key::All | Key::Caller { .. } => json!({}),
        };
        let forget = {
            let (open, key) = (Arc::downgrade(&self.open), key.clone());
            Box::new(move || open.upgrade().is_none_or(|open| open.lock().forget_idle(&key)))
        };
        let connection = Connection::new(Arc::clone(&self.shared), client, forget);
        open.connections.insert(key, Arc::clone(&connection));
        Ok(InUse::new(&connection))
    }

    /// Ends the connection that has been idle for the longest time.
    fn make_room(&self, open: &mut Open) -> Result<(), UpstreamError> {
        let idle = open.connections.iter().filter_map(|(key, connection)| {
            let users = connection.users.borrow();
            (users.count == 0).then(|| (users.since, key.clone()))
        });
        let Some((_, key)) = idle.min_by_key(|(since, _)| *since) else {
            let max = self.shared.settings.max_processes;
            return Err(self.invalid(&format!(
                "all of its {max} processes are in use (upstreams.max_processes). Try again shortly"
            )));
        };
        if let Some(connection) = open.connections.remove(&key) {
            connection.stop();
        }
        Ok(())
    }

    fn invalid(&self, problem: &str) -> UpstreamError {
        let name = self.shared.settings.name.as_str().into();
        UpstreamError::Unavailable { name, problem: problem.to_owned() }
    }

    /// Looks a tool up in what is known.
    pub(super) fn known<T>(&self, find: impl Fn(&Catalogue) -> Option<T>) -> Option<T> {
        let latest = self.shared.latest.load_full();
        latest.and_then(|latest| find(&latest)).or_else(|| {
            let connections: Vec<_> =
                self.open.lock().connections.values().map(Arc::clone).collect();
            connections.iter().find_map(|connection| find(&*connection.known()?))
        })
    }

    /// Ends the process of a client's session.
    pub(super) fn end_session(&self, id: &str) {
        let key = Key::Session(id.into());
        if let Some(connection) = self.open.lock().connections.remove(&key) {
            connection.stop();
        }
    }

    /// Ends all processes, and waits until nothing is left of them.
    pub(super) async fn close(&self) {
        let connections = {
            let mut open = self.open.lock();
            open.is_closed = true;
            std::mem::take(&mut open.connections)
        };
        let closing = connections.values().map(|connection| connection.close());
        futures_util::future::join_all(closing).await;
    }
}

impl Open {
    /// Forgets a connection, unless it is in use again. Returns whether it is
    /// forgotten.
    fn forget_idle(&mut self, key: &Key) -> bool {
        let is_used = self.connections.get(key).is_some_and(|known| known.users.borrow().count > 0);
        if !is_used {
            self.connections.remove(key);
        }
        !is_used
    }
}

impl InUse {
    fn new(connection: &Arc<Connection>) -> Self {
        connection.users.send_modify(|users| users.count += 1);
        Self(Arc::clone(connection))
    }
}

impl SessionPolicy {
    /// Who shares the process of a call.
    fn key(self, scope: &Scope) -> Key {
        match (self, &scope.client_session) {
            (Self::All, _) => Key::All,
            (Self::Auto, Some(session)) => Key::Session(Arc::clone(session)),
            (Self::Auto | Self::Caller, _) => Key::Caller {
                owner: scope.identity.owner().clone(),
                capabilities: serde_json::to_string(&scope.client.capabilities).unwrap_or_default(),
            },
        }
    }
}

/// Whether a call has no further effect when it is sent twice.
pub(super) fn repeats(tool: &Tool) -> bool {
    tool.provided.listed.annotations.as_ref().is_some_and(|hints| {
        hints.idempotent_hint == Some(true) || hints.read_only_hint == Some(true)
    })
}
