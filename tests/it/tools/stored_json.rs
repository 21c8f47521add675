//! JSON that a tool stores as it arrives is not limited in its values.

use serde_json::{Value, json};

use crate::support::{Modern, Server, ask, post, request};

/// More than `limits.body_values` values.
fn records() -> Value {
    (0..90_000).map(|n| json!({ "id": n, "name": format!("record {n}") })).collect()
}

#[tokio::test]
async fn any_number_of_records_is_stored() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let records = records();
    client.create(json!({ "uri": "x:new", "json": records })).await;
    let read = client.read("x:new").await;
    assert_eq!(read["mimeType"], "application/json");
    assert_eq!(read["text"], records.to_string());
    client.create(json!({ "uri": "x:old", "json": [1] })).await;
    let update = json!({ "uri": "x:old", "json": records });
    client.call("update_resource", update.clone()).await.text();
    assert_eq!(client.read("x:old").await["text"], records.to_string());
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
async fn json_is_stored_as_it_arrives() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for json in [
        json!("text"),
        json!(1.5),
        json!([]),
        json!({ "$json": "1" }),
        json!({ "$json": "not JSON" }),
        json!({ "a": [null, { "b": "c" }] }),
    ] {
        client.create(json!({ "uri": "x:a", "json": json })).await;
        assert_eq!(client.read("x:a").await["text"], json.to_string());
    }
    let nothing = json!({ "uri": "x:a", "json": null });
    assert!(client.call("create_resource", nothing).await.failure().contains("nothing to store"));
    // As a client writes it that adds spaces.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_resource","arguments":{"json": {"a":  [1, 2]} ,"uri":"x:b"}}}"#;
    let sent = post(&server.url, &json!({})).body(body).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    assert_eq!(client.read("x:b").await["text"], r#"{"a":  [1, 2]}"#);
}
