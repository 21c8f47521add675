//! [`Calls`]: how requests become calls, in both protocol eras.

use std::sync::{Arc, Weak};

use larder_server::{
    admission::Limits,
    dispatch::Dispatcher,
    era::{Legacy, Modern, StateSealer},
    registry::{Registry, SessionClients},
};
use larder_store::{session::Sessions, store::Store, task::Tasks};

use super::{base::Base, place::Places};

/// The dispatcher, and the eras over it.
pub(super) struct Calls {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) legacy: Arc<Legacy>,
    pub(super) modern: Modern,
}

impl Calls {
    pub(super) fn new(
        dispatcher: Dispatcher,
        sessions: &Arc<dyn Sessions>,
        places: &Places,
        base: &Base,
    ) -> Self {
        let dispatcher = Arc::new(dispatcher);
        let max = base.config.max_version();

        let sealer = StateSealer::new(places.state_keys(), base.clock());
        let modern = Modern::new(Arc::clone(&dispatcher), sealer, max);

        let delete_resources = base.config.sessions.delete_resources;
        let sessions = Arc::clone(sessions);
        let legacy = Legacy::new(Arc::clone(&dispatcher), sessions, max, delete_resources);
        let legacy = Arc::new(legacy);

        let clients: Weak<Legacy> = Arc::downgrade(&legacy);
        let clients: Weak<dyn SessionClients> = clients;
        dispatcher.registry().reach_clients(clients);

        Self { dispatcher, legacy, modern }
    }

    /// Waits until all calls have ended, those without a connection included.
    pub(super) async fn drain(&self) {
        tokio::join!(self.legacy.drain(), self.dispatcher.drain());
    }
}

/// The entry of calls to the items of a registry.
pub(super) fn dispatcher(
    registry: Registry,
    store: &Store,
    tasks: &Arc<dyn Tasks>,
    base: &Base,
) -> Dispatcher {
    let limits = &base.config.limits;
    let caller_limits = Limits::new(limits.admission(), base.clock());
    let dispatcher = Dispatcher::new(
        registry,
        store.clone(),
        Arc::clone(tasks),
        base.random(),
        limits.per_call(),
        caller_limits,
    );
    dispatcher.traffic().access().set_every(base.config.log.access);
    dispatcher
}
