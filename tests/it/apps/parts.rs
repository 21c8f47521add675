//! `view_resource`, `view_window` and `view_bytes`.

use std::fmt::Write;

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::config::AuthMode;
use serde_json::{Value, json};

use super::{server, showing, token, value};
use crate::support::Modern;

pub(super) async fn store(client: &Modern, uri: &str, mime_type: &str, text: &str) {
    client.create(json!({ "uri": uri, "text": text, "mime_type": mime_type })).await;
}

pub(super) async fn window(client: &Modern, arguments: Value) -> Value {
    value(client, "view_window", arguments).await
}

const ORDERS: &str = "id,customer,total\n1,Ada,10.5\n2,Bob,9\n3,,100\n4,Ada,\n";

#[tokio::test]
async fn content_is_shown_as_what_it_is() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    store(&client, "x:csv", "text/csv", ORDERS).await;
    store(&client, "x:objects", "application/json", r#"{"all":[{"a":1},{"b":"x"}]}"#).await;
    store(&client, "x:json", "application/json", r#"{"a":{"b":[1,2]},"c":null}"#).await;
    store(&client, "x:ndjson", "application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n").await;
    store(&client, "x:log", "text/plain", "one\ntwo\n").await;
    store(&client, "x:svg", "image/svg+xml", "<svg/>").await;
    store(&client, "x:md", "text/markdown; charset=utf-8", "# A\n").await;
    for (uri, shown, views) in [
        ("x:csv", "table", vec!["table", "chart", "log", "diff", "bytes"]),
        ("x:objects", "table", vec!["table", "json", "chart", "log", "diff", "bytes"]),
        ("x:json", "json", vec!["json", "log", "diff", "bytes"]),
        ("x:ndjson", "table", vec!["table", "chart", "log", "diff", "bytes"]),
        ("x:log", "log", vec!["log", "diff", "bytes"]),
        ("x:svg", "image", vec!["image", "log", "diff", "bytes"]),
        ("x:md", "markdown", vec!["markdown", "log", "diff", "bytes"]),
    ] {
        let info = value(&client, "view_resource", json!({ "uri": uri })).await;
        assert_eq!((&info["as"], &info["views"]), (&json!(shown), &json!(views)), "{uri}");
        assert_eq!((&info["uri"], &info["revision"]), (&json!(uri), &json!(1)));
    }
    let binary = json!({ "uri": "x:pdf", "blob": "JVBERi0=", "mime_type": "application/pdf" });
    client.create(binary).await;
    let info = value(&client, "view_resource", json!({ "uri": "x:pdf" })).await;
    assert_eq!(info["as"], "pdf");
    let info = value(&client, "view_resource", json!({ "uri": "x:csv", "as": "log" })).await;
    assert_eq!(info["as"], "log");
    assert_eq!(info["records"]["total"], 4);
    assert_eq!(info["records"]["columns"][2], json!({ "name": "total", "type": "number" }));
    let wrong = client.call("view_resource", json!({ "uri": "x:log", "as": "table" })).await;
    assert!(wrong.failure().contains("leave out as"), "{wrong:?}");
}

#[tokio::test]
async fn the_text_is_complete_for_those_who_see_no_page() {
    let server = server(|_| {}).await;
    let client = Modern::of(&server);
    store(&client, "x:log", "text/plain", "first line\nlast line\n").await;
    let text = client.call("view_resource", json!({ "uri": "x:log" })).await.text();
    for part in ["x:log", "2 lines", "first line", "last line", "read_resource", "shows no pages"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let sees = Modern::able(&server, showing());
    let text = sees.call("view_resource", json!({ "uri": "x:log" })).await.text();
    assert!(text.contains("The person sees all of it."), "{text}");
}

#[tokio::test]
async fn rows_come_in_their_order_sorted_and_filtered() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    store(&client, "x:csv", "text/csv", ORDERS).await;
    let rows = |more: Value| {
        let mut arguments = json!({ "uri": "x:csv", "as": "table", "revision": 1 });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        window(&client, arguments)
    };
    let plain = rows(json!({ "offset": 1, "limit": 2 })).await;
    assert_eq!(plain["rows"], json!([["2", "Bob", "9"], ["3", null, "100"]]));
    assert_eq!((&plain["offset"], &plain["total"]), (&json!(1), &json!(4)));
    let first = |found: &Value| -> Vec<String> {
        let rows = found["rows"].as_array().unwrap().iter();
        rows.map(|row| row[0].as_str().unwrap().to_owned()).collect()
    };
    for (request, ids, total) in [
        (json!({ "sort": { "column": "total" } }), vec!["2", "1", "3", "4"], Some(4)),
        (
            json!({ "sort": { "column": "total", "descending": true }, "offset": 1, "limit": 2 }),
            vec!["1", "2"],
            None,
        ),
        (json!({ "query": "ad" }), vec!["1", "4"], Some(2)),
        (
            json!({ "filter": [{ "column": "total", "op": "greater", "value": "9" }] }),
            vec!["1", "3"],
            Some(2),
        ),
        (json!({ "filter": [{ "column": "customer", "op": "empty" }] }), vec!["3"], Some(1)),
        (
            json!({ "query": "a", "filter": [{ "column": "total", "op": "filled" }] }),
            vec!["1"],
            Some(1),
        ),
        (json!({ "query": "%" }), vec![], Some(0)),
    ] {
        let found = rows(request.clone()).await;
        assert_eq!(first(&found), ids, "{request}: {found}");
        assert_eq!(found.get("total").and_then(Value::as_u64), total, "{request}");
    }
}

#[tokio::test]
async fn a_list_counts_what_is_in_its_folders() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    for uri in ["a://one/1", "a://one/2", "a://two/deep/3", "a://top", "b:4", "b:x/5"] {
        store(&client, uri, "text/plain", "12345").await;
    }
    let listed = async |given: Value| value(&client, "view_list", given).await;
    let prefixes = |found: &Value| -> Vec<(String, u64, u64)> {
        let folders = found["folders"].as_array().cloned().unwrap_or_default();
        let number = |folder: &Value, name: &str| folder[name].as_u64().unwrap();
        let read = |one: Value| {
            let prefix = one["prefix"].as_str().unwrap().to_owned();
            (prefix, number(&one, "resources"), number(&one, "bytes"))
        };
        folders.into_iter().map(read).collect()
    };
    let uris = |found: &Value| -> Vec<String> {
        let listed = found["resources"].as_array().unwrap().iter();
        listed.map(|one| one["uri"].as_str().unwrap().to_owned()).collect()
    };

    let top = listed(json!({ "folders": true })).await;
    assert_eq!(prefixes(&top), [("a://".into(), 4, 20), ("b:x/".into(), 1, 5)]);
    assert_eq!(uris(&top), ["b:4"]);
    let inside = listed(json!({ "folders": true, "prefix": "a://" })).await;
    assert_eq!(prefixes(&inside), [("a://one/".into(), 2, 10), ("a://two/".into(), 1, 5)]);
    assert_eq!(uris(&inside), ["a://top"]);
    let flat = listed(json!({ "prefix": "a://" })).await;
    assert!(flat["folders"].is_null() && uris(&flat).len() == 4, "{flat}");
    let first = listed(json!({ "folders": true, "prefix": "a://one/", "limit": 1 })).await;
    let rest = json!({ "folders": true, "prefix": "a://one/", "limit": 1, "after": first["next"] });
    assert_eq!(
        (uris(&first), uris(&listed(rest).await)),
        (vec!["a://one/1".into()], vec!["a://one/2".into()])
    );
}

#[tokio::test]
async fn a_part_is_at_most_100_kb_and_the_next_one_follows() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let mut csv = "id,text\n".to_owned();
    for id in 0..2_000 {
        writeln!(csv, "{id},{}", "\"\"x".repeat(60)).unwrap();
    }
    store(&client, "x:csv", "text/csv", &csv).await;
    let mut next = 0;
    while next < 2_000 {
        let arguments = json!({ "uri": "x:csv", "as": "table", "offset": next, "limit": 2_000 });
        let answer = client.call("view_window", arguments).await;
        assert!(answer.body.len() <= 100_000, "{}", answer.body.len());
        let rows = answer.result()["structuredContent"]["rows"].take();
        let rows = rows.as_array().unwrap();
        assert_eq!(rows[0][0], next.to_string());
        next += rows.len();
    }
}

#[tokio::test]
async fn a_tree_is_read_level_by_level() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let items: Vec<_> = (0..5_000).map(|n| json!({ "n": n, "text": "x".repeat(100) })).collect();
    let json = json!({ "meta": { "a/b": [1, null] }, "items": items, "last": "ü" });
    store(&client, "x:json", "application/json", &json.to_string()).await;
    let children = |at: &str, offset: u64| {
        window(&client, json!({ "uri": "x:json", "as": "json", "at": at, "offset": offset }))
    };
    let root = children("", 0).await;
    assert_eq!((&root["container"], &root["total"]), (&json!("object"), &json!(3)));
    let of_root = root["children"].as_array().unwrap();
    assert_eq!(of_root[0], json!({ "key": "meta", "value": { "a/b": [1, null] } }));
    assert_eq!((&of_root[1]["key"], &of_root[1]["type"]), (&json!("items"), &json!("list")));
    assert_eq!(of_root[2], json!({ "key": "last", "value": "ü" }));
    let items = children("/items", 4_990).await;
    assert_eq!(items["total"], 5_000);
    assert_eq!(items["children"].as_array().unwrap().len(), 10);
    assert_eq!(items["children"][0]["value"]["n"], 4_990);
    let deep = children("/meta/a~1b", 0).await;
    assert_eq!(deep["children"], json!([{ "value": 1 }, { "value": null }]));
    let missing = json!({ "uri": "x:json", "as": "json", "at": "/none" });
    client.call("view_window", missing).await.failure();
}

#[tokio::test]
async fn lines_are_read_and_searched() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let mut log = String::new();
    for n in 1..=1_000 {
        writeln!(log, "line {n}").unwrap();
    }
    log += &"x".repeat(200_000);
    store(&client, "x:log", "text/plain", &log).await;
    let lines = window(&client, json!({ "uri": "x:log", "as": "log", "offset": 998 })).await;
    assert_eq!((&lines["lines"][0], &lines["total"]), (&json!("line 999"), &json!(1_001)));
    let long = window(&client, json!({ "uri": "x:log", "as": "log", "offset": 1_000 })).await;
    assert_eq!(long["lines"][0]["text"].as_str().unwrap().len(), 4_000);
    let search = json!({ "uri": "x:log", "as": "log", "query": "Line \\d0$", "ignore_case": true, "limit": 2 });
    let found = window(&client, search).await;
    assert_eq!((&found["lines"], &found["rows"][1]["line"]), (&json!(9), &json!(20)));
    assert_eq!(found["next"]["offset"], 2);
    let literal = json!({ "uri": "x:log", "as": "log", "query": "\\d", "literal": true });
    assert_eq!(window(&client, literal).await["total"], 0);
}

#[tokio::test]
async fn bytes_are_exact_also_within_characters() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let text = "aüb".repeat(100_000);
    store(&client, "x:text", "text/plain", &text).await;
    for (offset, length) in [(0, 2), (2, 3), (262_143, 262_144), (399_999, 10), (500_000, 1)] {
        let arguments = json!({ "uri": "x:text", "offset": offset, "length": length });
        let part = value(&client, "view_bytes", arguments).await;
        let bytes = BASE64_STANDARD.decode(part["data"].as_str().unwrap()).unwrap();
        let end = (offset + length).min(text.len());
        assert_eq!(bytes, &text.as_bytes()[offset.min(end)..end], "{offset}");
        assert_eq!(part["size"], text.len());
    }
    let too_many = json!({ "uri": "x:text", "length": 262_145 });
    client.call("view_bytes", too_many).await.failure();
}

#[tokio::test]
async fn a_page_reads_the_revision_that_it_shows() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    store(&client, "x:log", "text/plain", "old\n").await;
    client.call("update_resource", json!({ "uri": "x:log", "text": "new\n" })).await.text();
    for (revision, line) in [(json!(1), "old"), (json!(2), "new")] {
        let arguments = json!({ "uri": "x:log", "as": "log", "revision": revision });
        assert_eq!(window(&client, arguments).await["lines"][0], line);
    }
    let info = value(&client, "view_resource", json!({ "uri": "x:log", "against": "1" })).await;
    assert_eq!((&info["as"], &info["revisions"]), (&json!("diff"), &json!([1, 2])));
    assert_eq!(info["against"], json!({ "uri": "x:log", "revision": 1, "size": 4 }));
}

#[tokio::test]
async fn resources_are_listed_in_an_order_page_by_page() {
    let server = server(|_| {}).await;
    let client = Modern::able(&server, showing());
    let names = ["delta", "Alpha", "charlie", "bravo", "alpha"];
    for (index, name) in names.into_iter().enumerate() {
        let text = "x".repeat(10 - index);
        let given = json!({
            "uri": format!("x:{index}"), "name": name, "text": text, "ttl": 1000 + index * 7 % 5,
        });
        client.call("create_resource", given).await.result();
        server.clock.advance(std::time::Duration::from_secs(1));
    }
    let all = async |sort: &str, descending: bool, limit: usize| {
        let (mut uris, mut after) = (Vec::new(), None);
        loop {
            let mut given =
                json!({ "sort": sort, "descending": descending, "limit": limit, "prefix": "x:" });
            if let Some(after) = after {
                given["after"] = after;
            }
            let page = value(&client, "view_list", given).await;
            let items = page["resources"].as_array().unwrap().clone();
            assert!(items.len() <= limit && !items.is_empty(), "{page}");
            uris.extend(items.iter().map(|item| item["uri"].as_str().unwrap()[2..].to_owned()));
            after = page.get("next").cloned();
            if after.is_none() {
                return uris.concat();
            }
        }
    };
    for limit in [1, 2, 5, 50] {
        for (sort, expected) in [
            ("uri", "01234"),
            // Whatever the case; of the same letters, the capital first.
            ("name", "14320"),
            ("size", "43210"),
            ("created", "01234"),
            // After 1000, 1002, 1004, 1001 and 1003 seconds, each begun a second later.
            ("expires", "01324"),
        ] {
            assert_eq!(all(sort, false, limit).await, expected, "{sort} {limit}");
            let reversed: String = expected.chars().rev().collect();
            assert_eq!(all(sort, true, limit).await, reversed, "{sort} {limit}");
        }
    }
    let bad = client.call("view_list", json!({ "sort": "size", "after": "x:1" })).await;
    assert!(bad.failure().contains("cursor is not valid"));
    client.call("create_resource", json!({ "uri": "y:0", "text": "" })).await.result();
    let found = value(&client, "view_list", json!({ "prefix": "y:" })).await;
    assert_eq!(found["resources"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_sees_the_resources_of_others_nor_more_than_by_the_reading_tools() {
    let server = server(|config| {
        config.auth.mode = AuthMode::Static;
        config.auth.tokens =
            vec![token("alice", &["read"]), token("bob", &["read"]), token("carol", &[])];
        config.auth.scopes =
            [("read_resource".to_owned(), vec!["read".to_owned()])].into_iter().collect();
    })
    .await;
    let client = |name| Modern::able(&server, showing()).with_token(name);
    let (alice, bob, carol) = (client("alice"), client("bob"), client("carol"));
    store(&alice, "x:csv", "text/csv", ORDERS).await;
    store(&carol, "x:own", "text/csv", ORDERS).await;
    for (tool, more) in [
        ("view_resource", json!({})),
        ("view_window", json!({ "as": "info" })),
        ("view_window", json!({ "as": "table" })),
        ("view_window", json!({ "as": "table", "sort": { "column": "id" } })),
        ("view_window", json!({ "as": "json" })),
        ("view_window", json!({ "as": "log" })),
        ("view_window", json!({ "as": "log", "query": "Ada" })),
        ("view_bytes", json!({ "length": 1 })),
    ] {
        let arguments = |uri: &str| {
            let mut arguments = more.clone();
            arguments["uri"] = uri.into();
            arguments
        };
        let foreign = bob.call(tool, arguments("x:csv")).await.failure();
        let missing = bob.call(tool, arguments("x:none")).await.failure();
        assert_eq!(foreign.replace("x:csv", "x:none"), missing, "{tool} {more}");
        let has_own_rule = more.get("sort").is_some() || more.get("query").is_some();
        if !has_own_rule {
            let refused = carol.call(tool, arguments("x:own")).await.failure();
            assert!(refused.contains("read_resource"), "{tool} {more}: {refused}");
        }
    }
}
