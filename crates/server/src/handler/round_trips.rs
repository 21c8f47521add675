//! Multi round-trip requests (2026-07-28, patterns: Multi Round-Trip Requests).

use std::{collections::BTreeMap, task::Waker};

use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Seals the state of a round into `requestState`.
pub type SealState = Box<dyn Fn(&RoundState) -> String + Send + Sync>;

/// The state that one round hands to the next.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RoundState {
    /// Accepted responses, by key.
    pub answers: BTreeMap<String, Value>,
    /// The state of work that another server has begun. Sealed, so the client cannot change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Value>,
}

/// The requests and responses of one round.
pub struct RoundTrips {
    /// The client's responses in this and in earlier rounds, by key. Not validated yet.
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
    /// The state for the next round.
    state: RoundState,
    /// Whether the round ends, even without requests.
    ends: bool,
}

/// The result of a call that needs input from its client.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// The requests, by key (`inputRequests`).
    pub input_requests: BTreeMap<String, Value>,
    /// The sealed state, which the client sends back (`requestState`).
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

        Self {
            responses: all,
            continuation,
            seal,
            round: Mutex::default(),
            waker: AtomicWaker::new(),
        }
    }

    /// The client's responses, by key. Not validated.
    pub fn responses(&self) -> &BTreeMap<String, Value> {
        &self.responses
    }

    /// The state of work that an earlier round has begun.
    pub fn continuation(&self) -> Option<&Value> {
        self.continuation.as_ref()
    }

    /// Ends the round with requests of another server. Never returns, because the call ends here.
    pub async fn end_round<T>(&self, requests: BTreeMap<String, Value>, continuation: Value) -> T {
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

    /// The parsed response to the request with this key. Without a valid response
    /// records the request and never returns, because the call ends here.
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
