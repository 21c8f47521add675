//! [`Connections`]: one upstream's processes, one for each session of a client
//! or each caller, as the settings say.

use std::{collections::HashMap, sync::Arc};

use larder_oauth::{Identity, Owner};
use larder_protocol::ClientFacts;
use larder_server::handler::Scope;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::{
    account::Account,
    budget::MessageBudget,
    catalogue::{Catalogue, Tool},
    claim::Claim,
    connection::{Connection, Part},
    error::UpstreamError,
    names::Naming,
    questions::capabilities,
    remote_session::KeptSession,
    settings::{SessionPolicy, Settings, Target},
    shared::Shared,
    status::State,
};

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
    connections: HashMap<Key, Opened>,
    is_closed: bool,
}

struct Opened {
    /// Who opened it.
    owner: Owner,
    connection: Arc<Connection>,
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

impl Clone for InUse {
    fn clone(&self) -> Self {
        Self::new(&self.0)
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
    pub(super) fn new(settings: Settings, naming: Naming, budget: Arc<MessageBudget>) -> Self {
        let shared = Arc::new(Shared::new(settings, naming, budget));
        Self { shared, open: Arc::default() }
    }

    /// The connection of a call. The process starts when it is needed.
    pub(super) async fn of(&self, scope: &Scope) -> Result<InUse, UpstreamError> {
        self.of_caller(&scope.identity, &scope.client, scope.client_session.as_ref()).await
    }

    /// The connection of a caller.
    pub(super) async fn of_caller(
        &self,
        identity: &Identity,
        client: &ClientFacts,
        session: Option<&Arc<str>>,
    ) -> Result<InUse, UpstreamError> {
        let key = self.shared.settings.session.key(identity.owner(), client, session);
        if let Some(connection) = self.existing(&key) {
            connection.present(identity);
            return Ok(connection);
        }

        let settings = &self.shared.settings;
        let part = match (&key, self.shared.parts.get()) {
            (Key::Session(session), Some(parts)) => match settings.target {
                Target::Command(_) => {
                    Part::Claimed(Claim::take(&parts.claims, session, &settings.name).await?)
                }
                Target::Remote(_) => {
                    Part::Kept(KeptSession::new(&parts.notes, session, &settings.name))
                }
            },
            _ => Part::Own,
        };

        self.connect(key, identity, client, part)
    }

    fn existing(&self, key: &Key) -> Option<InUse> {
        self.open.lock().connections.get(key).map(|opened| InUse::new(&opened.connection))
    }

    fn connect(
        &self,
        key: Key,
        identity: &Identity,
        client: &ClientFacts,
        part: Part,
    ) -> Result<InUse, UpstreamError> {
        let mut open = self.open.lock();
        if open.is_closed {
            return Err(self.invalid("it is being stopped"));
        }

        // Another request of the same session may have been faster.
        if let Some(opened) = open.connections.get(&key) {
            opened.connection.present(identity);
            return Ok(InUse::new(&opened.connection));
        }

        self.make_room(&mut open, identity.owner())?;

        // A shared process declares no capabilities: it could ask one caller about another.
        let client = match key {
            Key::Session(_) | Key::Caller { .. } => capabilities(client),
            Key::All => json!({}),
        };
        let forget = {
            let (open, key) = (Arc::downgrade(&self.open), key.clone());
            Box::new(move || open.upgrade().is_none_or(|open| open.lock().forget_idle(&key)))
        };
        let account = match key {
            Key::All => None,
            Key::Session(_) | Key::Caller { .. } => Account::of(&self.shared.access, identity),
        };
        let account = account.map(Arc::new);

        let connection = Connection::new(Arc::clone(&self.shared), client, part, account, forget);
        let owner = identity.owner().clone();
        open.connections.insert(key, Opened { owner, connection: Arc::clone(&connection) });
        Ok(InUse::new(&connection))
    }

    /// The connection of a session, if there is one.
    pub(super) fn find(
        &self,
        owner: &Owner,
        client: &ClientFacts,
        session: &Arc<str>,
    ) -> Option<Arc<Connection>> {
        let key = self.shared.settings.session.key(owner, client, Some(session));
        let open = self.open.lock();
        open.connections.get(&key).map(|opened| Arc::clone(&opened.connection))
    }

    /// If there is no room for another connection of this caller, ends the one that has
    /// been idle for the longest time. A caller leaves a quarter of them to the others: one
    /// that has the rest ends one of its own.
    fn make_room(&self, open: &mut Open, caller: &Owner) -> Result<(), UpstreamError> {
        let max = self.shared.settings.max_processes;
        let own = open.connections.values().filter(|opened| opened.owner == *caller).count();
        let is_at_share = own >= max - max / 4;
        if open.connections.len() < max && !is_at_share {
            return Ok(());
        }

        let idle = open.connections.iter().filter_map(|(key, opened)| {
            let users = opened.connection.users.borrow();
            let may_end = users.count == 0 && (!is_at_share || opened.owner == *caller);
            may_end.then(|| (users.since, key.clone()))
        });

        let Some((_, key)) = idle.min_by_key(|(since, _)| *since) else {
            let used = match own {
                own if is_at_share && own < max => {
                    format!("your calls use {own} of its {max} processes, which is your share")
                }
                _ => format!("all of its {max} processes are in use"),
            };
            return Err(
                self.invalid(&format!("{used} (upstreams.max_processes). Try again shortly"))
            );
        };

        if let Some(opened) = open.connections.remove(&key) {
            opened.connection.stop();
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
        latest
            .and_then(|latest| find(&latest))
            .or_else(|| self.all().iter().find_map(|connection| find(&*connection.known()?)))
    }

    /// The open connections.
    fn all(&self) -> Vec<Arc<Connection>> {
        let open = self.open.lock();
        open.connections.values().map(|opened| Arc::clone(&opened.connection)).collect()
    }

    /// The best state among the processes, and how many run.
    pub(super) fn states(&self) -> (State, usize) {
        let open = self.open.lock();
        let states = open.connections.values().map(|opened| opened.connection.status());
        states.fold((State::Idle, 0), |(best, up), state| {
            (best.max(state), up + usize::from(state.runs()))
        })
    }

    /// Why a part of the lists is not offered, in a process that runs. `show` gives the text of an
    /// error.
    pub(super) fn degraded(&self, show: impl Fn(&UpstreamError) -> String) -> Option<String> {
        let is_degraded = |connection: &&Arc<Connection>| connection.status() == State::Degraded;
        self.all().iter().find(is_degraded)?.degraded(show)
    }

    /// Waits until the calls of now have ended.
    pub(super) async fn unused(&self) {
        let connections = self.all();
        futures_util::future::join_all(connections.iter().map(|connection| connection.unused()))
            .await;
    }

    /// Ends the process of a client's session, and what the session follows in others.
    pub(super) fn end_session(&self, id: &str) {
        let session: Arc<str> = id.into();
        let mut open = self.open.lock();
        if let Some(opened) = open.connections.remove(&Key::Session(Arc::clone(&session))) {
            opened.connection.end_session();
        }

        open.connections
            .values()
            .for_each(|other| other.connection.subscriptions.end_session(&session));
    }

    /// Ends all processes, and waits until nothing is left of them.
    pub(super) async fn close(&self) {
        let connections = {
            let mut open = self.open.lock();
            open.is_closed = true;
            std::mem::take(&mut open.connections)
        };
        let closing = connections.values().map(|opened| opened.connection.close());
        futures_util::future::join_all(closing).await;

        // The processes of sessions that have ended are still ending.
        let tasks = &self.shared.tasks;
        tasks.close();
        tasks.wait().await;
    }
}

impl Open {
    /// Forgets a connection, unless it is in use again. Returns whether it is
    /// forgotten.
    fn forget_idle(&mut self, key: &Key) -> bool {
        let is_used = self
            .connections
            .get(key)
            .is_some_and(|opened| opened.connection.users.borrow().count > 0);

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
    fn key(self, owner: &Owner, client: &ClientFacts, session: Option<&Arc<str>>) -> Key {
        match (self, session) {
            (Self::All, _) => Key::All,
            (Self::Auto, Some(session)) => Key::Session(Arc::clone(session)),
            (Self::Auto | Self::Caller, _) => Key::Caller {
                owner: owner.clone(),
                capabilities: serde_json::to_string(&client.capabilities).unwrap_or_default(),
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
