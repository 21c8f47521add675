#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use larder_runtime::clock::ManualClock;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::*;
use crate::refreshing::{BACKOFF, MAX_AGE};

/// An issuer whose keys can be changed, made unavailable and delayed.
struct Issuer {
    keys: Mutex<Result<Vec<&'static str>, String>>,
    fetches: AtomicUsize,
    gate: Semaphore,
}

impl Issuer {
    fn new(keys: &[&'static str]) -> Arc<Self> {
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
    let clock = ManualClock::new();
    let issuer = Arc::clone(issuer);
    let source: Source = Arc::new(move || {
        let issuer = Arc::clone(&issuer);
        async move { issuer.get().await }.boxed()
    });
    (Jwks::new(source, Arc::new(clock.clone())), clock)
}

async fn verify(jwks: &Arc<Jwks>, id: &str) -> Result<(), AuthError> {
    jwks.verify(Some(id), "EdDSA", |_, _| true).await
}

const UNKNOWN: Result<(), AuthError> = Err(AuthError::Invalid(Denied::Key));

#[tokio::test]
async fn concurrent_requests_share_one_fetch() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, _) = jwks(&issuer);

    let all = futures_util::future::join_all((0..50).map(|_| verify(&jwks, "a"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn thirty_unknown_keys_in_210_requests_are_one_fetch() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, _) = jwks(&issuer);
    verify(&jwks, "a").await.unwrap();

    let before = issuer.fetches();
    for n in 0..210 {
        if n % 7 == 0 {
            assert!(verify(&jwks, &format!("unknown {n}")).await.is_err());
        } else {
            verify(&jwks, "a").await.unwrap();
        }
    }

    assert_eq!(issuer.fetches() - before, 1);
}

#[tokio::test]
async fn unknown_keys_do_not_hide_a_rotation() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    verify(&jwks, "a").await.unwrap();
    assert_eq!(verify(&jwks, "unknown").await, UNKNOWN);

    issuer.set(&["b"]);
    // The key of the rotation cannot be looked for now: its tokens are not invalid.
    let result = verify(&jwks, "b").await;
    assert!(
        matches!(result, Err(AuthError::Unavailable { retry_after, .. }) if retry_after == UNKNOWN_KEY_INTERVAL),
        "{result:?}"
    );

    clock.advance(UNKNOWN_KEY_INTERVAL);
    // A repeated unknown key causes no other fetch, so that the rotation is found.
    let before = issuer.fetches();
    assert_eq!(verify(&jwks, "unknown").await, UNKNOWN);
    assert_eq!(issuer.fetches(), before);
    verify(&jwks, "b").await.unwrap();

    clock.advance(UNKNOWN_KEY_TTL);
    assert_eq!(verify(&jwks, "unknown").await, UNKNOWN);
    assert_eq!(issuer.fetches(), before + 2);
}

#[tokio::test]
async fn the_replaced_key_of_tokens_without_a_kid_is_found() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, _) = jwks(&issuer);
    verify(&jwks, "a").await.unwrap();
    issuer.set(&["b"]);
    let signed_by = |new: bool| {
        let fetches = Arc::clone(&issuer);
        move |_: &Key, _| !new || fetches.fetches() > 1
    };

    jwks.verify(None, "EdDSA", signed_by(true)).await.unwrap();
    assert_eq!(issuer.fetches(), 2);

    jwks.verify(None, "EdDSA", signed_by(false)).await.unwrap();
    let wrong = jwks.verify(None, "EdDSA", |_, _| false).await;
    assert!(matches!(wrong, Err(AuthError::Unavailable { .. })), "{wrong:?}");
}

#[tokio::test]
async fn the_first_fetch_is_not_repeated_for_a_key_it_lacks() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, _) = jwks(&issuer);
    assert_eq!(verify(&jwks, "unknown").await, UNKNOWN);
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_rotation_is_picked_up_at_once() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    verify(&jwks, "a").await.unwrap();

    issuer.set(&["b"]);
    // Requests during the fetch wait for it.
    let all = futures_util::future::join_all((0..20).map(|_| verify(&jwks, "b"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(issuer.fetches(), 2);

    clock.advance(UNKNOWN_KEY_INTERVAL);
    assert_eq!(verify(&jwks, "a").await, UNKNOWN);
    assert_eq!(verify(&jwks, "a").await, UNKNOWN);
    assert_eq!(issuer.fetches(), 3);
}

#[tokio::test]
async fn the_last_good_set_stays_in_use_while_the_endpoint_is_down() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    verify(&jwks, "a").await.unwrap();

    issuer.fail();
    for _ in 0..3 {
        clock.advance(Duration::from_secs(3600));
        verify(&jwks, "a").await.unwrap();
        tokio::task::yield_now().await;
    }

    // A key that could only be in a newer set cannot be verified.
    let result = verify(&jwks, "b").await;
    assert!(matches!(result, Err(AuthError::Unavailable { .. })), "{result:?}");
}

#[tokio::test]
async fn known_keys_do_not_wait_for_an_endpoint_that_hangs() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    verify(&jwks, "a").await.unwrap();

    issuer.gate.forget_permits(1000);
    clock.advance(Duration::from_secs(3600));
    for _ in 0..3 {
        verify(&jwks, "a").await.unwrap();
        tokio::task::yield_now().await;
    }

    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn without_any_set_nothing_is_verified_and_fetches_back_off() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    issuer.fail();

    for _ in 0..10 {
        let result = verify(&jwks, "a").await;
        assert!(matches!(result, Err(AuthError::Unavailable { .. })), "{result:?}");
    }
    assert_eq!(issuer.fetches(), 1);

    issuer.set(&["a"]);
    clock.advance(BACKOFF);
    verify(&jwks, "a").await.unwrap();
}

#[tokio::test]
async fn an_old_set_is_refreshed_in_the_background() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, clock) = jwks(&issuer);
    verify(&jwks, "a").await.unwrap();

    issuer.set(&["b"]);
    clock.advance(MAX_AGE);
    // The withdrawn key works for one more request, which starts the fetch.
    verify(&jwks, "a").await.unwrap();

    let fetch = jwks.keys.in_progress();
    if let Some(fetch) = fetch {
        fetch.await;
    }
    assert_eq!(verify(&jwks, "a").await, UNKNOWN);
}

#[tokio::test]
async fn a_cancelled_request_does_not_cancel_the_fetch() {
    let issuer = Issuer::new(&["a"]);
    let (jwks, _) = jwks(&issuer);
    issuer.gate.forget_permits(1000);

    let waiting = tokio::spawn({
        let jwks = Arc::clone(&jwks);
        async move { verify(&jwks, "a").await }
    });
    while issuer.fetches() == 0 {
        tokio::task::yield_now().await;
    }

    waiting.abort();
    let _ = waiting.await;

    issuer.gate.add_permits(1000);
    verify(&jwks, "a").await.unwrap();
    assert_eq!(issuer.fetches(), 1);
}
