//! Results that a caller has had before, and results of which the server has left something out.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use larder::{Spill, upstream::Settings};
use serde_json::{Value, json};

use super::{
    meaning::answering,
    projections::{exactly, in_front_of},
    text, uri_in,
};
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
    assert!(line.starts_with("unchanged since ") && line.len() < 160, "{line}");
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

    // A value would keep the same number of all of these.
    for number in ["12345678901234567890123", "12345678901234567890124", "1.10", "1.1"] {
        let arguments = format!("{{\"n\":{number}}}");
        let first = exactly(&client, "snapshot", &arguments).await.result();
        assert_eq!(text(&first), page(0), "{number}");
        let arguments = format!("{{\"_larder\": {{}}, \"n\":{number}}}");
        let again = exactly(&client, "snapshot", &arguments).await.result();
        assert!(text(&again).starts_with("unchanged since "), "{number}: {again}");
    }

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
    let client = Legacy::of(&server).await;
    let first = client.call("rows", json!({})).await.result();
    assert_eq!(first["structuredContent"]["rows"][7]["n"], 1);

    state.store(5, Ordering::SeqCst);
    let changed = client.call("rows", json!({})).await.result();
    assert!(text(&changed).ends_with("/rows/7/n: 1 -> 5"), "{changed}");
    let same = client.call("rows", json!({})).await.result();
    assert!(text(&same).starts_with("unchanged since "), "{same}");
    let spilled = &same["structuredContent"]["spilled"];
    assert_eq!(spilled["resources"][0]["uri"], uri_in(text(&same)), "{same}");
}

/// A server behind this one whose tool `get` answers with what the test sets.
async fn answering_with(result: Arc<Mutex<Value>>) -> Settings {
    let listed = json!([{ "name": "get", "inputSchema": { "type": "object" } }]);
    let mut upstream = answering("far", move |method, _| match method {
        "tools/list" => Some(json!({ "tools": listed })),
        "tools/call" => Some(result.lock().unwrap().clone()),
        _ => None,
    })
    .await;
    upstream.unchanged = true;
    upstream
}

fn of_text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn a_result_that_is_stored_while_it_arrives_is_compared_too() {
    let lines = |n: u64| (0..n).map(|n| format!("{n:0>99}\n")).collect::<Vec<_>>().concat();
    let (long, longer) = (lines(1_000), lines(1_010));
    let result = Arc::new(Mutex::new(of_text(&long)));
    let server = in_front_of(answering_with(Arc::clone(&result)).await).await;
    let client = Legacy::of(&server).await;
    let get = async || client.call("get", json!({})).await.result();
    let read = async |uri: &str| {
        let read = client.send("resources/read", json!({ "uri": uri })).await.result();
        read["contents"][0]["text"].as_str().unwrap_or_default().to_owned()
    };

    let preview = get().await;
    assert!(text(&preview).starts_with("PREVIEW ONLY"), "{preview}");
    for _ in 0..2 {
        let again = get().await;
        assert!(text(&again).starts_with("unchanged since "), "{again}");
        assert_eq!(again["content"].as_array().unwrap().len(), 1, "{again}");
        assert_eq!(read(&uri_in(text(&again))).await, long);
    }

    *result.lock().unwrap() = of_text(&longer);
    let changed = get().await;
    let said = text(&changed);
    assert!(said.starts_with("Changed since ") && said.len() < 3_000, "{said}");
    assert!(said.contains(&format!("+{:0>99}", 1_009)), "{said}");
    let now = said.lines().find(|line| line.starts_with("larder://")).unwrap();
    assert_eq!(read(now).await, longer);

    *result.lock().unwrap() = of_text(&long.replace('0', "1"));
    let preview = get().await;
    let said = text(&preview);
    assert!(said.starts_with("PREVIEW ONLY"), "{said}");
    let remark = format!(" UTC ({now}), much has changed.");
    assert!(said.contains("\nSince ") && said.contains(&remark), "{said}");
}

#[tokio::test]
async fn without_a_session_each_result_is_sent() {
    let (state, calls) = (Arc::new(AtomicU64::new(0)), Arc::default());
    let server = in_front_of(changing(Arc::clone(&state), calls).await).await;
    let client = Modern::of(&server);
    for now in [0, 0, 1] {
        state.store(now, Ordering::SeqCst);
        let result = client.call("snapshot", json!({})).await.result();
        assert_eq!(text(&result), page(now));
        let rows = client.call("rows", json!({})).await.result();
        assert_eq!(rows["structuredContent"]["rows"][7]["n"], now);
    }
}

#[tokio::test]
async fn the_rule_for_storing_a_result_goes_first() {
    for (rule, starts) in [
        (Spill::Never, [page(0), page(0)]),
        (Spill::Always, ["PREVIEW ONLY".into(), "unchanged since ".into()]),
    ] {
        let (state, calls) = (Arc::new(AtomicU64::new(0)), Arc::default());
        let mut upstream = changing(state, calls).await;
        upstream.spill = [("*".to_owned(), rule)].into();
        let server = in_front_of(upstream).await;
        let client = Legacy::of(&server).await;
        for start in starts {
            let result = client.call("snapshot", json!({})).await.result();
            assert!(text(&result).starts_with(&start), "{rule:?}: {result}");
        }
        let stored = client.send("resources/list", json!({})).await.result();
        let stored = stored["resources"].as_array().unwrap().len();
        assert_eq!(stored, usize::from(rule == Spill::Always));
    }
}

#[tokio::test]
async fn links_metadata_and_warnings_are_sent_with_what_is_unchanged() {
    let paged = json!({ "items": "an item ".repeat(100), "has_more": true }).to_string();
    let with = |name: &str, version: u64| {
        json!({
            "content": [
                { "type": "text", "text": paged },
                { "type": "resource_link", "uri": format!("https://example.com/{name}"), "name": name },
            ],
            "_meta": { "example.com/version": version },
        })
    };
    let result = Arc::new(Mutex::new(with("a", 1)));
    let server = in_front_of(answering_with(Arc::clone(&result)).await).await;
    let client = Legacy::of(&server).await;
    let get = async || client.call("get", json!({})).await.result();

    assert_eq!(text(&get().await), paged);
    for (name, version) in [("b", 1), ("b", 2)] {
        *result.lock().unwrap() = with(name, version);
        // The link or the metadata is new.
        assert_eq!(text(&get().await), paged);

        let again = get().await;
        let said = text(&again);
        assert!(said.starts_with("unchanged since "), "{again}");
        assert!(said.ends_with("The server did not send all: \"has_more\" is true."), "{said}");
        assert_eq!(again["content"][1]["name"], name, "{again}");
        assert_eq!(again["_meta"]["example.com/version"], version, "{again}");
    }
}

#[tokio::test]
async fn what_is_unchanged_is_in_a_resource_that_lasts() {
    let (state, calls) = (Arc::new(AtomicU64::new(0)), Arc::default());
    let mut upstream = changing(state, calls).await;
    upstream.ttl = [("snapshot".to_owned(), Duration::from_secs(100))].into();
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let again = async || {
        let result = client.call("snapshot", json!({})).await.result();
        assert!(text(&result).starts_with("unchanged since "), "{result}");
        text(&result).to_owned()
    };

    assert_eq!(text(&client.call("snapshot", json!({})).await.result()), page(0));
    let first = again().await;
    server.clock.advance(Duration::from_secs(40));
    assert_eq!(again().await, first);
    server.clock.advance(Duration::from_secs(40));
    let renewed = again().await;
    assert_ne!(uri_in(&renewed), uri_in(&first));
    server.clock.advance(Duration::from_secs(40));
    let read = client.send("resources/read", json!({ "uri": uri_in(&renewed) })).await.result();
    assert_eq!(read["contents"][0]["text"], page(0));
    assert_eq!(again().await, renewed);
}

#[tokio::test]
async fn a_result_of_another_day_is_told_with_its_date() {
    let (state, calls) = (Arc::new(AtomicU64::new(0)), Arc::default());
    let mut upstream = changing(state, calls).await;
    upstream.ttl = [("snapshot".to_owned(), Duration::from_secs(3 * 86_400))].into();
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let get = async || client.call("snapshot", json!({})).await.result();

    get().await;
    let today = get().await;
    let time = text(&today).split(" UTC").next().unwrap().to_owned();
    assert_eq!(time.len(), "unchanged since 14:02".len(), "{today}");

    // A session that is not used for long ends.
    for _ in 0..96 {
        server.clock.advance(Duration::from_secs(900));
        get().await;
    }
    let later = get().await;
    let day = text(&later).split(" UTC").next().unwrap();
    assert_eq!(day.len(), "unchanged since 2026-11-26 14:02".len(), "{later}");
    assert!(day.ends_with(time.trim_start_matches("unchanged since ")), "{later}");
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
