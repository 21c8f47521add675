//! `requestState`: what was answered in earlier rounds travels with the
//! client, sealed, so that any replica can go on (2026-07-28, patterns: MRTR).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    auth::Owner,
    clock::{Clock, Timestamp},
    handler::Rounds,
    protocol::{Fault, Member, Request},
};

/// How long a client may take from one round to the next.
const LIFE: Duration = Duration::from_secs(60 * 60);

/// Seals states and opens them again. The seal shows that a state is ours,
/// made for this caller and this request, and not too old.
#[derive(Clone)]
pub struct StateSealer {
    key: Arc<[u8]>,
    clock: Arc<dyn Clock>,
}

#[derive(Serialize, Deserialize)]
struct State {
    owner: Owner,
    request: String,
    expires: Timestamp,
    answers: BTreeMap<String, Value>,
}

impl StateSealer {
    /// Instances that serve the same clients need the same key.
    pub fn new(key: impl Into<Arc<[u8]>>, clock: Arc<dyn Clock>) -> Self {
        Self { key: key.into(), clock }
    }

    /// The rounds of a request: what the client brings, and how to seal what
    /// it is to bring next time.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for a state that is not ours, not for this
    /// caller and request, or too old.
    pub(super) fn rounds(&self, request: &Request, owner: &Owner) -> Result<Rounds, Fault> {
        let params = &request.params;
        let brought: Option<BTreeMap<String, Value>> = params.read(Member::InputResponses)?;
        let state: Option<String> = params.read(Member::RequestState)?;
        let mut answers = BTreeMap::new();
        if let Some(text) = state {
            answers = self.open(&text, owner, &digest(request)?)?;
        }
        answers.extend(brought.into_iter().flatten());
        let (this, owner, request) = (self.clone(), owner.clone(), request.clone());
        let seal = move |answers: &BTreeMap<String, Value>| {
            // The parameters were read once already.
            let request = digest(&request).unwrap_or_default();
            let expires = this.clock.now().saturating_add(LIFE);
            this.seal(&State { owner: owner.clone(), request, expires, answers: answers.clone() })
        };
        Ok(Rounds::new(answers, Box::new(seal)))
    }

    fn mac(&self, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        mac.update(payload);
        mac
    }

    fn seal(&self, state: &State) -> String {
        // Strings, numbers and JSON always serialize.
        let payload = serde_json::to_vec(state).unwrap_or_default();
        let seal = self.mac(&payload).finalize().into_bytes();
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        format!("{}.{}", encode(&payload), encode(&seal))
    }

    fn open(
        &self,
        text: &str,
        owner: &Owner,
        request: &str,
    ) -> Result<BTreeMap<String, Value>, Fault> {
        let refused = |why: &str| {
            Fault::invalid_params(format!("requestState {why}. Send the request again without it."))
        };
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let parts = text.split_once('.').and_then(|(p, s)| Some((decode(p)?, decode(s)?)));
        let (payload, seal) = parts.ok_or_else(|| refused("is not one of this server's"))?;
        if self.mac(&payload).verify_slice(&seal).is_err() {
            return Err(refused("is not one of this server's, or was changed"));
        }
        let state: State =
            serde_json::from_slice(&payload).map_err(|_| refused("cannot be read"))?;
        if state.owner != *owner || state.request != request {
            return Err(refused("belongs to another request"));
        }
        if state.expires <= self.clock.now() {
            return Err(refused("is too old"));
        }
        Ok(state.answers)
    }
}

impl std::fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateSealer")
    }
}

/// Names a request by what it asks, whatever the order of its members, and
/// without what changes from round to round.
fn digest(request: &Request) -> Result<String, Fault> {
    let mut params: HashMap<String, Value> = request.params.parse()?;
    for round in ["_meta", "inputResponses", "requestState"] {
        params.remove(round);
    }
    let sorted: BTreeMap<_, _> = params.into_iter().map(|(k, v)| (k, sorted(v))).collect();
    let text = serde_json::to_vec(&(&request.method, sorted)).unwrap_or_default();
    Ok(BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text)))
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> =
                members.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{
        auth::Principal,
        clock::ManualClock,
        protocol::{Message, parse},
    };

    fn request(params: &str) -> Request {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let Ok(Message::Request(request)) = parse(&body.into()) else { panic!("a request") };
        request
    }

    #[test]
    fn a_state_opens_only_for_the_same_caller_and_request_in_time() {
        let clock = ManualClock::new();
        let sealer = StateSealer::new(*b"key", Arc::new(clock.clone()));
        let owner = Principal::Local.owner();
        let asked = digest(&request(r#"{"name":"t","arguments":{"a":1,"b":2}}"#)).unwrap();
        let answers = BTreeMap::from([("k".to_owned(), Value::from(1))]);
        let expires = clock.now().saturating_add(LIFE);
        let state = State { owner: owner.clone(), request: asked.clone(), expires, answers };
        let text = sealer.seal(&state);

        let again = r#"{"arguments":{"b":2,"a":1},"name":"t","_meta":{},"inputResponses":{}}"#;
        let again = digest(&request(again)).unwrap();
        assert_eq!(sealer.open(&text, &owner, &again).unwrap()["k"], 1);

        let other = digest(&request(r#"{"name":"t","arguments":{"a":2,"b":2}}"#)).unwrap();
        assert!(sealer.open(&text, &owner, &other).is_err(), "another request");
        assert!(sealer.open(&text, &Owner::new("eve"), &asked).is_err(), "another caller");
        for tampered in [format!("{text}-TAMPERED"), text.replacen('e', "f", 1), String::new()] {
            assert!(sealer.open(&tampered, &owner, &asked).is_err(), "{tampered}");
        }
        let stranger = StateSealer::new(*b"another key", Arc::new(clock.clone()));
        assert!(stranger.open(&text, &owner, &asked).is_err(), "another server");
        clock.advance(LIFE);
        assert!(sealer.open(&text, &owner, &asked).is_err(), "too late");
    }
}
