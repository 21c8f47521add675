//! The tasks that run beside calls while a server exists.

use std::sync::Arc;

use larder_server::{
    era::{announce_changes, announce_edits},
    http::Console,
};
use larder_store::{session::Sessions, store::Store, task::Tasks};
use tokio_util::task::AbortOnDropHandle;

use super::calls::Calls;

/// Running tasks, which end when the value is dropped.
pub(super) struct Maintenance(Vec<AbortOnDropHandle<()>>);

impl Maintenance {
    fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.push(AbortOnDropHandle::new(tokio::spawn(task)));
    }

    /// Starts the tasks: they remove what has expired, announce changes to clients, and sample
    /// the traffic for the console.
    pub(super) fn start(
        store: &Store,
        sessions: &Arc<dyn Sessions>,
        tasks: Arc<dyn Tasks>,
        calls: &Calls,
        console: Option<&Arc<Console>>,
    ) -> Self {
        let mut running = Self(Vec::new());
        let dispatcher = &calls.dispatcher;

        let kept = store.clone();
        running.run(async move { kept.maintain().await });
        let opened = Arc::clone(sessions);
        running.run(async move { opened.maintain().await });
        running.run(async move { tasks.maintain().await });

        running.run(Arc::clone(&calls.legacy).handle_signals());
        running.run(announce_edits(dispatcher.registry().listen(), Arc::clone(sessions)));
        running.run(announce_changes(store.feed().queue(), Arc::clone(sessions)));

        if let Some(console) = console {
            let console = Arc::clone(console);
            let traffic = Arc::clone(dispatcher.traffic());
            running.run(async move { console.sample(&traffic).await });
        }

        running
    }
}
