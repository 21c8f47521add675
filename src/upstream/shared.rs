//! [`Shared`]: what the connections of an upstream have in common.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::{
    budget::MessageBudget,
    catalogue::Catalogue,
    link::Era,
    login::Login,
    names::Naming,
    settings::{Settings, Target},
    statistics::Statistics,
};
use crate::{protocol::Announcement, session::SharedParts};

/// What the connections of an upstream have in common.
pub(super) struct Shared {
    pub(super) settings: Arc<Settings>,
    /// The memory for messages of all upstreams.
    pub(super) budget: Arc<MessageBudget>,
    pub(super) naming: Naming,
    /// The era that the last start has found.
    pub(super) era: Mutex<Option<Era>>,
    /// What the process that was listed last offers.
    pub(super) latest: ArcSwapOption<Catalogue>,
    pub(super) statistics: Statistics,
    /// Where changes of lists are announced. Set once, before the first use.
    pub(super) changes: OnceLock<broadcast::Sender<Announcement>>,
    /// How instances share what belongs to sessions. Set once, before the first use; empty if
    /// this is the only instance.
    pub(super) parts: OnceLock<SharedParts>,
    /// The logins of callers, if the upstream asks for them.
    pub(super) login: Option<Arc<Login>>,
}

impl Shared {
    pub(super) fn new(settings: Settings, naming: Naming, budget: Arc<MessageBudget>) -> Self {
        let login = match &settings.target {
            Target::Remote(remote) => Login::of(&settings.name, remote),
            Target::Command(_) => None,
        };
        Self {
            login,
            settings: Arc::new(settings),
            budget,
            naming,
            era: Mutex::default(),
            latest: ArcSwapOption::empty(),
            statistics: Statistics::default(),
            changes: OnceLock::new(),
            parts: OnceLock::new(),
        }
    }

    pub(super) fn announce(&self, announcement: Announcement) {
        if let Some(changes) = self.changes.get() {
            // An error means that nobody listens.
            let _ = changes.send(announcement);
        }
    }
}
