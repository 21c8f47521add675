//! The traffic that operators see at the console.

use std::time::Duration;

use larder::{Context, Spill, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Browser, offered, said, settings};
use crate::support::{Answer, Modern, Server, http, poll};

/// Writes a long report.
#[derive(Deserialize, JsonSchema)]
struct Report {
    /// How many lines.
    lines: usize,
}

/// Waits until the client cancels.
#[derive(Deserialize, JsonSchema)]
struct Wait {}

/// The time between two samples.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// A server whose operator is anna.
pub(super) async fn server() -> (Server, Browser) {
    let server = Server::configured(|setup| {
        settings(&mut setup.config);
        setup.config.auth.tokens[0].scopes = vec!["larder:admin".into()];
        setup.offer(|builder| {
            let report = Tool::new(|_: Context<_>, report: Report| async move {
                "a line of the report\n".repeat(report.lines)
            });
            let wait = Tool::new(|_: Context<_>, Wait {}: Wait| std::future::pending::<String>());
            offered(builder).tool(report.spill(Spill::Always)).tool(wait)
        });
    })
    .await;
    let anna = Browser::logged_in(&server, "anna").await;
    (server, anna)
}

async fn traffic(browser: &Browser) -> Value {
    Answer::of(browser.get("traffic")).await.json()
}

/// The traffic when it has so many samples.
pub(super) async fn sampled(browser: &Browser, count: usize) -> Value {
    poll("a sample", async || {
        let found = traffic(browser).await;
        (found["samples"].as_array()?.len() == count).then_some(found)
    })
    .await
}

#[tokio::test]
async fn calls_errors_and_bytes_are_counted_exactly_and_sampled() {
    let (server, anna) = server().await;
    let ben = Modern::bearing(&server, "ben");
    let fresh = sampled(&anna, 1).await;
    let zero = json!({
        "time": fresh["started"], "calls": 0, "errors": 0, "returned_bytes": 0,
        "kept_out_bytes": 0, "running": 0, "streams": 0,
    });
    assert_eq!((&fresh["samples"], &fresh["now"]), (&json!([zero]), &zero));

    let params = json!({ "name": "report", "arguments": { "lines": 5_000 } });
    let answer = ben.send("tools/call", params.clone()).await;
    let refused = ben.call("nothing", json!({})).await;
    assert!(refused.json()["error"].is_object(), "{refused:?}");
    let stored = "a line of the report\n".len() * 5_000;
    let sent = Modern::body(&json!(1), "tools/call", params)["params"].to_string().len();
    let mut result = answer.result();
    // Added when the response is encoded.
    result.as_object_mut().unwrap().remove("_meta");
    let kept_out = stored - sent - result.to_string().len();
    assert!(kept_out > 100_000, "{kept_out}");
    let now = traffic(&anna).await["now"].take();
    let mut expected = json!({
        "time": zero["time"], "calls": 2, "errors": 1, "returned_bytes": answer.body.len(),
        "kept_out_bytes": kept_out, "running": 0, "streams": 0,
    });
    assert_eq!(now, expected);

    server.clock.advance(INTERVAL);
    let found = sampled(&anna, 2).await;
    let later = found["started"].as_u64().unwrap() + 10_000;
    assert_eq!(found["samples"][0], zero);
    expected["time"] = later.into();
    assert_eq!(found["samples"][1], expected);
    server.clock.advance(INTERVAL);
    assert_eq!(sampled(&anna, 3).await["samples"][2]["time"], later + 10_000);
}

#[tokio::test]
async fn what_people_see_is_not_counted_and_files_are() {
    let (server, anna) = server().await;
    let ben = Modern::bearing(&server, "ben");
    let shows = json!({ "mimeTypes": ["text/html;profile=mcp-app"] });
    let able = json!({ "extensions": { "io.modelcontextprotocol/ui": shows } });
    let page = Modern::bearing(&server, "anna").with(able);
    let counts = async || {
        let now = traffic(&anna).await["now"].take();
        ["calls", "errors", "returned_bytes", "kept_out_bytes"]
            .map(|name| now[name].as_u64().unwrap())
    };

    // By the console, also what it stores and what fails.
    let text = "a line\n".repeat(20_000);
    anna.call("create_resource", json!({ "uri": "x:own", "text": text })).await;
    anna.call("view_window", json!({ "uri": "x:own", "as": "log" })).await;
    anna.call("nothing", json!({})).await;
    assert_eq!(counts().await, [0, 0, 0, 0]);
    // By a page of MCP Apps: its tools are for people only.
    page.call("view_window", json!({ "uri": "x:own", "as": "log" })).await.result();
    page.call("view_bytes", json!({ "uri": "x:own", "length": 1000 })).await.result();
    assert_eq!(counts().await, [0, 0, 0, 0]);

    // A program sends a file past the model, at once and in parts.
    let url = format!("http://{}/resources?uri=x:file", server.address);
    let put = http().put(url).bearer_auth("ben").body("0123456789".repeat(1_000));
    assert_eq!(Answer::of(put).await.status, 201);
    assert_eq!(counts().await, [0, 0, 0, 10_000]);

    ben.call("report", json!({ "lines": 5_000 })).await.result();
    let found = traffic(&anna).await;
    let callers = json!([["static \"ben\"", 1, 0]]);
    let named = found["callers"].as_array().unwrap().iter();
    let named = named.map(|caller| json!([caller["name"], caller["calls"], caller["errors"]]));
    assert_eq!(named.collect::<Value>(), callers, "who only looks is in none of the numbers");
    assert_eq!(found["others"]["calls"], 0);
    let [calls, errors, returned, kept_out] = counts().await;
    assert_eq!((calls, errors), (1, 0));
    assert!(returned > 0 && kept_out > 100_000, "{returned} {kept_out}");
}

#[tokio::test]
async fn calls_and_streams_in_progress_are_counted_until_their_client_leaves() {
    let (server, anna) = server().await;
    let ben = Modern::bearing(&server, "ben");
    let events = ben.listen(1, json!({ "resourcesListChanged": true })).await;
    let waiting = tokio::spawn(async move { ben.call("wait", json!({})).await });
    let counted = async |running: u64, streams: u64| {
        poll("the counts", async || {
            let now = traffic(&anna).await["now"].take();
            (now["running"] == running && now["streams"] == streams).then_some(now)
        })
        .await
    };
    assert_eq!(counted(1, 1).await["calls"], 0);
    drop(events);
    waiting.abort();
    let left = counted(0, 0).await;
    assert_eq!((&left["calls"], &left["errors"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn only_an_operator_sees_the_traffic() {
    let (server, anna) = server().await;
    let ben = Browser::logged_in(&server, "ben").await;
    let refused = Answer::of(ben.get("traffic")).await;
    assert_eq!(refused.status, 403);
    assert!(said(&refused).contains("larder:admin"), "{refused:?}");
    assert_eq!(Answer::of(Browser::of(&server).get("traffic")).await.status, 401);
    let elsewhere = anna.get("traffic").header("sec-fetch-site", "cross-site");
    assert_eq!(Answer::of(elsewhere).await.status, 403);
}
