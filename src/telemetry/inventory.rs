//! Gauges of the stored resources, their disk and the sessions, measured on demand.

use std::{sync::Arc, time::Duration};

use larder_runtime::{
    metric::{self, LabelNames},
    random::Random,
};
use larder_store::{session::Sessions, store::Store};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// How long a measurement is reused, so that frequent scrapes put no load on the store.
const MEASUREMENT_TTL: Duration = Duration::from_secs(2);
/// How long a measurement may take. Scrapers give up after a few seconds.
const MEASUREMENT_TIMEOUT: Duration = Duration::from_secs(1);

/// The most locations that have labels.
const MAX_STORES: usize = 8;
/// The longest location that has a label, in bytes.
const MAX_LOCATION_BYTES: usize = 2_048;

/// The gauges of stored resources and sessions.
///
/// Instances may share a store, and then each reports the same totals. The label `store`
/// identifies it: instances that share a store have the same label, and an instance with a
/// store in memory has a label of its own. `sum(max by (store) (larder_resources))` is
/// right in both cases.
#[derive(Debug)]
pub struct Inventory {
    store: Store,
    sessions: Arc<dyn Sessions>,
    /// The label of what belongs to this instance alone.
    instance_label: String,
    /// The locations that have labels: of the resources, the sessions and the instance.
    stores: LabelNames,
    last: Mutex<Option<Instant>>,
}

impl Inventory {
    /// Creates the gauges for a store and a session store.
    pub fn new(store: Store, sessions: Arc<dyn Sessions>, random: &Random) -> Self {
        let instance_label = format!("memory:{}", &random.id()[..8]);
        let stores = LabelNames::new(MAX_STORES, MAX_LOCATION_BYTES);
        Self { store, sessions, instance_label, stores, last: Mutex::default() }
    }

    /// Measures, unless a recent measurement exists. A value that is not available within a
    /// second becomes NaN, and the space on a disk keeps its value.
    pub async fn measure(&self) {
        let mut last = self.last.lock().await;
        if last.is_some_and(|measured_at| measured_at.elapsed() < MEASUREMENT_TTL) {
            return;
        }

        let (usage, disk, sessions) = tokio::join!(
            timeout(MEASUREMENT_TIMEOUT, self.store.usage()),
            timeout(MEASUREMENT_TIMEOUT, self.store.disk()),
            timeout(MEASUREMENT_TIMEOUT, self.sessions.count()),
        );

        let usage = usage.ok().and_then(Result::ok);
        let sessions = sessions.ok().and_then(Result::ok);

        let location = self.store.shared_location();
        self.set("larder_resources", location.as_deref(), usage.map(|usage| usage.resources));
        self.set("larder_resource_bytes", location.as_deref(), usage.map(|usage| usage.bytes));
        if let Ok(Some(space)) = disk {
            self.set("larder_disk_free_bytes", location.as_deref(), Some(space.free_bytes));
        }

        let location = self.sessions.shared_location();
        self.set("larder_sessions", location.as_deref(), sessions);

        *last = Some(Instant::now());
    }

    fn set(&self, name: &'static str, location: Option<&str>, number: Option<u64>) {
        #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        let number = number.map_or(f64::NAN, |number| number as f64);
        let store = location.unwrap_or(&self.instance_label);
        metric::gauge(name, [("store", self.stores.label(store))]).set(number);
    }
}
