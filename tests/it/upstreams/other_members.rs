//! Members that no type of the protocol has pass as an upstream wrote them, in both eras on both
//! sides.

use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{in_front_of, meaning::answering};
use crate::support::{Legacy, Modern};

fn tool() -> Value {
    json!({
        "name": "say",
        "annotations": {
            "readOnlyHint": true, "cost": 12.5, "danger": { "level": [1, null] }, "note": null,
        },
        "icons": [
            { "src": "https://x.example/a.png", "purpose": "maskable" },
            { "src": "https://x.example/b.png", "sizes": ["any"] },
        ],
        "group": "files",
        "_meta": { "k": 1 },
    })
}

fn prompt() -> Value {
    json!({
        "name": "ask",
        "arguments": [
            { "name": "a", "required": true, "schema": { "type": "string", "default": "x" } },
            { "name": "b" },
            { "name": "c", "choices": [], "hidden": null },
        ],
        "icons": [{ "src": "https://x.example/a.png", "dark": { "src": "b" } }],
        "tags": ["a", "b"],
    })
}

/// A resource, or a template, whose URI is in the member `key`.
fn resource(key: &str, uri: &str) -> Value {
    json!({
        key: uri,
        "name": "r",
        "annotations": { "audience": ["user"], "priority": 1, "weight": 0.25, "seen": { "by": [] } },
        "icons": [{ "src": "https://x.example/a.png", "purpose": "any" }],
        "etag": "\"1\"",
        "owner": { "name": "ana", "title": null },
    })
}

fn blocks() -> Value {
    let mut link = resource("uri", "r:2");
    link["type"] = json!("resource_link");
    json!([
        { "type": "text", "text": "a", "language": "en", "annotations": { "priority": 0.3, "x": 1 } },
        { "type": "text", "text": "b", "annotations": { "x": [{}] }, "_meta": { "k": { "text": 1 } } },
        { "type": "text", "text": "plain" },
        { "type": "image", "data": "AAAA", "mimeType": "image/png", "width": 16, "alt": null },
        { "type": "audio", "data": "AAAA", "mimeType": "audio/wav", "seconds": 1.5 },
        link,
        {
            "type": "resource",
            "resource": { "uri": "r:3", "text": "t", "encoding": "utf-8", "etag": 5 },
            "pinned": true,
        },
    ])
}

async fn upstream(version: &'static str) -> Settings {
    answering("far", move |method, params| {
        let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {} });
        match method {
            "initialize" if version == "2025-11-25" => Some(json!({
                "protocolVersion": version, "capabilities": capabilities,
                "serverInfo": { "name": "far", "version": "1" },
            })),
            "server/discover" if version == "2026-07-28" => Some(json!({
                "resultType": "complete", "supportedVersions": [version],
                "capabilities": capabilities,
            })),
            "tools/list" => {
                let mut tool = tool();
                tool["inputSchema"] = json!({ "type": "object" });
                Some(json!({ "tools": [tool] }))
            }
            "prompts/list" => Some(json!({ "prompts": [prompt()] })),
            "resources/list" => Some(json!({ "resources": [resource("uri", "r:1")] })),
            "resources/templates/list" => {
                Some(json!({ "resourceTemplates": [resource("uriTemplate", "t:{x}")] }))
            }
            "tools/call" => Some(json!({ "content": blocks() })),
            "prompts/get" => {
                let message = json!({ "role": "user", "content": blocks()[0] });
                Some(json!({ "messages": [message] }))
            }
            "resources/read" => {
                let content =
                    json!({ "uri": params["uri"], "text": "t", "mimeType": "text/plain" });
                let mut content = content;
                content["etag"] = json!({ "strong": "1" });
                Some(json!({ "contents": [content] }))
            }
            _ => None,
        }
    })
    .await
}

/// The item of a list with this name.
fn named(result: &Value, list: &str, name: &str) -> Value {
    let items = result[list].as_array().unwrap_or_else(|| panic!("{list}: {result}"));
    let found = items.iter().find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {result}")).clone()
}

#[tokio::test]
async fn members_that_no_type_has_pass_as_they_were_written() {
    for version in ["2025-11-25", "2026-07-28"] {
        let server = in_front_of(vec![upstream(version).await]).await;
        let legacy = Legacy::of(&server).await;
        let modern = Modern::of(&server);

        for is_modern in [false, true] {
            let ask = async |method: &str, params: Value| {
                if is_modern {
                    modern.send(method, params).await.result()
                } else {
                    legacy.send(method, params).await.result()
                }
            };

            let mut listed = named(&ask("tools/list", json!({})).await, "tools", "say");
            listed.as_object_mut().unwrap().remove("inputSchema").expect("it has a schema");
            assert_eq!(listed, tool(), "{version} {is_modern}");

            let listed = named(&ask("prompts/list", json!({})).await, "prompts", "ask");
            assert_eq!(listed, prompt(), "{version} {is_modern}");

            let listed = named(&ask("resources/list", json!({})).await, "resources", "r");
            assert_eq!(listed, resource("uri", "r:1"), "{version} {is_modern}");

            let listed = ask("resources/templates/list", json!({})).await;
            let listed = named(&listed, "resourceTemplates", "r");
            assert_eq!(listed, resource("uriTemplate", "t:{x}"), "{version} {is_modern}");

            let called = ask("tools/call", json!({ "name": "say", "arguments": {} })).await;
            assert_eq!(called["content"], blocks(), "{version} {is_modern}");

            let got = ask("prompts/get", json!({ "name": "ask", "arguments": { "a": "1" } })).await;
            assert_eq!(got["messages"][0]["content"], blocks()[0], "{version} {is_modern}");

            let read = ask("resources/read", json!({ "uri": "r:1" })).await;
            let content = json!({
                "uri": "r:1", "mimeType": "text/plain", "text": "t", "etag": { "strong": "1" },
            });
            assert_eq!(read["contents"], json!([content]), "{version} {is_modern}");
        }
    }
}
