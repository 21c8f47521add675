//! Members that no type of the protocol has pass as an upstream wrote them, in both eras on both
//! sides.

use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{in_front_of, meaning::answering, text};
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
            "tools/call" => Some(json!({ "content": blocks(), "cost": { "usd": 0.002 }, "spent": null })),
            "prompts/get" => {
                let plain = json!({ "role": "assistant", "content": blocks()[2] });
                Some(json!({ "messages": [message(), plain, message()], "version": [3], "by": "ana" }))
            }
            "resources/read" => {
                let content =
                    json!({ "uri": params["uri"], "text": "t", "mimeType": "text/plain" });
                let mut content = content;
                content["etag"] = json!({ "strong": "1" });
                Some(json!({ "contents": [content], "_meta": { "k": 2 }, "total": 1 }))
            }
            "completion/complete" => Some(completed()),
            _ => None,
        }
    })
    .await
}

fn message() -> Value {
    json!({ "role": "user", "content": blocks()[0], "author": { "name": "ana" }, "at": null })
}

fn completed() -> Value {
    let completion = json!({ "values": ["a", "b"], "hasMore": false, "labels": { "a": "A" } });
    json!({ "completion": completion, "took": 1.5, "_meta": { "k": 3 } })
}

/// The result without the members that Larder adds in the modern era.
fn own_members(mut result: Value) -> Value {
    let members = result.as_object_mut().unwrap();
    for added in ["resultType", "ttlMs", "cacheScope"] {
        members.remove(added);
    }
    if let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.retain(|name, _| !name.starts_with("io.modelcontextprotocol/"));
        if meta.is_empty() {
            members.remove("_meta");
        }
    }
    result
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
            let expected = json!({ "content": blocks(), "cost": { "usd": 0.002 }, "spent": null });
            assert_eq!(own_members(called), expected, "{version} {is_modern}");

            let got = ask("prompts/get", json!({ "name": "ask", "arguments": { "a": "1" } })).await;
            let plain = json!({ "role": "assistant", "content": blocks()[2] });
            let messages = json!([message(), plain, message()]);
            let expected = json!({ "messages": messages, "version": [3], "by": "ana" });
            assert_eq!(own_members(got), expected, "{version} {is_modern}");

            let read = ask("resources/read", json!({ "uri": "r:1" })).await;
            let content = json!({
                "uri": "r:1", "mimeType": "text/plain", "text": "t", "etag": { "strong": "1" },
            });
            let expected = json!({ "contents": [content], "_meta": { "k": 2 }, "total": 1 });
            assert_eq!(own_members(read), expected, "{version} {is_modern}");

            let argument = json!({ "name": "a", "value": "" });
            let reference = json!({ "type": "ref/prompt", "name": "ask" });
            let params = json!({ "ref": reference, "argument": argument });
            let suggested = ask("completion/complete", params).await;
            assert_eq!(own_members(suggested), completed(), "{version} {is_modern}");
        }
    }
}

#[tokio::test]
async fn long_members_of_a_result_are_shown_or_left_out() {
    let long = || json!("x".repeat(100_000));
    let upstream = answering("far", move |method, params| match method {
        "initialize" => Some(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
            "serverInfo": { "name": "far", "version": "1" },
        })),
        "tools/list" => {
            Some(json!({ "tools": [{ "name": "say", "inputSchema": { "type": "object" } }] }))
        }
        "prompts/list" => Some(json!({ "prompts": [{ "name": "ask" }] })),
        "resources/list" => Some(json!({ "resources": [{ "uri": "r:1", "name": "r" }] })),
        "tools/call" => {
            Some(json!({ "content": [{ "type": "text", "text": "done" }], "extra": long() }))
        }
        "prompts/get" => {
            let message = json!({ "role": "user", "content": "hello", "extra": long() });
            Some(json!({ "messages": [message], "extra": long() }))
        }
        "resources/read" => Some(json!({
            "contents": [{ "uri": params["uri"], "text": "t" }], "extra": long(),
        })),
        "completion/complete" => {
            Some(json!({ "completion": { "values": ["a"], "extra": long() }, "extra": long() }))
        }
        _ => None,
    });
    let server = in_front_of(vec![upstream.await]).await;
    let client = Legacy::of(&server).await;

    // The text with the members is stored.
    let called = client.call("say", json!({})).await.result();
    assert_eq!(called["extra"], Value::Null);
    let preview = text(&called);
    assert!(preview.contains("other members") && preview.contains("larder://r/"), "{preview:.500}");
    let done = json!({ "type": "text", "text": "done" });
    assert!(called["content"].as_array().unwrap().contains(&done), "{called:.500}");

    let got = client.send("prompts/get", json!({ "name": "ask" })).await.result();
    let note = "(Members of message 1 are left out, because they are too long: other members.)";
    let texts = ["hello", note].map(|text| json!({ "type": "text", "text": text }));
    let messages = texts.map(|content| json!({ "role": "user", "content": content }));
    assert_eq!(got, json!({ "messages": messages }));

    let read = client.send("resources/read", json!({ "uri": "r:1" })).await.result();
    assert_eq!(read["contents"][0]["text"], "t");
    assert_eq!(read.as_object().unwrap().len(), 1, "{read:.500}");

    let reference = json!({ "type": "ref/prompt", "name": "ask" });
    let params = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
    let suggested = client.send("completion/complete", params).await.result();
    assert_eq!(suggested, json!({ "completion": { "values": ["a"] } }));
}
