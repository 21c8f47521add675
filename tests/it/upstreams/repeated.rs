//! `_larder: {each: […]}`: the arguments that it takes, and the values that it keeps.

use std::sync::Arc;

use larder::{Context, Registry, Spill, Tool, upstream::Settings};
use parking_lot::Mutex;
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use super::{
    meaning::answering,
    projections::{body, exactly, in_front_of, projecting},
    text, uri_in,
};
use crate::support::{Legacy, Server};

const PRICE: &str = "{\"price\": 19.90,\n \"id\": 12345678901234567890123}";

/// A server with a tool that gives a price, and the arguments that it has seen.
async fn shop() -> (Settings, Arc<Mutex<Vec<Value>>>) {
    let seen = Arc::<Mutex<Vec<Value>>>::default();
    let record = Arc::clone(&seen);
    let hints = json!({ "readOnlyHint": true });
    let listed = json!([
        { "name": "price", "inputSchema": { "type": "object" }, "annotations": hints },
        { "name": "list", "inputSchema": { "type": "object" }, "annotations": hints },
    ]);
    let upstream = answering("far", move |method, params| match method {
        "tools/list" => Some(json!({ "tools": listed })),
        "tools/call" => {
            record.lock().push(params["arguments"].clone());
            let list = "{\"items\": [1, 2], \"has_more\": true}";
            let text = if params["name"] == "list" { list } else { PRICE };
            Some(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => None,
    });
    (upstream.await, seen)
}

#[tokio::test]
async fn arguments_that_would_change_or_choose_calls_are_refused_before_the_first_call() {
    let (upstream, seen) = shop().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let nested =
        "{\"a\": 1, \"_larder\": {\"each\": [{}], \"sql\": \"SELECT 1\", \"into\": \"x:w\"}}\n";
    client
        .create(json!({ "uri": "x:nested", "text": nested, "mime_type": "application/x-ndjson" }))
        .await;
    client.create(json!({ "uri": "x:prices", "text": "[{\"a\": 1.10}]", "mime_type": "application/json" })).await;
    client
        .create(json!({ "uri": "x:numbers", "text": "[1, 2]", "mime_type": "application/json" }))
        .await;

    for (each, said) in [
        (json!([{}, { "_larder": { "each": [{}] } }]), "each[1] has _larder"),
        (json!("x:nested"), "each[0] has _larder"),
        (json!("[{\"a\": 1.10}]"), "would change"),
        (json!("x:prices"), "would change"),
        (json!("x:numbers"), "are not objects"),
    ] {
        let refused = client.call("price", json!({ "_larder": { "each": each } })).await.failure();
        assert!(refused.starts_with("price was not called: _larder: "), "{refused}");
        assert!(refused.contains(said), "{said}: {refused}");
    }
    for arguments in [
        r#"{"a":1.10,"_larder":{"each":[{}]}}"#,
        r#"{"_larder":{"each":[{"a":12345678901234567890123}]}}"#,
        r#"{"a":1.10,"_larder":{"pages":2}}"#,
    ] {
        let refused = exactly(&client, "price", arguments).await.failure();
        assert!(refused.contains("would change"), "{refused}");
    }
    assert!(seen.lock().is_empty(), "{seen:?}");
    let none = client.call("read_resource", json!({ "uri": "x:w" })).await.failure();
    assert!(none.contains("not found"), "{none}");
}

#[tokio::test]
async fn records_of_json_are_arguments_as_they_are_and_values_keep_their_numbers() {
    let (upstream, seen) = shop().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let record = json!({ "on": true, "tags": ["a", "{{x:b}}"], "deep": { "n": [1] } });
    let lines = format!("{record}\n{record}\n");
    let given = [
        (json!([record, record]).to_string(), "application/json", 2),
        (json!({ "items": [record] }).to_string(), "application/json", 1),
        (lines, "application/x-ndjson", 2),
    ];

    for (index, (text_of, mime_type, calls)) in given.into_iter().enumerate() {
        let uri = format!("x:records-{index}");
        client.create(json!({ "uri": uri, "text": text_of, "mime_type": mime_type })).await;
        seen.lock().clear();
        let result = client.call("price", json!({ "_larder": { "each": uri } })).await.result();
        assert_eq!(*seen.lock(), vec![record.clone(); calls], "{mime_type}");
        let table = client.call("read_resource", json!({ "uri": uri_in(text(&result)) })).await;
        let kept = "\"value\":{\"price\": 19.90, \"id\": 12345678901234567890123}}";
        assert!(table.text().contains(kept), "{result}");
    }

    let asked = json!({ "_larder": { "each": [{}, {}], "jq": ".value.items | length" } });
    let lists = client.call("list", asked).await.result();
    let told = "of 2 the server did not send all (the first is record 0: \"has_more\" is true)";
    assert!(text(&lists).contains(told) && body(&lists) == "2\n2", "{lists}");
}

#[tokio::test]
async fn references_in_given_arguments_are_resolved_for_each_call() {
    let (upstream, seen) = shop().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:secret", "text": "a secret" })).await;
    client.create(json!({ "uri": "x:lure", "text": "see {{x:secret}}" })).await;
    client
        .create(json!({ "uri": "x:people", "text": "[{\"name\": \"Ada\"}]", "mime_type": "application/json" }))
        .await;

    let each = json!([
        { "a": "{{x:secret}}", "n": 1 },
        { "a": { "$larder": "x:people", "select": "/0/name" }, "n": 2 },
        { "a": "{{x:none}}", "n": 3 },
        { "a": "{{x:lure}}", "n": 4 },
    ]);
    let asked = json!({ "common": "{{x:lure}}", "_larder": { "each": each, "jq": ".ok" } });
    let result = client.call("price", asked).await.result();
    assert_eq!(body(&result), "true\ntrue\nfalse\ntrue", "{result}");
    let said = text(&result);
    assert!(said.contains("3 ok, 1 failed (the first is record 2: "), "{said}");
    assert!(said.contains("arguments.a: Resource not found: x:none"), "{said}");

    let mut got = seen.lock().clone();
    got.sort_by_key(|arguments| arguments["n"].as_u64());
    // The content of a reference is not searched for references.
    let lure = "see {{x:secret}}";
    let with = |a: &str, n: u64| json!({ "common": lure, "a": a, "n": n });
    assert_eq!(got, [with("a secret", 1), with("Ada", 2), with(lure, 4)]);
}

#[tokio::test]
async fn content_chooses_no_part_of_results() {
    let (upstream, seen) = shop().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    let choosing = json!({ "_larder": { "jq": ".", "into": "x:written" } });
    client
        .create(json!({ "uri": "x:choosing", "text": choosing.to_string(), "mime_type": "application/json" }))
        .await;

    let of_each = json!({ "_larder": { "each": [{ "$larder": "x:choosing", "as": "json" }] } });
    let each = client.call("price", of_each).await.result();
    assert!(text(&each).contains("0 ok, 1 failed"), "{each}");
    assert!(text(&each).contains("the content of a reference has _larder"), "{each}");

    let of_all = json!({ "$larder": "x:choosing", "as": "json", "_larder": { "each": [{}] } });
    let all = client.call("price", of_all).await.failure();
    assert!(all.starts_with("price was not called: "), "{all}");
    assert!(seen.lock().is_empty(), "{seen:?}");
    let none = client.call("read_resource", json!({ "uri": "x:written" })).await.failure();
    assert!(none.contains("not found"), "{none}");
}

#[tokio::test]
async fn what_looks_like_a_reference_in_content_is_never_resolved() {
    let (upstream, seen) = shop().await;
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:secret", "text": "a secret" })).await;
    let record = json!({ "a": "{{x:secret}}", "b": { "$larder": "x:secret" } });
    for (uri, text) in
        [("x:record", json!([record]).to_string()), ("x:whole", "{{x:secret}}".to_owned())]
    {
        // An argument that is a reference as a whole would be resolved itself.
        client.create(json!({ "uri": uri, "text": format!("-{text}") })).await;
        let edits = json!([{ "old": "-", "new": "" }]);
        client.call("update_resource", json!({ "uri": uri, "edits": edits })).await.result();
    }

    client.call("price", json!({ "_larder": { "each": "x:record" } })).await.result();
    let by_each = json!({ "a": "{{x:whole}}", "_larder": { "each": [{ "n": 1 }] } });
    client.call("price", by_each).await.result();
    let by_input = json!({ "_larder": { "each": [{ "a": "{{x:whole}}" }] } });
    client.call("price", by_input).await.result();

    let got = seen.lock().clone();
    assert_eq!(got[0], record);
    assert!(!json!(got).to_string().contains("a secret"), "{got:?}");
    assert_eq!((&got[1]["a"], &got[2]["a"]), (&json!("{{x:secret}}"), &json!("{{x:secret}}")));
}

#[tokio::test]
async fn results_that_are_never_stored_have_no_parts() {
    let (mut upstream, seen) = shop().await;
    upstream.spill = [("price".to_owned(), Spill::Never)].into();
    let server = in_front_of(upstream).await;
    let client = Legacy::of(&server).await;
    for larder in [json!({ "jq": ".price" }), json!({ "each": [{}] }), json!({ "pages": 2 })] {
        let refused = client.call("price", json!({ "_larder": larder })).await.failure();
        assert!(refused.contains("upstreams.spill"), "{refused}");
    }
    assert!(seen.lock().is_empty());
    let whole = client.call("price", json!({ "_larder": { "whole": true } })).await.result();
    assert_eq!(text(&whole), PRICE);
}

/// A number.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Numbered {
    /// The number.
    n: u64,
}

#[tokio::test]
async fn calls_that_do_not_end_in_time_are_records_of_the_table() {
    let number = |_: Context, args: Numbered| async move {
        if args.n == 3 {
            std::future::pending::<()>().await;
        }
        args.n.to_string()
    };
    let server = Server::configured(|setup| {
        setup.config.limits.call_timeout = 8;
        setup.offers = Box::new(move |_, _| {
            let hints = ToolAnnotations::new().read_only(true);
            let tool = Tool::new(number).name("number").annotations(hints).projectable();
            projecting(Registry::builder("mine")).tool(tool).build().unwrap()
        });
    });
    let server = server.await;
    let client = Legacy::of(&server).await;

    let each: Vec<_> = (1..=3).map(|n| json!({ "n": n })).collect();
    let larder = json!({ "each": each, "sql": "SELECT count(*) AS n, sum(ok) AS ok FROM t" });
    let result = client.call("number", json!({ "n": 0, "_larder": larder })).await.result();
    let said = text(&result);
    assert!(
        said.starts_with("3 calls of number: 2 ok, 1 failed (the first is record 2: "),
        "{said}"
    );
    assert!(said.contains("0 of them were not called, 1 did not end"), "{said}");
    assert_eq!(body(&result), "n,ok\n3,2", "{result}");
}
