//! What a search may cost: hard regular expressions delay nobody else.

use larder::config::{AuthMode, TokenConfig};
use serde_json::{Value, json};

use crate::support::{Modern, Server, process::serving_in, sha256};

/// It has no literal to look for, and thousands of states in each character.
const HARD: &str = "a[ab]{4000}[c-z]";

/// Lines on which [`HARD`] takes minutes.
fn hard_text() -> String {
    let line = "ab".repeat(5_000) + "\n";
    line.repeat(200)
}

fn hard_search() -> Value {
    json!({ "uri": "t://hard", "query": HARD })
}

fn token(name: &str) -> TokenConfig {
    let (scopes, groups) = (Vec::new(), Vec::new());
    TokenConfig { name: name.into(), sha256: sha256(name), scopes, groups, expires: None }
}

#[tokio::test]
async fn a_storm_of_hard_searches_does_not_delay_another_owner() {
    let server = Server::configured(|setup| {
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = vec![token("storm"), token("other")];
    })
    .await;
    let (storm, other) = (Modern::bearing(&server, "storm"), Modern::bearing(&server, "other"));
    storm.create(json!({ "uri": "t://hard", "text": hard_text() })).await;
    other.create(json!({ "uri": "t://easy", "text": "one\ntwo\n" })).await;
    let searches: Vec<_> = (0..12)
        .map(|_| {
            let storm = storm.clone();
            tokio::spawn(async move { storm.call("search_resource", hard_search()).await })
        })
        .collect();
    let compiles = json!({ "uri": "t://hard", "query": r"(\pL{1,60}){1,60}" });
    let refused = other.call("search_resource", compiles.clone()).await.failure();
    assert!(refused.contains("not found"), "{refused}");
    for _ in 0..3 {
        let found = other.call("search_resource", json!({ "uri": "t://easy", "query": "two" }));
        assert!(found.await.text().contains("2: two"));
        let found = other.call("search_resources", json!({ "query": "two" })).await.text();
        assert!(found.starts_with("1 stored resource has"), "{found}");
    }
    assert!(searches.iter().all(|search| !search.is_finished()), "none waited for the storm");
    // Who leaves gives the slots back.
    searches.iter().for_each(tokio::task::JoinHandle::abort);
    let easy = json!({ "uri": "t://hard", "query": "^b" });
    assert!(storm.call("search_resource", easy).await.text().starts_with("No line"));
    let refused = storm.call("search_resource", compiles).await.failure();
    assert!(refused.contains("size limit of 2097152"), "{refused}");
}

#[tokio::test]
async fn a_search_ends_at_its_deadline_and_says_so() {
    let environment = [("LARDER_COMPUTE__SEARCH_SECONDS", "1")];
    let (_process, url) = serving_in(&[], &environment).await;
    let client = Modern::at(&url);
    client.create(json!({ "uri": "t://hard", "text": hard_text() })).await;
    let refused = client.call("search_resource", hard_search()).await.failure();
    assert!(refused.contains("(compute.search_seconds)"), "{refused}");
    assert!(refused.contains(r#"read_resource {"uri":"t://hard"}"#), "{refused}");
}

#[tokio::test]
async fn searches_that_were_stopped_within_a_line_use_no_thread_any_more() {
    let environment = [("LARDER_COMPUTE__SEARCH_SECONDS", "6"), ("LARDER_COMPUTE__THREADS", "2")];
    let (_process, url) = serving_in(&[], &environment).await;
    let client = Modern::at(&url);
    client.create(json!({ "uri": "t://line", "text": "ab".repeat(128 << 10) })).await;

    let hard = json!({ "uri": "t://line", "query": "[ab]*a[ab]{20000}c" });
    let searches = (0..4).map(|_| client.call("search_resource", hard.clone()));
    for stopped in futures_util::future::join_all(searches).await {
        let refused = stopped.failure();
        assert!(refused.contains("(compute.search_seconds)"), "{refused}");
    }

    // A search that still ran would use the owner's only thread for minutes.
    let easy = json!({ "uri": "t://line", "query": "^b" });
    assert!(client.call("search_resource", easy).await.text().starts_with("No line"));
}

#[tokio::test]
async fn a_query_is_no_longer_than_4_kib() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "t://a", "text": "a\n" })).await;
    let arguments = |tool: &str, bytes: usize| match tool {
        "search_resource" => json!({ "uri": "t://a", "query": "a".repeat(bytes) }),
        _ => json!({ "query": "a".repeat(bytes) }),
    };
    for tool in ["search_resource", "search_resources"] {
        client.call(tool, arguments(tool, 4096)).await.text();
        let refused = client.call(tool, arguments(tool, 4097)).await.failure();
        assert!(refused.contains("4097 bytes; at most 4096"), "{refused}");
    }
}
