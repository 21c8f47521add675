#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::*;
use crate::clock::ManualClock;

/// An issuer whose keys can be changed, withheld and held up.
struct Issuer {
    keys: Mutex<Result<Vec<&'static str>, String>>,
    fetches: AtomicUsize,
    gate: Semaphore,
}

impl Issuer {
    fn of(keys: &[&'static str]) -> Arc<Self> {
        Arc::new(Self {
            keys: Mutex::new(Ok(keys.to_vec())),
            fetches: AtomicUsize::new(0),
            gate: Semaphore::new(1000),
        })
    }

    fn set(&self, keys: &[&'static str]) {
        *self.keys.lock() = Ok(keys.to_vec());
    }

    fn fail(&self) {
        *self.keys.lock() = Err("down".into());
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    async fn get(&self) -> Result<KeySet, String> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        let keys: Vec<Value> = self.keys.lock().clone()?.iter().map(|kid| {
            json!({ "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" })
        }).collect();
        KeySet::read(json!({ "keys": keys }).to_string().as_bytes())
    }
}

fn jwks(issuer: &Arc<Issuer>) -> (Arc<Jwks>, ManualClock) {
    let (clock, issuer) = (ManualClock::new(), Arc::clone(issuer));
    let source: Source = Arc::new(move || {
        let issuer = Arc::clone(&issuer);
        async move { issuer.get().await }.boxed()
    });
    (Jwks::new(source, Arc::new(clock.clone())), clock)
}

async fn judge(jwks: &Arc<Jwks>, id: &str) -> Result<(), AuthError> {
    jwks.judge(Some(id), "EdDSA", |_, _| true).await
}

const UNKNOWN: Result<(), AuthError> = Err(AuthError::Invalid(Denied::Key));

#[tokio::test]
async fn a_fetch_is_shared_by_all_who_wait_for_it() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, _) = jwks(&issuer);
    let all = futures_util::future::join_all((0..50).map(|_| judge(&jwks, "a"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn thirty_unknown_keys_in_210_requests_are_one_fetch() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, _) = jwks(&issuer);
    judge(&jwks, "a").await.unwrap();
    let before = issuer.fetches();
    for n in 0..210 {
        if n % 7 == 0 {
            assert_eq!(judge(&jwks, &format!("unknown {n}")).await, UNKNOWN);
        } else {
            judge(&jwks, "a").await.unwrap();
        }
    }
    assert_eq!(issuer.fetches() - before, 1);
}

#[tokio::test]
async fn the_first_fetch_is_not_repeated_for_the_key_that_it_did_not_bring() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, _) = jwks(&issuer);
    assert_eq!(judge(&jwks, "unknown").await, UNKNOWN);
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_rotation_is_picked_up_at_once_unless_one_was_in_that_minute() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    judge(&jwks, "a").await.unwrap();
    issuer.set(&["b"]);
    // All who come while it is fetched wait for it.
    let all = futures_util::future::join_all((0..20).map(|_| judge(&jwks, "b"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(issuer.fetches(), 2);
    assert_eq!(judge(&jwks, "a").await, UNKNOWN);
    issuer.set(&["c"]);
    clock.advance(Duration::from_secs(59));
    assert_eq!(judge(&jwks, "c").await, UNKNOWN);
    clock.advance(Duration::from_secs(1));
    judge(&jwks, "c").await.unwrap();
    assert_eq!(issuer.fetches(), 3);
}

#[tokio::test]
async fn the_last_good_set_goes_on_while_the_endpoint_is_down() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    judge(&jwks, "a").await.unwrap();
    issuer.fail();
    for _ in 0..3 {
        clock.advance(Duration::from_secs(3600));
        judge(&jwks, "a").await.unwrap();
        tokio::task::yield_now().await;
    }
    // A key that could only be in a newer set cannot be judged.
    let judged = judge(&jwks, "b").await;
    assert!(matches!(judged, Err(AuthError::Unavailable { .. })), "{judged:?}");
}

#[tokio::test]
async fn known_keys_do_not_wait_for_an_endpoint_that_hangs() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    judge(&jwks, "a").await.unwrap();
    issuer.gate.forget_permits(1000);
    clock.advance(Duration::from_secs(3600));
    for _ in 0..3 {
        judge(&jwks, "a").await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn without_any_set_nothing_can_be_judged_and_nobody_is_pressed() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    issuer.fail();
    for _ in 0..10 {
        let judged = judge(&jwks, "a").await;
        assert!(matches!(judged, Err(AuthError::Unavailable { .. })), "{judged:?}");
    }
    assert_eq!(issuer.fetches(), 1);
    issuer.set(&["a"]);
    clock.advance(BACKOFF);
    judge(&jwks, "a").await.unwrap();
}

#[tokio::test]
async fn a_set_that_grows_old_is_fetched_beside_the_requests() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    judge(&jwks, "a").await.unwrap();
    issuer.set(&["b"]);
    clock.advance(FRESH);
    // The withdrawn key is good for one more request, which begins the fetch.
    judge(&jwks, "a").await.unwrap();
    let flight = jwks.lock().flight();
    if let Some(flight) = flight {
        flight.await;
    }
    assert_eq!(judge(&jwks, "a").await, UNKNOWN);
}

#[tokio::test]
async fn who_stops_waiting_does_not_stop_the_fetch() {
    let issuer = Issuer::of(&["a"]);
    let (jwks, _) = jwks(&issuer);
    issuer.gate.forget_permits(1000);
    let waiting = tokio::spawn({
        let jwks = Arc::clone(&jwks);
        async move { judge(&jwks, "a").await }
    });
    while issuer.fetches() == 0 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    let _ = waiting.await;
    issuer.gate.add_permits(1000);
    judge(&jwks, "a").await.unwrap();
    assert_eq!(issuer.fetches(), 1);
}
