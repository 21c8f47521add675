//! The lists and capabilities of the upstream of a connection.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::watch;

use super::{Connection, Phase, pace::Pace};
use crate::{
    catalogue::{Catalogue, CutList, Source},
    error::UpstreamError,
    link::{Era, Link},
    shared::Shared,
    status::State,
};

/// How long the lists wait for the subscription to their changes.
const SUBSCRIBED: Duration = Duration::from_secs(3);

/// The wait before lists are read again for which there was no room.
const RETRY: Duration = Duration::from_secs(60);

impl Connection {
    /// The lists of the upstream. Waits for an upstream that was never listed,
    /// but not for long: its lists are announced when they come.
    pub(crate) async fn catalogue(self: &Arc<Self>) -> Option<Arc<Catalogue>> {
        self.ensure_task();
        if let Some(known) = self.catalogue.load_full() {
            return Some(known);
        }

        let mut state = self.state.subscribe();
        let listed = state.wait_for(|state| !matches!(state.phase, Phase::Starting));
        let _ = tokio::time::timeout(self.shared.settings.list_timeout, listed).await;

        // Set before the catalogue is looked at, so that no catalogue is missed.
        self.is_awaited.store(true, Ordering::SeqCst);
        self.catalogue.load_full()
    }

    /// The lists of the upstream, as far as they are known.
    pub(crate) fn known(&self) -> Option<Arc<Catalogue>> {
        self.catalogue.load_full()
    }

    /// The error of a call while nothing is known of what a running upstream offers.
    pub(crate) fn unlisted(&self) -> Option<UpstreamError> {
        let error = self.list_error.lock().clone()?;
        let (name, problem) = (self.name(), format!("its lists cannot be read: {error}"));
        Some(UpstreamError::Unavailable { name, problem })
    }

    /// The state of a running upstream, by whether its lists were read to their ends.
    pub(super) fn listed_state(&self) -> State {
        let catalogue = self.catalogue.load();
        let is_whole = catalogue.as_ref().is_none_or(|known| known.cuts.is_empty());
        let is_read = self.list_error.lock().is_none();
        if is_whole && is_read { State::Up } else { State::Degraded }
    }

    /// Why a part of the lists is not offered. `show` gives the text of an error.
    pub(crate) fn degraded(&self, show: impl Fn(&UpstreamError) -> String) -> Option<String> {
        let catalogue = self.catalogue.load();
        let cuts = catalogue.iter().flat_map(|known| &known.cuts).map(ToString::to_string);
        let error = self.list_error.lock().as_ref().map(show);
        let failed = error.map(|error| format!("the lists cannot be read: {error}"));

        let reasons: Vec<_> = cuts.chain(failed).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Lists what a running upstream offers, whenever that changes, until the
    /// process ends or the caller has no access: then returns why.
    pub(super) async fn serve(&self, link: &Arc<Link>) -> Option<UpstreamError> {
        let mut changed = link.lists_changed();
        let mut pace = Pace::new();
        if link.era() == Some(Era::Modern) && link.capabilities().announces_lists() {
            // Listed after the subscription, so that no change is missed.
            tokio::select! {
                _ = tokio::time::timeout(SUBSCRIBED, link.acknowledged(1)) => {}
                () = link.ended() => return None,
            }
        }

        loop {
            changed.borrow_and_update();
            tokio::select! {
                listed = Catalogue::load(self.source(link)) => match listed {
                    Ok(catalogue) => {
                        *self.list_error.lock() = None;
                        self.offer(&catalogue);
                    }
                    // Calls go on with a list that is known, since their tokens may differ.
                    Err(error) if error.login().is_some()
                        || error.is_callers() && self.catalogue.load().is_none() => return Some(error),
                    Err(error) => {
                        tracing::warn!(upstream = self.shared.settings.name, %error, "its lists cannot be read");
                        *self.list_error.lock() = Some(error);
                    }
                },
                () = link.ended() => return None,
            }
            pace.read();

            self.state.send_if_modified(|state| {
                let is_new = matches!(state.phase, Phase::Starting);
                if is_new {
                    state.phase = Phase::Up(Arc::clone(link));
                    state.is_failing = false;
                }
                is_new
            });

            tokio::select! {
                () = self.until_next(&mut changed, &mut pace) => {}
                () = link.ended() => return None,
            }
        }
    }

    /// Waits until the lists should be read again. Changes that are announced during the pause are
    /// in the lists that are read after it.
    async fn until_next(&self, changed: &mut watch::Receiver<u64>, pace: &mut Pace) {
        tokio::select! {
            Ok(()) = changed.changed() => tokio::time::sleep(pace.changed()).await,
            () = self.retry() => {}
        }
    }

    /// Waits until the lists should be read again although no change was announced: a list that
    /// failed may succeed, and a list that was cut may have room.
    async fn retry(&self) {
        let may_be_complete_later = {
            let catalogue = self.catalogue.load();
            catalogue.iter().flat_map(|known| &known.cuts).any(CutList::is_transient)
        };
        let failed = self.list_error.lock().is_some();

        if may_be_complete_later || failed {
            tokio::time::sleep(RETRY).await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    fn source<'a>(&'a self, link: &'a Arc<Link>) -> Source<'a> {
        let Shared { settings, naming, catalogues: pool, budget, .. } = &*self.shared;
        Source { link, settings, naming, pool, budget }
    }

    fn offer(&self, catalogue: &Arc<Catalogue>) {
        // The catalogue of an upstream with accounts belongs to its caller alone.
        if self.account.is_none() {
            self.shared.latest.store(Some(Arc::clone(catalogue)));
        }

        let changed = match self.catalogue.swap(Some(Arc::clone(catalogue))) {
            Some(known) => catalogue.changes_since(&known),
            None if self.is_awaited.load(Ordering::SeqCst) => {
                catalogue.changes_since(&Catalogue::default())
            }
            None => Vec::new(),
        };

        for announcement in changed {
            self.shared.announce(announcement);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{
        collections::HashSet,
        sync::atomic::{AtomicBool, AtomicUsize},
    };

    use bytes::Bytes;
    use serde_json::{Value, json};
    use tokio::{sync::mpsc, time::sleep};

    use super::{super::Part, *};
    use crate::{
        budget::{Charge, MessageBudget},
        link,
        message::Arrived,
        names::Naming,
        settings::Settings,
    };

    /// An upstream with one tool.
    #[derive(Default)]
    struct Listed {
        /// How often its tools were listed.
        times: AtomicUsize,
        /// The number of its tool.
        tool: AtomicUsize,
        /// Whether it announces a change after each list.
        announces: AtomicBool,
    }

    impl Listed {
        async fn answer(&self, link: &Link, mut requests: mpsc::Receiver<Bytes>) {
            while let Some(request) = requests.recv().await {
                let request: Value = serde_json::from_slice(&request).unwrap();
                let Some(id) = request["id"].as_i64() else { continue };
                let times = self.times.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(times < 1_000, "the lists are read without a pause");

                let name = format!("t{}", self.tool.load(Ordering::SeqCst));
                let tools = json!([{ "name": name, "inputSchema": { "type": "object" } }]);
                send(link, json!({ "id": id, "result": { "tools": tools } })).await;
                if self.announces.load(Ordering::SeqCst) {
                    announce(link).await;
                }
            }
        }
    }

    async fn announce(link: &Link) {
        send(link, json!({ "method": "notifications/tools/list_changed" })).await;
    }

    async fn send(link: &Link, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let bytes = Bytes::from(message.to_string());
        let arrived = Arrived { bytes, charge: Charge::default(), stored: None };
        link.receive(link::Source::Shared, arrived).await;
    }

    fn connection() -> (Arc<Connection>, Arc<Link>, mpsc::Receiver<Bytes>) {
        let settings = Settings::new("odd", vec!["odd".to_owned()]);
        let naming =
            Naming { upstream: "odd".into(), is_prefixed: false, reserved: HashSet::new() };
        let budget = Arc::new(MessageBudget::default());
        let shared = Arc::new(Shared::new(settings, naming, Arc::clone(&budget)));
        let (link, requests) = Link::new(Arc::clone(&shared.settings), budget, json!({}));
        let declared = json!({ "tools": { "listChanged": true } });
        link.set_era(Era::Legacy, serde_json::from_value(declared).unwrap());

        let forget = Box::new(|| false);
        (Connection::new(shared, json!({}), Part::Own, None, forget), link, requests)
    }

    #[tokio::test(start_paused = true)]
    async fn lists_that_always_change_are_read_ever_more_seldom_and_no_change_is_lost() {
        let (connection, link, requests) = connection();
        let listed = Listed { announces: true.into(), ..Listed::default() };
        let offers =
            |tool: &str| connection.known().is_some_and(|known| known.tool(tool).is_some());

        let changes = async {
            sleep(Duration::from_secs(600)).await;
            let times = listed.times.load(Ordering::SeqCst);
            assert!((12..=20).contains(&times), "{times}");

            // The change after a reading is the last one, and comes during a pause.
            listed.tool.store(1, Ordering::SeqCst);
            listed.announces.store(false, Ordering::SeqCst);
            sleep(Duration::from_secs(60)).await;
            assert!(offers("t1"));

            sleep(Duration::from_secs(10)).await;
            listed.tool.store(2, Ordering::SeqCst);
            announce(&link).await;
            sleep(Duration::from_millis(1)).await;
            assert!(offers("t2"), "after quiet, a change is seen at once");
        };

        tokio::select! {
            _ = connection.serve(&link) => panic!("the upstream has not ended"),
            () = listed.answer(&link, requests) => panic!("the link has not ended"),
            () = changes => {}
        }
    }
}
