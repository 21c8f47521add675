//! [`Shared`]: what the connections of an upstream have in common.

use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwapOption;
use larder_protocol::Announcement;
use larder_server::registry::SessionClients;
use larder_store::session::SharedParts;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, broadcast},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use super::{
    budget::MessageBudget,
    catalogue::{Catalogue, CataloguePool, CatalogueSource},
    era::KnownEra,
    login::Login,
    memory::{Folder, Memory},
    names::Naming,
    settings::{RemoteAuth, Settings, Target},
    statistics::Statistics,
    token_exchange::TokenExchange,
};

/// The state that the connections of an upstream share.
pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    /// The memory for messages of all upstreams.
    pub(super) budget: Arc<MessageBudget>,
    pub(super) naming: Naming,

    /// The era, as far as the last start has found it out.
    pub(super) era: Mutex<KnownEra>,
    /// The catalogue of the process that was listed last.
    pub(super) latest: ArcSwapOption<Catalogue>,
    /// The offers of fresh processes.
    pub(super) memory: Memory,
    /// Until when lists wait for an upstream that was never listed. They wait for it once.
    pub(super) list_deadline: Mutex<Option<Instant>>,
    /// The catalogues of its sessions, each item once.
    pub(super) catalogues: CataloguePool,
    pub(super) statistics: Statistics,

    /// The channel that announces changes of lists. Set once, before the first use.
    pub(super) changes: OnceLock<broadcast::Sender<Announcement>>,
    /// How instances share what belongs to sessions. Set once, before the first use; empty if
    /// this is the only instance.
    pub(super) parts: OnceLock<SharedParts>,
    /// The clients of sessions. Set once, before the first use.
    pub(super) clients: OnceLock<Weak<dyn SessionClients>>,

    pub(super) access: Access,
    /// Wakes the calls that wait for another process to be free.
    pub(super) room: Notify,
    /// The tasks of connections and of processes that end.
    pub(super) tasks: TaskTracker,
}

/// How callers get access to the upstream.
pub(super) enum Access {
    /// Larder's own credentials, or none, are enough.
    Open,
    /// Each caller logs in there.
    Login(Arc<Login>),
    /// For the token of a caller there is one of the upstream.
    Exchange(Arc<TokenExchange>),
}

impl Access {
    fn of(settings: &Settings) -> Option<Self> {
        let Target::Remote(remote) = &settings.target else { return None };
        let name = &settings.name;
        match remote.auth.as_ref()? {
            RemoteAuth::Login(oauth) => {
                Login::new(name, &remote.url, oauth).map(Arc::new).map(Self::Login)
            }
            RemoteAuth::Exchange(exchange) => {
                TokenExchange::new(name, exchange).map(Arc::new).map(Self::Exchange)
            }
        }
    }
}

impl Shared {
    pub(super) fn new(
        settings: Settings,
        naming: Naming,
        budget: Arc<MessageBudget>,
        folder: Folder,
    ) -> Self {
        Self {
            access: Access::of(&settings).unwrap_or(Access::Open),
            settings: Arc::new(settings),
            budget,
            naming,
            era: Mutex::default(),
            latest: ArcSwapOption::empty(),
            memory: Memory::new(folder),
            list_deadline: Mutex::default(),
            catalogues: CataloguePool::default(),
            statistics: Statistics::default(),
            changes: OnceLock::new(),
            parts: OnceLock::new(),
            clients: OnceLock::new(),
            room: Notify::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Whether all callers have the same access, so that a fresh process offers the same to each.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.access, Access::Open)
    }

    /// The settings and bounds by which catalogues are made.
    pub(super) fn source(&self) -> CatalogueSource<'_> {
        let Self { settings, naming, catalogues: pool, budget, .. } = self;
        CatalogueSource { settings, naming, pool, budget }
    }

    /// The logins of callers, if the upstream asks for them.
    pub(super) fn login(&self) -> Option<&Arc<Login>> {
        match &self.access {
            Access::Login(login) => Some(login),
            Access::Open | Access::Exchange(_) => None,
        }
    }

    /// The clients of sessions, while the server runs.
    pub(super) fn clients(&self) -> Option<Arc<dyn SessionClients>> {
        self.clients.get()?.upgrade()
    }

    pub(super) fn announce(&self, announcement: Announcement) {
        if let Some(changes) = self.changes.get() {
            // An error means that nobody listens.
            let _ = changes.send(announcement);
        }
    }
}
