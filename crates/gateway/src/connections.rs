//! [`Connections`]: one upstream's processes, one for each session of a client
//! or each caller, as the settings say.

mod lives;

use std::{collections::HashMap, sync::Arc};

use larder_oauth::{Identity, Owner};
use larder_protocol::ClientFacts;
use larder_server::handler::Scope;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::lives::Lives;
use super::{
    account::Account,
    budget::MessageBudget,
    catalogue::{Catalogue, Tool},
    claim::Claim,
    connection::{Connection, Lifespan, SessionOwnership},
    error::UpstreamError,
    memory::Folder,
    names::Naming,
    questions::capabilities,
    remote_session::KeptSession,
    settings::{SessionPolicy, Settings, Target},
    shared::Shared,
};

/// The key of a process: those who share it have the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ConnectionKey {
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
    connections: HashMap<ConnectionKey, OpenConnection>,
    /// Why the processes of these were ended, for their next call.
    lost: HashMap<ConnectionKey, String>,
    is_closed: bool,
}

/// The most ended processes that are remembered.
const MAX_LOST: usize = 10_000;

/// Why there is no connection.
enum Unconnected {
    /// All processes are in use: one of them may be free soon.
    NoRoom(UpstreamError),
    Other(UpstreamError),
}

struct OpenConnection {
    /// The owner for whom the connection was opened.
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
        let mut is_free = false;
        self.0.users.send_modify(|users| {
            users.count -= 1;
            users.since = Instant::now();
            is_free = users.count == 0;
        });
        if is_free {
            self.0.announce_free();
        }
    }
}

impl Connections {
    pub(super) fn new(
        settings: Settings,
        naming: Naming,
        budget: Arc<MessageBudget>,
        folder: Folder,
    ) -> Self {
        let shared = Arc::new(Shared::new(settings, naming, budget, folder));
        Self { shared, open: Arc::default() }
    }

    /// The connection of a call. The process starts when it is needed. If all processes are in use,
    /// the call waits for its turn, as long as a start may take.
    pub(super) async fn of(&self, scope: &Scope) -> Result<InUse, UpstreamError> {
        self.of_caller(&scope.identity, &scope.client, scope.client_session.as_ref()).await
    }

    /// The connection of a caller. Waits for its turn.
    pub(super) async fn of_caller(
        &self,
        identity: &Identity,
        client: &ClientFacts,
        session: Option<&Arc<str>>,
    ) -> Result<InUse, UpstreamError> {
        let deadline = Instant::now() + self.shared.settings.start_timeout;
        loop {
            let mut room = std::pin::pin!(self.shared.room.notified());
            // Registered before there is found to be no room, so that none is missed.
            room.as_mut().enable();

            match self.at_once(identity, client, session).await {
                Ok(connection) => return Ok(connection),
                Err(Unconnected::NoRoom(error)) => {
                    if tokio::time::timeout_at(deadline, room).await.is_err() {
                        return Err(error);
                    }
                }
                Err(Unconnected::Other(error)) => return Err(error),
            }
        }
    }

    /// The capabilities that the client of such a connection declares to the upstream.
    pub(super) fn declared(
        &self,
        identity: &Identity,
        client: &ClientFacts,
        session: Option<&Arc<str>>,
    ) -> Value {
        let key = self.shared.settings.session.key(identity.owner(), client, session);
        key.declared(client)
    }

    /// The offer of the upstream to a caller. Waits for an upstream that was never listed, but not
    /// for long; while no process runs for the caller, this is what a fresh one offers.
    pub(super) async fn offered(
        &self,
        scope: &Scope,
    ) -> Result<Option<Arc<Catalogue>>, UpstreamError> {
        let identity = &scope.identity;
        let client = &*scope.client;
        let session = scope.client_session.as_ref();
        let key = self.shared.settings.session.key(identity.owner(), client, session);

        let is_process = matches!(self.shared.settings.target, Target::Command(_));
        if is_process && self.existing(&key).is_none() {
            let declared = key.declared(client);
            if let Some(remembered) = self.shared.recall(&declared).await {
                return Ok(Some(remembered));
            }
        }

        match self.at_once(identity, client, session).await {
            Ok(connection) => Ok(connection.catalogue().await),
            Err(Unconnected::NoRoom(error)) => {
                tracing::warn!(%error);
                Ok(self.shared.latest.load_full().filter(|_| self.shared.is_open()))
            }
            Err(Unconnected::Other(error)) => Err(error),
        }
    }

    /// The connection of a caller, if there is room for it now.
    async fn at_once(
        &self,
        identity: &Identity,
        client: &ClientFacts,
        session: Option<&Arc<str>>,
    ) -> Result<InUse, Unconnected> {
        let key = self.shared.settings.session.key(identity.owner(), client, session);
        if let Some(connection) = self.existing(&key) {
            connection.present(identity, session);
            return Ok(connection);
        }

        // Checked before the claim, which keeps the session from other instances.
        self.idle_to_end(&self.open.lock(), identity.owner()).map_err(Unconnected::NoRoom)?;

        let settings = &self.shared.settings;
        let ownership = match (&key, self.shared.parts.get()) {
            (ConnectionKey::Session(session), Some(parts)) => match settings.target {
                Target::Command(_) => {
                    let claim = Claim::take(&parts.claims, session, &settings.name).await;
                    SessionOwnership::Claimed(claim.map_err(Unconnected::Other)?)
                }
                Target::Remote(_) => {
                    SessionOwnership::Kept(KeptSession::new(&parts.notes, session, &settings.name))
                }
            },
            _ => SessionOwnership::Own,
        };

        let connection = self.connect(key, identity, client, ownership)?;
        connection.present(identity, session);
        Ok(connection)
    }

    /// The connection of a call, if it is open already.
    pub(super) fn open_of(&self, scope: &Scope) -> Option<InUse> {
        let session = scope.client_session.as_ref();
        let policy = &self.shared.settings.session;
        self.existing(&policy.key(scope.identity.owner(), &scope.client, session))
    }

    fn existing(&self, key: &ConnectionKey) -> Option<InUse> {
        self.open.lock().connections.get(key).map(|opened| InUse::new(&opened.connection))
    }

    fn connect(
        &self,
        key: ConnectionKey,
        identity: &Identity,
        client: &ClientFacts,
        ownership: SessionOwnership,
    ) -> Result<InUse, Unconnected> {
        let mut open = self.open.lock();
        if open.is_closed {
            return Err(Unconnected::Other(self.invalid("it is being stopped")));
        }

        // Another request of the same session may have been faster.
        if let Some(opened) = open.connections.get(&key) {
            return Ok(InUse::new(&opened.connection));
        }

        self.make_room(&mut open, identity.owner()).map_err(Unconnected::NoRoom)?;

        let client = key.declared(client);
        let forget = {
            let open = Arc::downgrade(&self.open);
            let key = key.clone();
            let why = self.idle_reason();
            Box::new(move || open.upgrade().is_none_or(|open| open.lock().forget_idle(&key, &why)))
        };
        let account = match key {
            ConnectionKey::All => None,
            ConnectionKey::Session(_) | ConnectionKey::Caller { .. } => {
                Account::of(&self.shared.access, identity)
            }
        };
        let account = account.map(Arc::new);
        let lifespan = Lifespan {
            forget,
            // A claimed process would keep the session from moving to another instance.
            ends_with_session: matches!(key, ConnectionKey::Session(_))
                && !matches!(ownership, SessionOwnership::Claimed(_)),
            anew: open.lost.remove(&key),
        };

        let connection =
            Connection::new(Arc::clone(&self.shared), client, ownership, account, lifespan);
        let owner = identity.owner().clone();
        open.connections.insert(key, OpenConnection { owner, connection: Arc::clone(&connection) });
        Ok(InUse::new(&connection))
    }

    /// Why an idle process ends.
    fn idle_reason(&self) -> String {
        let idle = self.shared.settings.idle.unwrap_or_default().as_secs_f64();
        format!("nobody had used it for {idle} s (upstreams.idle)")
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

    /// The roots of a session's client have changed. Returns whether the session has a connection.
    pub(super) fn roots_changed(&self, session: &str) -> bool {
        let of_session = |connection: &Arc<Connection>| connection.is_of(session);
        let connections: Vec<_> = self.all().into_iter().filter(of_session).collect();
        for connection in &connections {
            connection.roots_changed();
        }
        !connections.is_empty()
    }

    /// If there is no room for another connection of this caller, ends the one that has
    /// been idle for the longest time. A caller leaves a quarter of them to the others: one
    /// that has the rest ends one of its own.
    fn make_room(&self, open: &mut Open, caller: &Owner) -> Result<(), UpstreamError> {
        let Some(key) = self.idle_to_end(open, caller)? else { return Ok(()) };

        if let Some(opened) = open.connections.remove(&key) {
            let why = "its process was needed for other calls (upstreams.max_processes)";
            open.note_lost(key, &opened.connection, why);
            opened.connection.stop();
        }
        Ok(())
    }

    /// The idle connection that has to end for another one of this caller. `None` if there is room.
    ///
    /// # Errors
    /// There is no room, and no connection that may end.
    fn idle_to_end(
        &self,
        open: &Open,
        caller: &Owner,
    ) -> Result<Option<ConnectionKey>, UpstreamError> {
        let max = self.shared.settings.max_processes;
        let own = open.connections.values().filter(|opened| opened.owner == *caller).count();
        let is_at_share = own >= max - max / 4;
        if open.connections.len() < max && !is_at_share {
            return Ok(None);
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

        Ok(Some(key))
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

    /// A snapshot of the lives of the processes.
    pub(super) fn lives(&self) -> Lives {
        let open = self.open.lock();
        Lives::new(open.connections.values().map(|opened| opened.connection.life()))
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
        if let Some(opened) = open.connections.remove(&ConnectionKey::Session(Arc::clone(&session)))
        {
            opened.connection.end_session();
            self.shared.room.notify_waiters();
        }
        open.lost.remove(&ConnectionKey::Session(Arc::clone(&session)));

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
    fn forget_idle(&mut self, key: &ConnectionKey, why: &str) -> bool {
        let is_used = self
            .connections
            .get(key)
            .is_some_and(|opened| opened.connection.users.borrow().count > 0);

        if !is_used && let Some(opened) = self.connections.remove(key) {
            self.note_lost(key.clone(), &opened.connection, why);
            opened.connection.announce_free();
        }
        !is_used
    }

    /// Remembers why a process was ended, if it, or one before it, may have kept something of
    /// earlier calls.
    fn note_lost(&mut self, key: ConnectionKey, connection: &Connection, why: &str) {
        if let Some(why) = connection.loss(why)
            && self.lost.len() < MAX_LOST
        {
            self.lost.insert(key, why);
        }
    }
}

impl ConnectionKey {
    /// The capabilities of the client that an upstream is told of.
    fn declared(&self, client: &ClientFacts) -> Value {
        match self {
            Self::Session(_) | Self::Caller { .. } => capabilities(client),
            // A shared process declares no capabilities: it could ask one caller about another.
            Self::All => json!({}),
        }
    }
}

impl InUse {
    fn new(connection: &Arc<Connection>) -> Self {
        connection.users.send_modify(|users| users.count += 1);
        Self(Arc::clone(connection))
    }
}

impl SessionPolicy {
    /// The key of the process for a call.
    fn key(self, owner: &Owner, client: &ClientFacts, session: Option<&Arc<str>>) -> ConnectionKey {
        match (self, session) {
            (Self::All, _) => ConnectionKey::All,
            (Self::Auto, Some(session)) => ConnectionKey::Session(Arc::clone(session)),
            (Self::Auto | Self::Caller, _) => ConnectionKey::Caller {
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
