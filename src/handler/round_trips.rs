//! Multi round-trip requests (2026-07-28, patterns: Multi Round-Trip Requests).

use std::{collections::BTreeMap, task::Waker};

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Seals the state of a round into `requestState`.
pub type SealState = Box<dyn Fn(&RoundState) -> String + Send + Sync>;

/// What one round hands to the next.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RoundState {
    /// Accepted responses, by key.
    pub answers: BTreeMap<String, Value>,
    /// How work goes on that another server has begun. The client cannot change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Value>,
}

/// The requests and responses of one round.
pub struct RoundTrips {
    /// What the client sent in this and in earlier rounds, by key. Not validated yet.
    responses: BTreeMap<String, Value>,
    continuation: Option<Value>,
    seal: SealState,
    round: Mutex<Round>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Round {
    /// Requests without a valid response, by key.
    pending: BTreeMap<String, Value>,
    /// For the next round.
    state: RoundState,
    /// Whether the round ends, even without requests.
    ends: bool,
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
    /// A round that starts with the state of the last one and the client's responses, by key.
    pub fn new(
        state: RoundState,
        responses: impl IntoIterator<Item = (String, Value)>,
        seal: SealState,
    ) -> Self {
        let RoundState { answers: mut all, continuation } = state;
        all.extend(responses);
        let (round, waker) = (Mutex::default(), AtomicWaker::new());
        Self { responses: all, continuation, seal, round, waker }
    }

    /// What the client has sent, by key. Not validated.
    pub(crate) fn responses(&self) -> &BTreeMap<String, Value> {
        &self.responses
    }

    /// How work goes on that an earlier round has begun.
    pub(crate) fn continuation(&self) -> Option<&Value> {
        self.continuation.as_ref()
    }

    /// Ends the round with requests of another server. Never returns, because the call ends here.
    pub(crate) async fn end_round<T>(
        &self,
        requests: BTreeMap<String, Value>,
        continuation: Value,
    ) -> T {
        {
            let mut round = self.lock();
            round.pending.extend(requests);
            round.state.continuation = Some(continuation);
            round.ends = true;
        }
        self.waker.wake();
        std::future::pending().await
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
        if round.pending.is_empty() && !round.ends {
            return None;
        }
        round.ends = false;
        let input_requests = std::mem::take(&mut round.pending);
        Some(InputRequired { input_requests, state: (self.seal)(&round.state) })
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
            self.lock().state.answers.insert(key.to_owned(), response.clone());
            return parsed;
        }
        self.lock().pending.insert(key.to_owned(), request);
        self.waker.wake();
        std::future::pending().await
    }
}
