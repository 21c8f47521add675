//! The page in Chromium, in a host on the SDK's `AppBridge`: `tests/browser`.

use std::{fmt::Write, path::Path, process::Stdio, time::Duration};

use serde_json::json;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use super::server;
use crate::support::{Modern, Server};

/// The program of Debian's package.
const CHROMIUM: &str = "/usr/bin/chromium";

/// An unoptimised build sorts a million rows in it, several times.
const DEADLINE: Duration = Duration::from_secs(300);

/// The size of a large JSON value, in MB. An unoptimised build stores it too slowly in its full size.
const JSON_MB: usize = if cfg!(debug_assertions) { 20 } else { 100 };

/// Runs a scenario, which fails by what it prints.
async fn run(scenario: &str, server: &Server) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let mut command = Command::new("node");
    command.arg(package.join("run.mjs")).arg(scenario).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let given = json!({
        "url": server.url,
        "chromium": CHROMIUM,
        "screenshots": std::env::var("SCREENSHOTS").ok(),
        "json_mb": JSON_MB,
    });
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(given.to_string().as_bytes()).await.unwrap();
    drop(stdin);
    let output = timeout(DEADLINE, child.wait_with_output()).await.expect(scenario).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {stderr}");
    // What was measured: `make browser-test` shows it.
    print!("{}", String::from_utf8_lossy(&output.stdout));
}

async fn passes(scenario: &str) {
    run(scenario, &server(|_| {}).await).await;
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn every_message_fits_the_specification_under_strict_policies() {
    passes("protocol").await;
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn a_log_is_searched_by_regular_expression() {
    passes("log").await;
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn the_page_is_used_by_keyboard_and_read_by_screen_readers() {
    passes("access").await;
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn fifty_pages_are_drawn_without_a_worker() {
    passes("pdf").await;
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn nothing_of_the_content_runs() {
    passes("hostile").await;
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn every_state_has_a_picture() {
    passes("looks").await;
}

/// A server that takes large content in one request.
async fn large() -> Server {
    server(|config| {
        let limits = &mut config.limits;
        limits.body_bytes = 256 << 20;
        limits.caller_body_bytes = 1 << 30;
        limits.total_body_bytes = 1 << 30;
        config.compute.search_seconds = 120;
    })
    .await
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn a_million_rows_are_sorted_and_filtered() {
    let server = large().await;
    let mut csv = "id,key,n\n".to_owned();
    for id in 1..=1_000_000_u64 {
        // Another order than that of the rows; each key once.
        writeln!(csv, "{id},k{:07},{}", (id * 7_919) % 1_000_000, id % 97).unwrap();
    }
    let stored =
        json!({ "uri": "big:rows", "text": csv, "mime_type": "text/csv", "name": "rows.csv" });
    Modern::of(&server).create(stored).await;
    run("table", &server).await;
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn a_large_json_value_is_read_as_it_is_opened() {
    let server = large().await;
    let items: Vec<_> =
        (0..JSON_MB * 1000).map(|id| json!({ "id": id, "text": "x".repeat(976) })).collect();
    let text = json!({ "meta": { "name": "large" }, "items": items }).to_string();
    let stored = json!({ "uri": "big:tree", "text": text, "mime_type": "application/json", "name": "tree.json" });
    Modern::of(&server).create(stored).await;
    run("tree", &server).await;
}
