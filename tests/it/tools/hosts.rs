//! Definitions that hosts refuse, and arguments as hosts send them.

use std::{collections::BTreeMap, process::Stdio};

use larder::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{Ctx, Legacy, Modern, Server, patiently, process::larder};

/// The places of a schema that a host refuses: a list of types, a reference, a definition, or a
/// property that is no schema.
fn refused_in(schema: &Value, path: &str, found: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        found.push(format!("{path}: {schema}"));
        return;
    };
    for (keyword, value) in members {
        let at = format!("{path}/{keyword}");
        match keyword.as_str() {
            "type" if !value.is_string() => found.push(at),
            "$ref" | "$defs" | "definitions" | "$dynamicRef" => found.push(at),
            "properties" => {
                for (name, property) in value.as_object().unwrap() {
                    refused_in(property, &format!("{at}/{name}"), found);
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                for option in value.as_array().unwrap() {
                    refused_in(option, &at, found);
                }
            }
            "items" => refused_in(value, &at, found),
            "additionalProperties" if !value.is_boolean() => refused_in(value, &at, found),
            _ => {}
        }
    }
}

/// Checks that all hosts take a tool's definition.
fn check(tool: &Value) {
    let name = tool["name"].as_str().unwrap();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    assert!((1..=64).contains(&name.len()) && name.chars().all(is_name), "{name}");
    let schema = &tool["inputSchema"];
    assert_eq!(schema["type"], "object", "{tool}");
    let mut found = Vec::new();
    refused_in(schema, name, &mut found);
    assert!(found.is_empty(), "{found:?} in {schema}");
}

/// The tools that the binary offers over stdio.
async fn own_tools() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    std::fs::write(&config, "[tools]\nlisting = \"search\"\n").unwrap();
    let mut server = larder(&["serve", "--stdio", "--config", config.to_str().unwrap()]);
    let mut server =
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(format!("{list}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = patiently("an answer", lines.next_line()).await.unwrap().unwrap();
    let mut answer: Value = serde_json::from_str(&line).unwrap();
    answer["result"]["tools"].as_array_mut().unwrap().split_off(0)
}

#[tokio::test]
async fn every_argument_of_own_tools_has_one_plain_type() {
    let tools = own_tools().await;
    assert!(tools.len() > 10, "{tools:?}");
    for tool in &tools {
        check(tool);
        let properties = tool["inputSchema"]["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            assert!(property["type"].is_string(), "{}: {name}: {property}", tool["name"]);
            assert!(property["description"].is_string(), "{}: {name}", tool["name"]);
        }
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// The smallest one first.
    Rising,
    Falling,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Place {
    City { name: String, country: Option<String> },
    Point { x: f64, y: f64 },
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Node {
    label: Option<String>,
    #[serde(default)]
    children: Vec<Node>,
}

/// Returns its arguments.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Everything {
    /// A count.
    count: Option<u32>,
    /// A share.
    share: Option<f64>,
    /// A flag.
    flag: Option<bool>,
    /// A text.
    text: Option<String>,
    /// An order.
    order: Option<Order>,
    /// A place.
    place: Option<Place>,
    /// Numbers.
    numbers: Option<Vec<i64>>,
    /// Numbers by name.
    named: Option<BTreeMap<String, i64>>,
    /// A tree.
    tree: Option<Node>,
    /// Anything.
    any: Option<Value>,
}

async fn with_everything() -> Server {
    Server::offering(|builder| {
        builder.tool(Tool::new(|_: Ctx, args: Everything| async move { json!(args).to_string() }))
    })
    .await
}

#[tokio::test]
async fn the_arguments_of_an_authors_tool_are_listed_plainly() {
    let server = with_everything().await;
    let client = Legacy::of(&server).await;
    let tools = client.send("tools/list", json!({})).await.result()["tools"].take();
    check(&tools[0]);
    let properties = &tools[0]["inputSchema"]["properties"];
    for (name, kind) in [
        ("count", "integer"),
        ("share", "number"),
        ("flag", "boolean"),
        ("text", "string"),
        ("order", "string"),
        ("place", "object"),
        ("numbers", "array"),
        ("named", "object"),
        ("tree", "object"),
    ] {
        assert_eq!(properties[name]["type"], kind, "{name}: {}", properties[name]);
    }
    assert_eq!(properties["order"]["enum"], json!(["falling", "rising"]));
    assert_eq!(properties["place"]["properties"]["kind"]["enum"], json!(["city", "point"]));
    assert_eq!(properties["place"]["required"], json!(["kind"]));
    assert_eq!(tools[0]["inputSchema"].get("required"), None);
}

#[tokio::test]
async fn null_is_not_given_and_what_is_clearly_meant_is_taken() {
    let server = with_everything().await;
    let client = Modern::of(&server);
    let returned = async |arguments: Value| {
        let text = client.call("everything", arguments).await.text();
        let mut returned: Value = serde_json::from_str(&text).unwrap();
        returned.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        returned
    };

    let nothing = json!({
        "count": null, "share": null, "flag": null, "text": null, "order": null, "place": null,
        "numbers": null, "named": null, "tree": null, "any": null,
    });
    assert_eq!(returned(nothing).await, json!({}));

    for (sent, taken) in [
        (json!({ "count": 2.0 }), json!({ "count": 2 })),
        (json!({ "count": "5" }), json!({ "count": 5 })),
        (json!({ "share": "0.5" }), json!({ "share": 0.5 })),
        (json!({ "flag": "True" }), json!({ "flag": true })),
        (json!({ "text": 404 }), json!({ "text": "404" })),
        (json!({ "numbers": "[1, 2]" }), json!({ "numbers": [1, 2] })),
        (json!({ "numbers": ["1", 2.0] }), json!({ "numbers": [1, 2] })),
        (json!({ "named": "{\"a\": 1.0}" }), json!({ "named": { "a": 1 } })),
        (
            json!({ "place": { "kind": "city", "name": "Bonn", "country": null } }),
            json!({ "place": { "kind": "city", "name": "Bonn", "country": null } }),
        ),
        (
            json!({ "tree": { "label": null, "children": [{ "label": 7 }] } }),
            json!({ "tree": { "label": null, "children": [{ "label": "7", "children": [] }] } }),
        ),
        (json!({ "any": "5" }), json!({ "any": "5" })),
        (json!({ "text": "5" }), json!({ "text": "5" })),
    ] {
        assert_eq!(returned(sent.clone()).await, taken, "{sent}");
    }

    for (wrong, named) in [
        (json!({ "count": 2.5 }), "count"),
        (json!({ "count": -1.0 }), "count"),
        (json!({ "count": "many" }), "count"),
        (json!({ "flag": "yes" }), "flag"),
        (json!({ "numbers": [null] }), "numbers"),
        (json!({ "text": 1.5 }), "text"),
    ] {
        let failure = client.call("everything", wrong.clone()).await.failure();
        assert!(failure.contains(named), "{wrong}: {failure}");
    }
}

#[tokio::test]
async fn own_tools_take_arguments_as_hosts_send_them() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let stored = json!({
        "uri": "x:lines", "text": "a\nb\nc\n", "blob": null, "json": null, "name": null,
        "description": null, "mime_type": null, "ttl": "3600", "copy_of": null, "revision": null,
    });
    client.call("create_resource", stored).await.text();
    let text = async |arguments: Value| client.call("read_resource", arguments).await.text();
    let expected = text(json!({ "uri": "x:lines", "offset": 1, "limit": 1 })).await;
    for arguments in [
        json!({ "uri": "x:lines", "offset": 1.0, "limit": 1.0 }),
        json!({ "uri": "x:lines", "offset": "1", "limit": "1" }),
        json!({ "uri": "x:lines", "offset": 1, "limit": 1, "unit": null, "at": null, "revision": null }),
    ] {
        assert_eq!(text(arguments.clone()).await, expected, "{arguments}");
    }
    // A list is JSON, too, though the schema shows an object.
    client.call("create_resource", json!({ "uri": "x:list", "json": [1, 2] })).await.text();
}
