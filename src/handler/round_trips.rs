//! Multi round-trip requests (2026-07-28, patterns: Multi Round-Trip Requests).

use std::{collections::BTreeMap, task::Waker};

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// Seals the accepted responses into `requestState`.
pub type SealState = Box<dyn Fn(&BTreeMap<String, Value>) -> String + Send + Sync>;

/// The requests and responses of one round.
pub struct RoundTrips {
    /// What the client sent, by key. Not validated yet.
    responses: BTreeMap<String, Value>,
    seal: SealState,
    round: Mutex<Round>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Round {
    /// Requests without a valid response, by key.
    pending: BTreeMap<String, Value>,
    /// Valid responses, by key.
    accepted: BTreeMap<String, Value>,
}

/// The result of a call that needs input from its client.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// The requests, by key (`inputRequests`).
    pub input_requests: BTreeMap<String, Value>,
    /// What the client sends back with its responses (`requestState`).
    pub state: String,
}

impl RoundTrips {
    /// A round that starts with these responses, by key.
    pub fn new(responses: BTreeMap<String, Value>, seal: SealState) -> Self {
        Self { responses, seal, round: Mutex::default(), waker: AtomicWaker::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Round> {
        self.round.lock()
    }

    pub(super) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Takes the pending requests, if there are any.
    pub(super) fn required(&self) -> Option<InputRequired> {
        let mut round = self.lock();
        if round.pending.is_empty() {
            return None;
        }
        let input_requests = std::mem::take(&mut round.pending);
        Some(InputRequired { input_requests, state: (self.seal)(&round.accepted) })
    }

    /// The parsed response to the request of that key. Without a valid response
    /// it records the request and never returns, because the call ends here.
    pub(super) async fn ask<T>(
        &self,
        key: &str,
        request: Value,
        parse: impl FnOnce(Value) -> Result<T, String>,
    ) -> T {
        if let Some(response) = self.responses.get(key)
            && let Ok(parsed) = parse(response.clone())
        {
            self.lock().accepted.insert(key.to_owned(), response.clone());
            return parsed;
        }
        self.lock().pending.insert(key.to_owned(), request);
        self.waker.wake();
        std::future::pending().await
    }
}
