//! Large structured content: the stored JSON, and the form that fits the tool's output schema.

use serde_json::{Value, json};

use super::{call, link, rows, server, text};
use crate::support::{Legacy, Modern};

#[tokio::test]
async fn structured_content_has_a_spilled_form_with_the_uri() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "rows", 10_000).await;
    let uri = link(&result);
    let spilled = &result["structuredContent"]["spilled"];
    assert_eq!(spilled["complete"], false);
    let resource = &spilled["resources"][0];
    assert_eq!(resource["uri"], uri);
    assert_eq!(resource["mime_type"], "application/json");
    assert!(resource["next"][0].as_str().unwrap().contains(&uri));
    assert!(spilled["note"].as_str().unwrap().starts_with("PREVIEW ONLY"));
    assert!(resource["head"]["text"].as_str().unwrap().contains("row number 0"));
    let shape =
        "Shape: { rows: [10000 x { id: integer, name: string, note?: string }], total: integer }";
    assert_eq!(resource["facts"][1], shape);
    assert!(text(&result).contains(shape), "{}", text(&result));
    // The answer does not contain the large value.
    assert!(result.to_string().len() < 16_000);
    let stored: Value =
        serde_json::from_str(client.read(&uri).await["text"].as_str().unwrap()).unwrap();
    assert_eq!(stored, json!(rows(10_000)));
    // A tool without structured content has none when it spills.
    assert!(call(&client, "json", 10_000).await["structuredContent"].is_null());
}

#[tokio::test]
async fn results_fit_the_listed_schema_whether_spilled_or_not() {
    let server = server().await;
    for client in [Client::Modern(Modern::of(&server)), Client::Legacy(Legacy::of(&server).await)] {
        let listed = client.send("tools/list", json!({})).await;
        let structured = ["rows", "rows_and_words", "total_and_rows", "wrapped_text"];
        for tool in structured {
            let listed = listed["tools"].as_array().unwrap().iter().find(|t| t["name"] == tool);
            let schema = &listed.unwrap()["outputSchema"];
            assert_eq!(schema["type"], "object", "{schema}");
            assert_eq!(schema["anyOf"].as_array().unwrap().len(), 2, "{schema}");
            let validator = jsonschema::draft202012::new(schema).unwrap();
            for n in [0, 3, 10_000] {
                let result = client
                    .send("tools/call", json!({ "name": tool, "arguments": { "n": n } }))
                    .await;
                let sent = &result["structuredContent"];
                assert_eq!(sent.get("spilled").is_some(), n == 10_000, "{tool} {n}");
                assert!(validator.is_valid(sent), "{tool} {n}: {sent}");
            }
            assert!(!validator.is_valid(&json!({ "spilled": true })));
        }
    }
}

/// A client of either era.
enum Client {
    Modern(Modern),
    Legacy(Legacy),
}

impl Client {
    async fn send(&self, method: &str, params: Value) -> Value {
        match self {
            Self::Modern(client) => client.send(method, params).await.result(),
            Self::Legacy(client) => client.send(method, params).await.result(),
        }
    }
}

#[tokio::test]
async fn the_same_in_a_session() {
    let server = server().await;
    let client = Legacy::of(&server).await;
    let result = client.call("rows", json!({ "n": 10_000 })).await.result();
    let uri = link(&result);
    assert_eq!(result["structuredContent"]["spilled"]["resources"][0]["uri"], uri);
    let read = client.send("resources/read", json!({ "uri": uri })).await.result();
    let stored: Value =
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(stored["total"], 10_000);
}

#[tokio::test]
async fn text_and_structured_copies_are_stored_once() {
    let server = server().await;
    let client = Modern::of(&server);
    for (tool, mime_type) in [("rows", "application/json"), ("wrapped_text", "text/plain")] {
        let uri = link(&call(&client, tool, 10_000).await);
        assert_eq!(client.read(&uri).await["mimeType"], mime_type);
    }
    assert_eq!(client.list("resources/list", "resources").await.len(), 2);
}

#[tokio::test]
async fn structured_content_is_stored_with_one_record_a_line() {
    let server = server().await;
    let client = Modern::of(&server);
    let uri = link(&call(&client, "rows", 10_000).await);
    let found =
        client.call("search_resource", json!({ "uri": uri, "query": "number 777\"" })).await.text();
    assert!(found.contains(r#"{"id":777,"name":"row number 777","note":"a third"}"#), "{found}");
    assert!(found.starts_with("1 match in "), "{found}");
}

#[tokio::test]
async fn small_structured_content_with_a_large_text_is_kept() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "total_and_rows", 10_000).await;
    let spilled = &result["structuredContent"]["spilled"];
    assert_eq!(spilled["value"], json!({ "result": 10_000 }));
    assert_eq!(spilled["resources"][0]["uri"], link(&result));
    // Small text with large structured content is sent unchanged.
    let result = call(&client, "rows_and_words", 10_000).await;
    assert_eq!(result["content"][1]["text"], "10000 rows");
    assert!(text(&result).contains("smaller parts follow as they are"));
    assert!(text(&result).contains(&link(&result)));
}
