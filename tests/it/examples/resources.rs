//! Resources from files, templates and objects, and their uses.

use std::fs;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{serving, started};
use crate::support::{Modern, process::example};

async fn not_found(client: &Modern, uri: &str) {
    let error = client.send("resources/read", json!({ "uri": uri })).await.error();
    assert_eq!(error["code"], -32602, "{uri}: {error}");
    assert_eq!(error["data"]["uri"], uri, "{error}");
    assert!(!error.to_string().contains("examples/data"), "{error}");
}

fn data(name: &str) -> Vec<u8> {
    fs::read(format!("{}/examples/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[tokio::test]
async fn a_file_is_listed_without_being_read_and_read_on_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("knowledge.txt");
    let mut command = example("file_resource");
    command.env("EXAMPLE_DATA", folder.path());
    let example = started(command).await;
    let client = Modern::at(&example.url);

    // The file does not exist yet; a listing that reads it would log an error.
    let listed = client.list("resources/list", "resources").await;
    assert_eq!(example.stderr().lines().count(), 1, "{}", example.stderr());
    let listed = &listed[0];
    assert_eq!(listed["uri"], "file://knowledge.txt");
    assert_eq!(
        (&listed["name"], &listed["title"]),
        (&json!("knowledge_base"), &json!("Knowledge base"))
    );
    assert_eq!(listed["description"], "A resource that loads a text-based knowledge base.");
    assert_eq!(
        listed["annotations"],
        json!({ "audience": ["user", "assistant"], "priority": 0.8 })
    );
    assert_eq!(listed["icons"][0]["mimeType"], "image/png");
    not_found(&client, "file://knowledge.txt").await;

    for text in ["first", "second, which is longer"] {
        fs::write(&file, text).unwrap();
        for uri in ["file://knowledge.txt", "file://knowledge.txt/"] {
            let read = client.read(uri).await;
            assert_eq!(read, json!({ "uri": uri, "mimeType": "text/plain", "text": text }));
        }
    }
}

#[tokio::test]
async fn a_template_gives_text_or_bytes() {
    for name in ["resource_template", "resource_object"] {
        let (_example, client) = serving(name).await;
        let templates = client.list("resources/templates/list", "resourceTemplates").await;
        assert_eq!(templates[0]["uriTemplate"], "file:///{filename}");
        assert_eq!(templates[0]["name"], "resource_template");
        let listed = client.list("resources/list", "resources").await;
        assert!(listed.iter().all(|r| !r["uri"].as_str().unwrap().contains('{')), "{listed:?}");

        let text = client.read("file:///1.txt").await;
        assert_eq!(text["text"].as_str().unwrap().as_bytes(), data("1.txt"), "{text}");
        let image = client.read("file:///2.png").await;
        assert_eq!(image["mimeType"], "image/png");
        assert_eq!(BASE64_STANDARD.decode(image["blob"].as_str().unwrap()).unwrap(), data("2.png"));

        for elsewhere in [
            "file:///nope.txt",
            "file:///..%2f..%2fetc%2fpasswd",
            "file:///..%2FCargo.toml",
            "file:///%2Fetc%2Fpasswd",
            "file:////etc/passwd",
            "file:///..",
            "file:///.",
            "file:///1.txt%00.png",
            "file:///..%5cCargo.toml",
        ] {
            not_found(&client, elsewhere).await;
        }
    }
}

#[tokio::test]
async fn a_resource_overrides_a_template_that_matches_its_uri() {
    let (_example, client) = serving("resource_object").await;
    let listed = client.list("resources/list", "resources").await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["uri"], "file:///1.txt");
    assert_eq!(listed[0]["mimeType"], "text/plain");
    assert_eq!(listed[0]["size"], data("1.txt").len());
    let changed = listed[0]["annotations"]["lastModified"].as_str().unwrap();
    assert!(changed.ends_with('Z') && changed.len() == 20, "{changed}");
    let read = client.read("file:///1.txt").await;
    assert_eq!(read["mimeType"], "text/plain");
}

#[tokio::test]
async fn subscribers_are_notified_of_a_new_resource() {
    let (_example, client) = serving("resource_object").await;
    let mut events = client.listen(1, json!({ "resourcesListChanged": true })).await;
    let added = client.call("add_resource", json!({ "filename": "2.png" })).await.text();
    assert_eq!(added, "Added file:///2.png");
    assert_eq!(events.message().await["method"], "notifications/resources/list_changed");
    let listed = client.list("resources/list", "resources").await;
    let uris: Vec<_> = listed.iter().map(|r| r["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["file:///1.txt", "file:///2.png"]);
    // A name cannot lead out of the folder.
    client.call("add_resource", json!({ "filename": "../../Cargo.toml" })).await;
    not_found(&client, "file:///../../Cargo.toml").await;
}

#[tokio::test]
async fn uses_of_resources() {
    let (_example, client) = serving("resource_uses").await;
    let logs = client.read("logs://web/2026-01-01").await;
    assert_eq!(logs["text"], "GET / 200\nGET /cart 500");
    not_found(&client, "logs://web/2030-01-01").await;

    let docs = client.read("docs://tokio/1.0").await;
    assert_eq!(docs["mimeType"], "text/markdown");
    let arguments = json!({ "library": "tokio", "version": "1.0", "question": "How?" });
    let prompt = json!({ "name": "ask_docs", "arguments": arguments });
    let messages = client.send("prompts/get", prompt).await.result()["messages"].clone();
    assert_eq!(messages[0]["content"]["resource"]["text"], docs["text"]);

    let prompt = json!({ "name": "pick_customer", "arguments": { "request": "Ana's orders" } });
    let messages = client.send("prompts/get", prompt).await.result()["messages"].clone();
    let embedded = messages[0]["content"]["resource"]["text"].as_str().unwrap();
    let customers: Value = serde_json::from_str(embedded).unwrap();
    let read = client.read("customers://all").await;
    let read: Value = serde_json::from_str(read["text"].as_str().unwrap()).unwrap();
    assert_eq!(read, customers);
    let ana = customers.as_object().unwrap().iter().find(|(_, c)| c["name"] == "Ana").unwrap();
    let orders = client.call("query_orders", json!({ "customer_id": ana.0 })).await.text();
    assert!(orders.contains("Ana"), "{orders}");
    assert!(
        client
            .call("query_orders", json!({ "customer_id": "x" }))
            .await
            .failure()
            .contains("customers://all")
    );
}
