//! The endpoint served alone, which bypasses the router, and mounted in another router:
//! both refuse the same requests and survive a panic.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::get};
use larder::{
    app::App,
    clock::{Clock, SystemClock, Timestamp},
    random::Random,
};
use reqwest::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Modern, ToolControl, http, patient_config, registry};

/// A clock that panics once it is broken.
#[derive(Debug, Clone, Default)]
struct Fragile(Arc<AtomicBool>);

#[async_trait::async_trait]
impl Clock for Fragile {
    fn now(&self) -> Timestamp {
        assert!(!self.0.load(Ordering::Relaxed), "the clock is broken");
        SystemClock.now()
    }

    async fn sleep_until(&self, at: Timestamp) {
        SystemClock.sleep_until(at).await;
    }
}

/// The URL of a server, and the clock that breaks it.
async fn served(mounted: bool) -> (String, Fragile) {
    let clock = Fragile::default();
    let registry = registry(&ToolControl::new(), 100);
    let time = Arc::new(clock.clone());
    let mut app = App::with(registry, patient_config(), time, Random::system()).unwrap();
    app.http().promote_after = Duration::from_secs(3600);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    if mounted {
        let router = Router::new().route("/own", get("mine")).merge(app.router());
        tokio::spawn(async move {
            let _app = app;
            axum::serve(listener, router).await
        });
    } else {
        tokio::spawn(app.serve(listener, std::future::pending()));
    }
    (url, clock)
}

#[tokio::test]
async fn both_ways_accept_the_same_requests() {
    for mounted in [false, true] {
        let (url, _clock) = served(mounted).await;
        let client = Modern::at(&url);
        assert_eq!(client.call("echo", json!({ "text": "here" })).await.text(), "here");

        let elsewhere = http().post(url.replace("/mcp", "/mcp/more")).send().await.unwrap();
        assert_eq!(elsewhere.status(), StatusCode::NOT_FOUND, "{mounted}");
        assert!(elsewhere.headers().contains_key("x-request-id"), "{mounted}");
        let stranger = http().post(&url).header("host", "evil.example.com").send().await.unwrap();
        assert_eq!(stranger.status(), StatusCode::FORBIDDEN, "{mounted}");
        assert!(stranger.headers().contains_key("x-request-id"), "{mounted}");

        let own = http().get(url.replace("/mcp", "/own")).send().await.unwrap().status();
        assert_eq!(own == StatusCode::OK, mounted);
    }
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_request_only() {
    for mounted in [false, true] {
        let (url, clock) = served(mounted).await;
        let client = Modern::at(&url);
        let uri = client.create(json!({ "uri": "larder://r/a", "text": "kept" })).await;
        clock.0.store(true, Ordering::Relaxed);
        let broken = client.send("resources/read", json!({ "uri": uri })).await;
        assert_eq!(broken.refusal(), (500, -32603, None), "{mounted}");
        assert!(broken.header("x-request-id").is_some(), "{mounted}");
        assert!(!broken.json().to_string().contains("clock"), "{mounted}");
        clock.0.store(false, Ordering::Relaxed);
        assert_eq!(client.read(&uri).await["text"], "kept", "{mounted}");
    }
}
