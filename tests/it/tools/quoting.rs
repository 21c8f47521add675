//! Whatever a caller sends, a message quotes at most 100 characters of it.

use serde_json::{Value, json};

use crate::support::{Legacy, Modern, Server, ask};

fn call(tool: &str, arguments: Value) -> (&'static str, Value) {
    let mut params = json!({ "name": tool });
    params["arguments"] = arguments;
    ("tools/call", params)
}

/// Each way for a long text to come back.
fn requests(long: &str) -> Vec<(&'static str, Value)> {
    let uri = format!("x://{long}");
    let mut requests = vec![
        ("tools/call", json!({ "name": long, "arguments": {} })),
        ("tools/call", json!({ "name": "echo", "arguments": long })),
        ("prompts/get", json!({ "name": long })),
        ("resources/read", json!({ "uri": long })),
        ("resources/read", json!({ "uri": uri })),
        ("resources/read", json!({ "uri": format!("x:a?lines={long}") })),
        ("resources/list", json!({ "cursor": long })),
        ("tools/list", json!({ "cursor": long })),
        ("logging/setLevel", json!({ "level": long })),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": long }, "argument": { "name": "a", "value": "" },
            }),
        ),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "a", "value": "" },
            }),
        ),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": "logs://{service}/{date}" },
                "argument": { "name": long, "value": "" },
            }),
        ),
        ("completion/complete", json!({ "ref": { "type": long } })),
        call("echo", json!({ "text": "a", long: 1 })),
        call("fails", json!({ long: 1 })),
        call("add", json!({ "a": long, "b": 1 })),
        call("read_resource", json!({ "uri": "x:a", "unit": long })),
        call("search_resource", json!({ "uri": "x:a", "query": long })),
        call("search_resource", json!({ "uri": "x:a", "query": &long[..4_000] })),
        call("search_resource", json!({ "uri": "x:a", "query": format!("({}", &long[..4_000]) })),
        call("search_resources", json!({ "query": long })),
        call("search_resources", json!({ "query": &long[..4_000] })),
        call("search_resources", json!({ "query": "a", "prefix": long })),
        call("search_resources", json!({ "query": "a", "prefix": &long[..2_000] })),
        call("list_resources", json!({ "prefix": long })),
        call("list_resources", json!({ "after": long })),
        call("create_resource", json!({ "uri": "x:b", "text": "b", "mime_type": long })),
        call("create_resource", json!({ "uri": "x:b", "blob": format!("!{long}") })),
        call("share_resource", json!({ "uri": "x:a", "with": "group", "name": long })),
        call("share_resource", json!({ "uri": "x:a", "with": long })),
    ];
    for tool in ["read_resource", "describe_resource", "delete_resource"] {
        requests.push(call(tool, json!({ "uri": long })));
        requests.push(call(tool, json!({ "uri": uri })));
        requests.push(call(tool, json!({ "uri": &uri[..2_000] })));
    }
    requests
}

#[tokio::test]
async fn a_long_argument_comes_back_in_no_message() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:a", "text": "a" })).await;
    let legacy = Legacy::of(&server).await;
    let long = "x".repeat(1_000_000);
    let mut problems = Vec::new();
    let mut check = |what: &str, body: &[u8]| {
        let body = String::from_utf8_lossy(body);
        // What succeeds names its URI, which is valid and thus short.
        if body.contains(&"x".repeat(101)) && !body.contains("Deleted x://") {
            problems.push(format!("{what}: {} bytes", body.len()));
        }
    };
    for (method, params) in requests(&long) {
        let what = format!("{method} {}", params.to_string().replace(&"x".repeat(20), ""));
        check(&what, &ask(&server.url, method, params.clone()).await.body);
        check(&format!("session: {what}"), &legacy.send(method, params).await.body);
    }
    check("method", &ask(&server.url, &long, json!({})).await.body);
    assert!(problems.is_empty(), "{problems:#?}");
}
