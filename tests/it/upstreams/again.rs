//! Results that a caller has had before, and results of which the server has left something out.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{meaning::answering, projections::in_front_of, text, uri_in};
use crate::support::{Legacy, Modern};

/// A snapshot of a page, in which `changed` lines are new.
fn page(changed: u64) -> String {
    let line = |n: u64| {
        let word = if n < changed { "new" } else { "old" };
        format!("- link \"{word} entry {n}\" [ref=e{n}]\n")
    };
    (0..200).map(line).collect()
}

/// A browser and a table, whose state is a number; with a counter of calls.
async fn changing(state: Arc<AtomicU64>, calls: Arc<AtomicU64>) -> Settings {
    let schema = json!({ "type": "object" });
    let listed = json!([
        { "name": "snapshot", "inputSchema": schema },
        { "name": "rows", "inputSchema": schema, "outputSchema": { "type": "object", "required": ["rows"] } },
        { "name": "small", "inputSchema": schema },
    ]);
    let mut upstream = answering("far", move |method, params| match method {
        "tools/list" => Some(json!({ "tools": listed })),
        "tools/call" => {
            calls.fetch_add(1, Ordering::SeqCst);
            let now = state.load(Ordering::SeqCst);
            let rows: Vec<_> =
                (0..100).map(|id| json!({ "id": id, "n": u64::from(id == 7) * now })).collect();
            Some(match params["name"].as_str().unwrap() {
                "snapshot" => json!({ "content": [{ "type": "text", "text": page(now) }] }),
                "rows" => json!({
                    "content": [{ "type": "text", "text": json!({ "rows": rows }).to_string() }],
                    "structuredContent": { "rows": rows },
                }),
                _ => json!({ "content": [{ "type": "text", "text": "ok" }] }),
            })
        }
        _ => None,
    })
    .await;
    upstream.unchanged = true;
    upstream
}

#[tokio::test]
async fn an_unchanged_result_is_a_line_and_a_changed_one_its_changes() {
    let (state, calls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let server = in_front_of(changing(Arc::clone(&state), Arc::clone(&calls)).await).await;
    let client = Legacy::of(&server).await;
    let snapshot = async || client.call("snapshot", json!({ "a": 1, "b": 2 })).await.result();

    assert_eq!(text(&snapshot().await), page(0));
    let again = client.call("snapshot", json!({ "b": 2, "a": 1 })).await.result();
    let line = text(&again).to_owned();
    assert!(line.starts_with("unchanged since ") && line.len() < 120, "{line}");
    let uri = uri_in(&line);
    let read = client.send("resources/read", json!({ "uri": uri })).await.result();
    assert_eq!(read["contents"][0]["text"], page(0));

    state.store(2, Ordering::SeqCst);
    let changed = snapshot().await;
    let said = text(&changed);
    assert!(said.starts_with("Changed since ") && said.len() < 700, "{said}");
    for part in ["-- link \"old entry 0\"", "+- link \"new entry 1\"", &*uri] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let now = said.lines().find(|line| line.starts_with("larder://")).unwrap();
    let read = client.send("resources/read", json!({ "uri": now })).await.result();
    assert_eq!(read["contents"][0]["text"], page(2));

    // Much has changed.
    state.store(200, Ordering::SeqCst);
    assert_eq!(text(&snapshot().await), page(200));
    // The tool has run each time, and each copy is stored once.
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    let stored = client.send("resources/list", json!({})).await.result();
    assert_eq!(stored["resources"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn other_arguments_sessions_and_projections_are_other_results() {
    let (state, calls) = (Arc::new(AtomicU64::new(0)), Arc::default());
    let server = in_front_of(changing(Arc::clone(&state), calls).await).await;
    let client = Legacy::of(&server).await;
    let other = Legacy::of(&server).await;

    for arguments in [json!({}), json!({ "a": 1 }), json!({ "a": "1" })] {
        let first = client.call("snapshot", arguments.clone()).await.result();
        assert_eq!(text(&first), page(0), "{arguments}");
    }
    assert_eq!(text(&other.call("snapshot", json!({})).await.result()), page(0));
    let head = json!({ "_larder": { "head": 1 } });
    for _ in 0..2 {
        let projected = client.call("snapshot", head.clone()).await.result();
        assert!(
            text(&projected).contains("old entry 0") && !text(&projected).contains("entry 1\"")
        );
    }
    for _ in 0..2 {
        assert_eq!(text(&client.call("small", json!({})).await.result()), "ok");
    }
}

#[tokio::test]
async fn changes_of_json_are_told_by_pointers_and_fit_the_schema() {
    let (state, calls) = (Arc::new(AtomicU64::new(1)), Arc::default());
    let server = in_front_of(changing(Arc::clone(&state), calls).await).await;
    let client = Modern::of(&server);
    let first = client.call("rows", json!({})).await.result();
    assert_eq!(first["structuredContent"]["rows"][7]["n"], 1);

    state.store(5, Ordering::SeqCst);
    let changed = client.call("rows", json!({})).await.result();
    assert!(text(&changed).ends_with("/rows/7/n: 1 -> 5"), "{changed}");
    let same = client.call("rows", json!({})).await.result();
    assert!(text(&same).starts_with("unchanged since "), "{same}");
    assert!(same["structuredContent"]["spilled"].is_object(), "{same}");
}

#[tokio::test]
async fn what_the_server_has_left_out_is_told() {
    let rows: Vec<_> = (0..3_000).map(|id| json!({ "id": id, "name": "a name" })).collect();
    let paged = json!({ "items": rows, "has_more": true }).to_string();
    let whole = json!({ "items": rows, "has_more": false }).to_string();
    let cut = "a line of text\n".repeat(4_000) + "… 512 more items\n";

    let schema = json!({ "type": "object" });
    let upstream = answering("far", move |method, params| match method {
        "tools/list" => Some(json!({ "tools": [{ "name": "get", "inputSchema": schema }] })),
        "tools/call" => {
            let text = match params["arguments"]["what"].as_str().unwrap() {
                "paged" => &paged,
                "whole" => &whole,
                _ => &cut,
            };
            Some(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => None,
    })
    .await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;

    for (what, told) in [
        ("paged", Some("The server did not send all: \"has_more\" is true.")),
        ("cut", Some("The server did not send all: it ends with \"… 512 more items\".")),
        ("whole", None),
    ] {
        for larder in [Value::Null, json!({ "head": 1 })] {
            let asked = json!({ "what": what, "_larder": larder });
            let result = client.call("get", asked).await.result();
            let said = text(&result);
            match told {
                Some(told) => assert!(said.contains(told), "{what} {larder}: {said}"),
                None => assert!(!said.contains("did not send all"), "{said}"),
            }
        }
    }
}
