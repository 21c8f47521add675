//! [`Providers`]: the sources of items beside the catalog. Some of them can be
//! exchanged while the server runs.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use parking_lot::Mutex;

use super::provider::Provider;

type SharedProvider = Arc<dyn Provider>;

/// The providers, in their order.
pub(super) struct Providers {
    all: ArcSwap<Vec<SharedProvider>>,
    /// The number of providers, from the first, that cannot be exchanged.
    fixed: usize,
    /// Removed providers that finish their calls.
    retiring: Arc<Mutex<Vec<SharedProvider>>>,
}

impl Providers {
    pub(super) fn new(fixed: Vec<SharedProvider>, exchangeable: Vec<SharedProvider>) -> Self {
        let count = fixed.len();
        let mut all = fixed;
        all.extend(exchangeable);
        Self { all: ArcSwap::from_pointee(all), fixed: count, retiring: Arc::default() }
    }

    /// The current providers.
    pub(super) fn load(&self) -> Arc<Vec<SharedProvider>> {
        self.all.load_full()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.load().is_empty()
    }

    pub(super) fn iter(&self) -> Iter {
        Iter { all: self.load(), next: 0 }
    }

    /// Ends all work of the providers, removed providers included.
    pub(super) async fn close(&self) {
        let retiring = self.retiring.lock().clone();
        join_all(self.load().iter().chain(&retiring).map(|provider| provider.close())).await;
    }

    /// Replaces the providers that can be exchanged. Calls of removed providers may finish.
    pub(super) fn exchange(&self, new: Vec<SharedProvider>, grace: Duration) {
        let before = self.load();
        let (fixed, exchangeable) = before.split_at(self.fixed);
        let removed: Vec<_> = exchangeable
            .iter()
            .filter(|old| !new.iter().any(|kept| Arc::ptr_eq(kept, old)))
            .cloned()
            .collect();

        self.all.store(Arc::new(fixed.iter().cloned().chain(new).collect()));

        for provider in removed {
            self.retiring.lock().push(Arc::clone(&provider));
            let retiring = Arc::clone(&self.retiring);
            tokio::spawn(async move {
                provider.retire(grace).await;
                retiring.lock().retain(|other| !Arc::ptr_eq(other, &provider));
            });
        }
    }
}

/// A snapshot of the providers when the iteration began.
pub(super) struct Iter {
    all: Arc<Vec<SharedProvider>>,
    next: usize,
}

impl Iterator for Iter {
    type Item = SharedProvider;

    fn next(&mut self) -> Option<SharedProvider> {
        let provider = self.all.get(self.next).cloned();
        self.next += 1;
        provider
    }
}

impl IntoIterator for &Providers {
    type Item = SharedProvider;
    type IntoIter = Iter;

    fn into_iter(self) -> Iter {
        self.iter()
    }
}
