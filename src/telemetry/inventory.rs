//! What is kept just now, looked up when somebody asks.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{random::Random, session::Sessions, store::Store};

/// How long a look is good for, so that it costs the store the same however
/// often metrics are asked for.
const FRESH: Duration = Duration::from_secs(2);
/// Whoever collects metrics gives up in seconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The gauges of what lies in the store and of the sessions.
///
/// Several servers may share these, and then each of them tells the same whole.
/// So each number says in its label `store` whose it is: the same in all who
/// share a place, another in every process that keeps things for itself.
/// `sum(max by (store) (larder_resources))` is right either way.
#[derive(Debug)]
pub struct Inventory {
    store: Store,
    sessions: Arc<dyn Sessions>,
    /// The label of what is this process's own.
    own: String,
    last: Mutex<Option<Instant>>,
}

impl Inventory {
    /// Of these two.
    pub fn new(store: Store, sessions: Arc<dyn Sessions>, random: &Random) -> Self {
        let own = format!("memory:{}", &random.id()[..8]);
        Self { store, sessions, own, last: Mutex::default() }
    }

    /// Looks, unless somebody has just looked. What cannot be found out in a
    /// second is not a number then.
    pub async fn measure(&self) {
        let mut last = self.last.lock().await;
        if last.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let (usage, sessions) = tokio::join!(
            timeout(PATIENCE, self.store.usage()),
            timeout(PATIENCE, self.sessions.count()),
        );
        let usage = usage.ok().and_then(Result::ok);
        let sessions = sessions.ok().and_then(Result::ok);
        let place = self.store.shared();
        self.set("larder_resources", place.clone(), usage.map(|usage| usage.resources));
        self.set("larder_resource_bytes", place, usage.map(|usage| usage.bytes));
        self.set("larder_sessions", self.sessions.shared_location(), sessions);
        *last = Some(Instant::now());
    }

    fn set(&self, name: &'static str, place: Option<String>, number: Option<u64>) {
        #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        let number = number.map_or(f64::NAN, |number| number as f64);
        metrics::gauge!(name, "store" => place.unwrap_or_else(|| self.own.clone())).set(number);
    }
}
