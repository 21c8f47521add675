//! `requestState`: earlier answers travel with the client in a sealed state, so that any
//! instance can continue the call (2026-07-28, patterns: MRTR).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use larder_oauth::Owner;
use larder_protocol::{Fault, Member, Request};
use larder_runtime::{
    clock::{Clock, Timestamp},
    key_ring::KeyRing,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::handler::{RoundState, RoundTrips};

/// The lifetime of a state, which bounds the time between two rounds.
const STATE_TTL: Duration = Duration::from_secs(60 * 60);

/// Seals and opens states. The seal proves that this server issued the state for this
/// caller and this request. States expire.
#[derive(Clone)]
pub struct StateSealer {
    keys: KeyRing,
    clock: Arc<dyn Clock>,
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    owner: Owner,
    request: String,
    expires: Timestamp,
    #[serde(flatten)]
    round: RoundState,
}

impl StateSealer {
    /// Creates a sealer. All instances that serve the same clients need the same keys.
    pub fn new(keys: KeyRing, clock: Arc<dyn Clock>) -> Self {
        Self { keys, clock }
    }

    /// The round of a request, with the state of the earlier ones.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for a state of another server, caller or request, or an
    /// expired one.
    pub(super) fn rounds(&self, request: &Request, owner: &Owner) -> Result<RoundTrips, Fault> {
        let params = &request.params;
        let responses: Option<BTreeMap<String, Value>> = params.read(Member::InputResponses)?;
        let state: Option<String> = params.read(Member::RequestState)?;

        let state = match state {
            Some(text) => self.open(&text, owner, &request_digest(request)?)?,
            None => RoundState::default(),
        };

        let this = self.clone();
        let owner = owner.clone();
        let request = request.clone();
        let seal = move |round: &RoundState| {
            // The digest does not fail, because the parameters were read before.
            let request = request_digest(&request).unwrap_or_default();
            let expires = this.clock.now().saturating_add(STATE_TTL);
            this.seal(&SealedState { owner: owner.clone(), request, expires, round: round.clone() })
        };

        Ok(RoundTrips::new(state, responses.into_iter().flatten(), Box::new(seal)))
    }

    fn seal(&self, state: &SealedState) -> String {
        // Serialization never fails for strings, numbers and JSON.
        let payload = serde_json::to_vec(state).unwrap_or_default();
        let seal = mac(&self.keys.current(), &payload).finalize().into_bytes();
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        format!("{}.{}", encode(&payload), encode(&seal))
    }

    fn open(&self, text: &str, owner: &Owner, request: &str) -> Result<RoundState, Fault> {
        let rejected = |why: &str| {
            Fault::invalid_params(format!("requestState {why}. Send the request again without it."))
        };

        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let parts = text.split_once('.').and_then(|(p, s)| Some((decode(p)?, decode(s)?)));
        let (payload, seal) = parts.ok_or_else(|| rejected("was not issued by this server"))?;

        if !self.keys.any(|key| mac(key, &payload).verify_slice(&seal).is_ok()) {
            return Err(rejected("was not issued by this server or was changed"));
        }

        let state: SealedState =
            serde_json::from_slice(&payload).map_err(|_| rejected("cannot be read"))?;
        if state.owner != *owner || state.request != request {
            return Err(rejected("belongs to another request"));
        }
        if state.expires <= self.clock.now() {
            return Err(rejected("is too old"));
        }

        Ok(state.round)
    }
}

impl std::fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateSealer")
    }
}

fn mac(key: &[u8], payload: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(payload);
    mac
}

/// The digest of a request's method and parameters. It ignores the order of members and
/// what changes from round to round.
fn request_digest(request: &Request) -> Result<String, Fault> {
    let mut params: HashMap<String, Value> = request.params.parse()?;

    for round in ["_meta", "inputResponses", "requestState"] {
        params.remove(round);
    }

    let params: BTreeMap<_, _> = params.into_iter().map(|(k, v)| (k, sort_members(v))).collect();
    let text = serde_json::to_vec(&(&request.method, params)).unwrap_or_default();
    Ok(BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text)))
}

fn sort_members(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> =
                members.into_iter().map(|(k, v)| (k, sort_members(v))).collect();
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sort_members).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_oauth::Principal;
    use larder_protocol::{Message, parse};
    use larder_runtime::clock::ManualClock;

    fn request(params: &str) -> Request {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let Ok(Message::Request(request)) = parse(&body.into()) else { panic!("a request") };
        request
    }

    #[test]
    fn a_state_opens_only_for_the_same_caller_and_request_in_time() {
        let clock = ManualClock::new();
        let sealer = StateSealer::new(KeyRing::new(*b"key"), Arc::new(clock.clone()));
        let owner = Principal::Local.owner();
        let expected =
            request_digest(&request(r#"{"name":"t","arguments":{"a":1,"b":2}}"#)).unwrap();

        let round = RoundState {
            answers: BTreeMap::from([("k".to_owned(), Value::from(1))]),
            continuation: Some("where it goes on".into()),
        };
        let expires = clock.now().saturating_add(STATE_TTL);
        let state = SealedState { owner: owner.clone(), request: expected.clone(), expires, round };
        let text = sealer.seal(&state);

        let again = r#"{"arguments":{"b":2,"a":1},"name":"t","_meta":{},"inputResponses":{}}"#;
        let again = request_digest(&request(again)).unwrap();
        let opened = sealer.open(&text, &owner, &again).unwrap();
        assert_eq!(opened.answers["k"], 1);
        assert_eq!(opened.continuation.unwrap(), "where it goes on");

        let other = request_digest(&request(r#"{"name":"t","arguments":{"a":2,"b":2}}"#)).unwrap();
        assert!(sealer.open(&text, &owner, &other).is_err(), "another request");
        assert!(sealer.open(&text, &Owner::new("eve"), &expected).is_err(), "another caller");
        for tampered in [format!("{text}-TAMPERED"), text.replacen('e', "f", 1), String::new()] {
            assert!(sealer.open(&tampered, &owner, &expected).is_err(), "{tampered}");
        }

        let stranger = StateSealer::new(KeyRing::new(*b"another key"), Arc::new(clock.clone()));
        assert!(stranger.open(&text, &owner, &expected).is_err(), "another server");

        clock.advance(STATE_TTL);
        assert!(sealer.open(&text, &owner, &expected).is_err(), "too late");
    }
}
