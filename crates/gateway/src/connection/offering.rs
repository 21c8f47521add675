//! The lists and capabilities of the upstream of a connection.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use super::{Connection, Life, backoff, pace::Pace};
use crate::{
    catalogue::{Catalogue, CutList, Loaded, PageLimits, Reading},
    error::UpstreamError,
    link::{Era, Link},
    settings::Target,
};

/// How long the lists wait for the subscription to their changes.
const SUBSCRIBED: Duration = Duration::from_secs(3);

/// How long the first page of a list other than that of tools may take at most: where lists wait for
/// a slow start, a list that hangs must not withhold the tools.
const OTHER_PAGES: Duration = Duration::from_secs(5);

/// How long a list waits for another one that is read again because it has failed.
const ASKED_AGAIN: Duration = Duration::from_secs(1);

impl Connection {
    /// The lists of the upstream. Waits for an upstream that was never listed, but not for long,
    /// and once: its lists are announced when they come.
    pub(crate) async fn catalogue(self: &Arc<Self>) -> Option<Arc<Catalogue>> {
        if let Some(known) = self.catalogue.load_full() {
            self.ensure_task();
            self.ask_again(&known).await;
            return self.catalogue.load_full();
        }
        if let Some(remembered) = self.recall().await {
            return Some(remembered);
        }

        self.ensure_task();
        let mut life = self.life.subscribe();
        let listed = life.wait_for(|life| !life.is_starting());
        let _ = tokio::time::timeout_at(self.list_deadline(), listed).await;

        // Set before the catalogue is looked at, so that no catalogue is missed.
        self.is_awaited.store(true, Ordering::SeqCst);
        self.catalogue.load_full()
    }

    /// The offer of a fresh process, where it is the same for all callers.
    async fn recall(self: &Arc<Self>) -> Option<Arc<Catalogue>> {
        if self.account.is_some() {
            return None;
        }

        let remembered = self.shared.recall(&self.client).await?;
        if matches!(self.shared.settings.target, Target::Remote(_)) {
            // No process is saved by waiting for the first call.
            self.ensure_task();
        }
        Some(remembered)
    }

    /// Until when lists wait for an upstream that was never listed.
    fn list_deadline(&self) -> Instant {
        let deadline = match self.account {
            Some(_) => &self.own_list_deadline,
            None => &self.shared.list_deadline,
        };
        let latest = Instant::now() + self.shared.settings.list_timeout;
        *deadline.lock().get_or_insert(latest)
    }

    /// Reads the lists again if one has failed, unless the failure takes time.
    async fn ask_again(&self, known: &Catalogue) {
        if !known.cuts.iter().any(CutList::may_be_asked_again) {
            return;
        }

        let mut readings = self.readings.subscribe();
        readings.borrow_and_update();
        self.relist.notify_one();
        let wait = self.shared.settings.list_timeout.min(ASKED_AGAIN);
        let _ = tokio::time::timeout(wait, readings.changed()).await;
    }

    /// The lists of the upstream, as far as they are known.
    pub(crate) fn known(&self) -> Option<Arc<Catalogue>> {
        self.catalogue.load_full()
    }

    /// The error of a call of a tool while the tools of a running upstream cannot be read.
    pub(crate) fn unlisted(&self) -> Option<UpstreamError> {
        let catalogue = self.catalogue.load();
        let error = catalogue.as_ref()?.tools_error()?;
        let name = self.name();
        let problem = format!("its lists cannot be read: {error}");
        Some(UpstreamError::Unavailable { name, problem })
    }

    /// Lists what a running upstream offers, whenever that changes, until the
    /// process ends or the caller has no access: then returns why.
    pub(super) async fn serve(&self, link: &Arc<Link>) -> Option<UpstreamError> {
        self.life.send_modify(Life::list);
        let mut changed = link.lists_changed();
        let mut pace = Pace::new();
        if link.era() == Some(Era::Modern) && link.capabilities().announces_lists() {
            // Listed after the subscription, so that no change is missed.
            tokio::select! {
                _ = tokio::time::timeout(SUBSCRIBED, link.acknowledged(1)) => {}
                () = link.ended() => return None,
            }
        }

        let mut failures = 0;
        let mut is_fresh = !link.is_resumed();
        loop {
            changed.borrow_and_update();
            tokio::select! {
                read = self.read_lists(link, failures, is_fresh) => match read {
                    Ok(missing) => {
                        let has_failed = missing.iter().any(CutList::is_transient);
                        failures = if has_failed { failures + 1 } else { 0 };
                        self.life.send_modify(|life| life.listed(link, missing));
                    }
                    Err(error) => return Some(error),
                },
                () = link.ended() => return None,
            }
            is_fresh = false;
            self.readings.send_modify(|readings| *readings += 1);
            pace.read();

            tokio::select! {
                () = self.until_next(&mut changed, &mut pace, failures) => {}
                () = link.ended() => return None,
            }
        }
    }

    /// Reads the lists, and offers them, after so many failures in a row. Returns the lists of which
    /// a part is missing.
    ///
    /// # Errors
    /// The caller has no access.
    async fn read_lists(
        &self,
        link: &Arc<Link>,
        failures: u32,
        is_fresh: bool,
    ) -> Result<Vec<CutList>, UpstreamError> {
        let earlier = match self.catalogue.load_full() {
            Some(earlier) => Some(earlier),
            None if self.account.is_none() => self.shared.recall(&self.client).await,
            None => None,
        };

        let limits = self.page_limits(failures);
        let reading = Reading { link, earlier: earlier.as_deref(), limits, is_fresh };
        match Catalogue::load(self.shared.source(), reading).await {
            Ok(loaded) => {
                let missing = loaded.catalogue.cuts.clone();
                // Lists of a process that has a client's roots are for this client alone.
                self.offer(loaded, is_fresh && !link.has_roots(), link.era());
                Ok(missing)
            }
            // Calls go on with a list that is known, since their tokens may differ.
            Err(error)
                if error.login().is_some()
                    || error.is_callers() && self.catalogue.load().is_none() =>
            {
                Err(error)
            }
            Err(error) => {
                let upstream = &self.shared.settings.name;
                tracing::warn!(upstream, %error, "its lists cannot be read");
                Ok(vec![CutList::of_all(error)])
            }
        }
    }

    /// How long one page of a list may take after so many failures in a row: one that hangs must
    /// not hold up the others for long, and one that is slow must come at last.
    fn page_limits(&self, failures: u32) -> PageLimits {
        let settings = &self.shared.settings;
        let after_failures = |first: Duration| {
            let limit = first.saturating_mul(1 << failures.min(8));
            limit.min(settings.call_timeout)
        };
        PageLimits {
            tools: after_failures(settings.list_timeout),
            others: after_failures(settings.list_timeout.min(OTHER_PAGES)),
        }
    }

    /// Waits until the lists should be read again: they have changed, or a list that failed may
    /// succeed. Changes that are announced during the pause are in the lists that are read after
    /// it.
    async fn until_next(&self, changed: &mut watch::Receiver<u64>, pace: &mut Pace, failures: u32) {
        let retry = async {
            match failures {
                0 => std::future::pending().await,
                _ => tokio::time::sleep(backoff(failures)).await,
            }
        };
        tokio::select! {
            Ok(()) = changed.changed() => tokio::time::sleep(pace.changed()).await,
            () = self.relist.notified() => {}
            () = retry => {}
        }
    }

    /// Offers what was read. `is_fresh`: by a process that nobody has used yet.
    fn offer(&self, loaded: Loaded, is_fresh: bool, era: Option<Era>) {
        let Loaded { catalogue, record } = loaded;
        *self.own_list_deadline.lock() = None;

        let mut remembered = None;
        // The catalogue of an upstream with accounts belongs to its caller alone.
        if self.account.is_none() {
            *self.shared.list_deadline.lock() = None;
            self.shared.latest.store(Some(Arc::clone(&catalogue)));
            if is_fresh && let Some(record) = record {
                remembered = self.shared.remember(&self.client, &catalogue, record, era);
            }
        }

        let changed = match self.catalogue.swap(Some(Arc::clone(&catalogue))).or(remembered) {
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

    use super::{
        super::{Lifespan, SessionOwnership},
        *,
    };
    use crate::{
        budget::{Charge, MessageBudget},
        catalogue::ReasonReader,
        link,
        memory::Folder,
        message::Arrived,
        names::Naming,
        settings::Settings,
        shared::Shared,
        status::State,
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
        link.receive(link::MessageSource::Shared, arrived).await;
    }

    fn connection() -> (Arc<Connection>, Arc<Link>, mpsc::Receiver<Bytes>) {
        let settings = Settings::new("odd", vec!["odd".to_owned()]);
        connection_with(settings, json!({ "tools": { "listChanged": true } }))
    }

    fn connection_with(
        settings: Settings,
        declared: Value,
    ) -> (Arc<Connection>, Arc<Link>, mpsc::Receiver<Bytes>) {
        let naming =
            Naming { upstream: "odd".into(), is_prefixed: false, reserved: HashSet::new() };
        let budget = Arc::new(MessageBudget::default());
        let shared = Shared::new(settings, naming, Arc::clone(&budget), Folder::default());
        let shared = Arc::new(shared);
        let (link, requests) = Link::new(Arc::clone(&shared.settings), budget, json!({}));
        link.set_era(Era::Legacy, serde_json::from_value(declared).unwrap());

        let lifespan =
            Lifespan { forget: Box::new(|| false), ends_with_session: false, anew: None };
        (Connection::new(shared, json!({}), SessionOwnership::Own, None, lifespan), link, requests)
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

    #[tokio::test(start_paused = true)]
    async fn an_upstream_whose_lists_all_fail_is_degraded_though_earlier_ones_are_offered() {
        let (connection, link, mut requests) = connection();
        let earlier = Arc::new(Catalogue::default());
        connection.catalogue.store(Some(earlier));

        // No request reaches the upstream, because the caller's login cannot be used now.
        let failing = async {
            while let Some(request) = requests.recv().await {
                let request: Value = serde_json::from_slice(&request).unwrap();
                let problem = "it cannot be refreshed".to_owned();
                let error = UpstreamError::StoredLogin { name: "odd".into(), problem };
                link.fail(request["id"].as_i64().unwrap(), error);
            }
        };
        let mut life = connection.life.subscribe();
        let listed = async {
            let life = life.wait_for(|life| !life.is_starting()).await.unwrap();
            assert_eq!(life.state(), State::Degraded);
            let told = life.degraded(ReasonReader::Anybody);
            assert_eq!(told.as_deref(), Some("all lists cannot be read (access)"));
        };

        tokio::select! {
            _ = connection.serve(&link) => panic!("the upstream has not ended"),
            () = failing => panic!("the link has not ended"),
            () = listed => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_hangs_does_not_withhold_the_tools_for_as_long_as_a_start() {
        let settings = Settings::new("odd", vec!["odd".to_owned()]);
        let settings = Settings { list_timeout: settings.start_timeout, ..settings };
        let declared = json!({ "tools": {}, "resources": {} });
        let (connection, link, mut requests) = connection_with(settings, declared);

        let answers = async {
            while let Some(request) = requests.recv().await {
                let request: Value = serde_json::from_slice(&request).unwrap();
                let result = match request["method"].as_str() {
                    // A slow list of tools is waited for.
                    Some("tools/list") => {
                        sleep(Duration::from_secs(8)).await;
                        json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] })
                    }
                    Some("resources/templates/list") => json!({}),
                    _ => continue,
                };
                send(&link, json!({ "id": request["id"], "result": result })).await;
            }
        };
        let begun = Instant::now();
        let listed = async {
            while connection.known().is_none() {
                sleep(Duration::from_millis(100)).await;
            }
            assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
            assert!(connection.known().unwrap().tool("t").is_some());
            let problem = connection.life().degraded(ReasonReader::Operator).unwrap();
            assert!(problem.contains("resources/list is cut: it took over 5 s"), "{problem}");
        };

        tokio::select! {
            _ = connection.serve(&link) => panic!("the upstream has not ended"),
            () = answers => panic!("the link has not ended"),
            () = listed => {}
        }
    }
}
