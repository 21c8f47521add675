//! JSON that a tool stores is not limited in its values, and has a record on each line.

use serde_json::{Value, json};

use crate::support::{Modern, Server, ask, post, request};

/// More than `limits.body_values` values.
fn records() -> Value {
    (0..90_000).map(|n| json!({ "id": n, "name": format!("record {n}") })).collect()
}

/// A list of records as it is stored.
fn stored(records: &Value) -> String {
    let lines: Vec<_> = records.as_array().unwrap().iter().map(Value::to_string).collect();
    format!("[\n{}\n]", lines.join(",\n"))
}

#[tokio::test]
async fn any_number_of_records_is_stored() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let records = records();
    client.create(json!({ "uri": "x:new", "json": records })).await;
    let read = client.read("x:new").await;
    assert_eq!(read["mimeType"], "application/json");
    assert_eq!(read["text"], stored(&records));
    client.create(json!({ "uri": "x:old", "json": [1] })).await;
    let update = json!({ "uri": "x:old", "json": records });
    client.call("update_resource", update.clone()).await.text();
    assert_eq!(client.read("x:old").await["text"], stored(&records));
    // Outside of a session.
    let call = json!({ "name": "update_resource", "arguments": update });
    let result = ask(&server.url, "tools/call", call).await.result();
    assert_ne!(result["isError"], true, "{result}");
}

#[tokio::test]
async fn what_is_parsed_is_limited() {
    let server = Server::start().await;
    let (client, records) = (Modern::of(&server), records());
    let create = json!({ "uri": "x:a", "json": records });
    for (method, params) in [
        ("tools/call", json!({ "name": "echo", "arguments": { "text": records } })),
        ("tools/call", json!({ "name": "echo", "arguments": { "json": records } })),
        (
            "tools/call",
            json!({ "name": "create_resource", "arguments": { "name": records, "json": 1 } }),
        ),
        ("tools/call", json!({ "name": "create_resource", "arguments": create, "other": records })),
        (
            "tools/call",
            json!({ "name": "create_resource", "arguments": create, "requestState": "x" }),
        ),
        ("prompts/get", json!({ "name": "create_resource", "arguments": create })),
    ] {
        let answer = ask(&server.url, method, params).await;
        assert_eq!(answer.status, 413, "{method}");
    }
    let mut response = request("tools/call", json!({}));
    response["result"] = records.clone();
    assert_eq!(post(&server.url, &response).send().await.unwrap().status(), 413);
    assert!(client.list("resources/list", "resources").await.iter().all(|r| r["uri"] != "x:a"));
}

#[tokio::test]
async fn json_is_stored_with_a_record_on_each_line() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for (json, text) in [
        (json!("text"), "\"text\""),
        (json!(1.5), "1.5"),
        (json!([]), "[]"),
        (json!({ "$json": "1" }), "{\n\"$json\":\"1\"\n}"),
        (json!({ "$json": "not JSON" }), "{\n\"$json\":\"not JSON\"\n}"),
        (json!([null, { "b": ["c", "d"] }]), "[\nnull,\n{\"b\":[\"c\",\"d\"]}\n]"),
        (json!({ "n": 2, "a": [1, [2]] }), "{\"n\":2,\n\"a\":[\n1,\n[2]\n]}"),
        (json!({ "u1": { "n": 1, "m": 2 }, "u2": 3 }), "{\n\"u1\":{\"n\":1,\"m\":2},\n\"u2\":3\n}"),
    ] {
        client.create(json!({ "uri": "x:a", "json": json })).await;
        assert_eq!(client.read("x:a").await["text"], text);
    }
    let nothing = json!({ "uri": "x:a", "json": null });
    assert!(client.call("create_resource", nothing).await.failure().contains("nothing to store"));
    // As a client writes it that adds spaces and line breaks.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_resource","arguments":{"json": {"a":  [1,
 {"b": 2,
 "c": 3}]} ,"uri":"x:b"}}}"#;
    let sent = post(&server.url, &json!({})).body(body).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    assert_eq!(client.read("x:b").await["text"], "{\"a\":  [\n1,\n {\"b\": 2, \"c\": 3}\n]}");
}

#[tokio::test]
async fn lines_and_records_of_stored_json_agree() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let records: Value = (0..2_000)
        .map(|n| json!({ "id": n, "text": "a\nb, [c", "of": [{ "n": n }, {}] }))
        .collect();
    for (json, lines_before) in
        [(records.clone(), 1), (json!({ "total": 2_000, "items": records, "next": null }), 2)]
    {
        client.create(json!({ "uri": "x:a", "json": json })).await;
        for record in [0, 1, 999, 1_999] {
            let line = json!({ "uri": "x:a", "offset": record + lines_before, "limit": 1 });
            let line = client.call("read_resource", line).await.text();
            let (_, line) = line.split_once("\n\n").unwrap();
            let read = json!({ "uri": "x:a", "unit": "records", "offset": record, "limit": 1 });
            let read = client.call("read_resource", read).await.text();
            let (head, read) = read.split_once("\n\n").unwrap();
            assert!(head.contains("of 2,000 records"), "{head}");
            assert_eq!(line.trim_end().trim_end_matches(','), read.trim_end());
            let found = json!({ "uri": "x:a", "query": format!("\"id\":{record},") });
            let found = client.call("search_resource", found).await.result();
            let row = &found["structuredContent"]["rows"][0];
            assert_eq!(row["line"], record + lines_before + 1, "{found}");
            assert_eq!(row["places"][0]["record"], record, "{found}");
        }
    }
}
