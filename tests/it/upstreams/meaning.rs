//! Meaning that passes through: definitions that are not quite right, names, instructions, user
//! interfaces of several upstreams, and structured content for older clients.

#![allow(clippy::format_collect, clippy::too_many_lines, reason = "tables of cases, made of text")]

use std::{collections::BTreeMap, sync::Arc};

use axum::{Router, body::Bytes, routing};
use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{http::remote, in_front_of, listed, text, uri_in};
use crate::support::{Legacy, Modern};

/// The result of a request with this method and these params. `None` for the usual one.
type Answers = dyn Fn(&str, &Value) -> Option<Value> + Send + Sync;

/// A server over HTTP with these answers.
pub(crate) async fn answering(
    name: &str,
    answers: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static,
) -> Settings {
    let answers: Arc<Answers> = Arc::new(answers);
    let answer = move |body: Bytes| {
        let answers = Arc::clone(&answers);
        async move {
            let request: Value = serde_json::from_slice(&body).unwrap();
            let Some(id) = request.get("id") else { return String::new() };
            let method = request["method"].as_str().unwrap_or_default();
            let result = answers(method, &request["params"]).or_else(|| match method {
                "initialize" => Some(json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "resources": {} },
                    "serverInfo": { "name": "far", "version": "1" },
                })),
                "tools/list" => Some(json!({ "tools": [] })),
                "resources/list" => Some(json!({ "resources": [] })),
                "resources/templates/list" => Some(json!({ "resourceTemplates": [] })),
                _ => None,
            });
            match result {
                Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                None => {
                    let error = json!({ "code": -32601, "message": "Method not found" });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
            }
            .to_string()
        }
    };

    let respond = move |body: Bytes| {
        let answered = answer(body);
        async move { ([("content-type", "application/json")], answered.await) }
    };
    let router = Router::new().route("/mcp", routing::post(respond));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    remote(name, &url)
}

/// A server that offers these tools, and returns the params of each call as its text.
async fn with_tools(name: &str, tools: Value) -> Settings {
    answering(name, move |method, params| match method {
        "tools/list" => Some(json!({ "tools": tools })),
        "tools/call" => {
            let called = json!({ "name": params["name"], "arguments": params["arguments"] });
            Some(json!({ "content": [{ "type": "text", "text": called.to_string() }] }))
        }
        _ => None,
    })
    .await
}

/// The name and the arguments that a call has had there.
async fn called(client: &Legacy, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await.result();
    serde_json::from_str(text(&result)).unwrap_or_else(|_| panic!("{result}"))
}

fn object() -> Value {
    json!({ "type": "object" })
}

#[tokio::test]
async fn a_definition_whose_meaning_is_clear_is_mended_and_another_left_out_alone() {
    let tools = json!([
        { "name": "empty", "inputSchema": {} },
        { "name": "none" },
        { "name": "either", "inputSchema": { "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] } },
        { "name": "nullable", "inputSchema": { "type": ["object", "null"], "properties": { "a": null, "b": "string" } } },
        { "name": "php", "inputSchema": { "type": "object", "properties": [], "required": null } },
        { "name": "icon", "inputSchema": {}, "icons": [{ "src": "https://x.example/a.png", "sizes": "48x48 96x96" }] },
        { "name": "hints", "inputSchema": {}, "annotations": { "readOnlyHint": "true", "title": 5 } },
        { "name": "text", "inputSchema": { "type": "string" } },
        { "name": "words", "inputSchema": "see the manual" },
        { "name": "empty", "inputSchema": {} },
        { "inputSchema": {} },
    ]);
    let server = in_front_of(vec![with_tools("far", tools).await]).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;
    for name in ["empty", "none", "either", "nullable", "php", "icon", "hints"] {
        let tool = tools.get(name).unwrap_or_else(|| panic!("{name}: {tools:?}"));
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(called(&client, name, json!({ "a": 1 })).await["name"], name);
    }
    assert!(!tools.contains_key("text") && !tools.contains_key("words"), "{tools:?}");
    let nullable = &tools["nullable"]["inputSchema"]["properties"];
    assert_eq!(nullable, &json!({ "a": {}, "b": { "type": "string" } }));
    assert_eq!(tools["php"]["inputSchema"]["properties"], json!({}));
    assert_eq!(tools["icon"]["icons"][0]["sizes"], json!(["48x48", "96x96"]));
    assert_eq!(tools["hints"]["annotations"], json!({ "readOnlyHint": true }));
}

#[tokio::test]
async fn schemas_are_listed_as_all_hosts_read_them_and_arguments_pass_as_sent() {
    let schema = json!({
        "type": "object",
        "properties": {
            "limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }], "default": null },
            "owner": { "type": ["string", "null"], "description": "Null clears it." },
            "unit": { "$ref": "#/$defs/unit" },
        },
        "$defs": { "unit": { "type": "string", "enum": ["a", "b"] } },
    });
    let tools = json!([{ "name": "set", "inputSchema": schema }]);
    let server = in_front_of(vec![with_tools("far", tools).await]).await;
    let client = Legacy::of(&server).await;
    let listed = listed(&client).await;
    let schema = &listed["set"]["inputSchema"];
    assert_eq!(
        schema,
        &json!({
            "type": "object",
            "properties": {
                "limit": { "type": "integer" },
                "owner": { "description": "Null clears it.", "anyOf": [{ "type": "string" }, { "type": "null" }] },
                "unit": { "type": "string", "enum": ["a", "b"] },
            },
        })
    );

    let sent = json!({ "limit": null, "owner": null, "unit": "5", "other": 2.0 });
    assert_eq!(called(&client, "set", sent.clone()).await["arguments"], sent);
}

#[tokio::test]
async fn names_are_those_that_all_hosts_take_and_calls_find_their_tools() {
    let long = "x".repeat(65);
    let names = ["calendar.read", "a.b", "a_b", "a/b", "café", &long, "plain", "日本"];
    let tools: Vec<_> =
        names.iter().map(|name| json!({ "name": name, "inputSchema": {} })).collect();

    for others in [Vec::new(), vec![with_tools("other", json!([])).await]] {
        let mut upstreams = vec![with_tools("far", json!(tools)).await];
        upstreams.extend(others);
        let server = in_front_of(upstreams).await;
        let client = Legacy::of(&server).await;
        let listed = listed(&client).await;
        let mut own = BTreeMap::new();
        for (offered, tool) in &listed {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            assert!(offered.len() <= 64 && offered.chars().all(is_name), "{offered}");
            if let Some(name) = tool["_meta"]["larder/name"].as_str() {
                own.insert(name.to_owned(), offered.clone());
            } else if names.contains(&offered.as_str()) {
                own.insert(offered.clone(), offered.clone());
            }
        }
        assert_eq!(own.len(), names.len(), "{listed:?}");
        for (own, offered) in own {
            assert_eq!(called(&client, &offered, json!({})).await["name"], own, "{offered}");
        }
    }
}

#[tokio::test]
async fn what_upstreams_tell_models_is_passed_on() {
    let telling = async |name: &str, told: Value| {
        let told = told.clone();
        answering(name, move |method, _| {
            (method == "initialize").then(|| {
                json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "far", "version": "1" }, "instructions": told,
                })
            })
        })
        .await
    };

    // Of the only upstream in the first session, too.
    let server = in_front_of(vec![telling("far", json!("Call list first.")).await]).await;
    let client = Legacy::of(&server).await;
    assert_eq!(client.initialized["instructions"], "Call list first.");
    let discovered = Modern::of(&server).send("server/discover", json!({})).await.result();
    assert_eq!(discovered["instructions"], "Call list first.");

    let long = "x".repeat(100_000);
    let upstreams = vec![
        telling("a", json!("Of a.\u{1b}[31m")).await,
        telling("b", json!(long)).await,
        telling("c", json!(5)).await,
        telling("d", json!("")).await,
    ];
    let server = in_front_of(upstreams).await;
    listed(&Legacy::of(&server).await).await;
    let client = Legacy::of(&server).await;
    let told = client.initialized["instructions"].as_str().unwrap();
    assert!(told.contains("a (its tools are a__…): Of a.\\u{1b}[31m"), "{told:.200}");
    assert!(told.contains("b (its tools are b__…): xxx") && told.contains("100000 characters"));
    assert!(told.len() < 10_000 && !told.contains("c (") && !told.contains("d ("), "{told:.200}");
}

/// A server with a user interface of its own.
async fn board(name: &'static str) -> Settings {
    let tools = json!([
        {
            "name": "show", "inputSchema": object(),
            "_meta": { "ui": { "resourceUri": "ui://board/view" }, "openai/outputTemplate": "ui://board/view" },
        },
        { "name": format!("move_{name}"), "inputSchema": object() },
    ]);
    let page = format!("ui://board/{name}");
    answering(name, move |method, params| match method {
        "tools/list" => Some(json!({ "tools": tools })),
        "resources/list" => Some(json!({ "resources": [
            { "uri": "ui://board/view", "name": "view", "_meta": { "ui": { "resourceUri": "ui://board/view" } } },
            { "uri": page, "name": "page" },
        ] })),
        "resources/read" => Some(json!({ "contents": [{ "uri": params["uri"], "text": format!("of {name}") }] })),
        "tools/call" => Some(json!({
            "content": [{ "type": "text", "text": format!("{name}: {}", params["name"]) }],
            "_meta": { "openai/outputTemplate": "ui://board/view", "ui": { "resourceUri": "ui://board/view" }, "other": 1 },
        })),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn user_interfaces_of_several_upstreams_work() {
    let server = in_front_of(vec![board("one").await, board("two").await]).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;
    for name in ["one", "two"] {
        let uri = format!("ui://{name}/board/view");
        let meta = &tools[&format!("{name}__show")]["_meta"];
        assert_eq!(
            (&meta["ui"]["resourceUri"], &meta["openai/outputTemplate"]),
            (&json!(uri), &json!(uri))
        );
        let result = client.call(&format!("{name}__show"), json!({})).await.result();
        assert_eq!(result["_meta"]["openai/outputTemplate"], uri, "{result}");
        assert_eq!(
            (&result["_meta"]["ui"]["resourceUri"], &result["_meta"]["other"]),
            (&json!(uri), &json!(1))
        );
        let read = client.send("resources/read", json!({ "uri": uri })).await.result();
        assert_eq!(read["contents"][0]["text"], format!("of {name}"));

        // A page knows only the names and URIs of its own server.
        let moved = client.call(&format!("move_{name}"), json!({})).await.result();
        assert_eq!(text(&moved), format!("{name}: \"move_{name}\""));
        let uri = format!("ui://board/{name}");
        let read = client.send("resources/read", json!({ "uri": uri })).await.result();
        assert_eq!(read["contents"][0]["text"], format!("of {name}"));
    }
    // Two servers have these.
    assert_eq!(client.call("show", json!({})).await.error()["code"], -32602);
    let read = client.send("resources/read", json!({ "uri": "ui://board/view" })).await;
    assert!(read.error()["code"].is_i64(), "{read:?}");
}

#[tokio::test]
async fn older_clients_get_structured_content_that_is_an_object() {
    let upstream = answering("far", |method, params| match method {
        "tools/list" => Some(json!({ "tools": [{ "name": "get", "inputSchema": object() }] })),
        "tools/call" => {
            let content = params["arguments"]["content"].clone();
            Some(json!({ "content": content, "structuredContent": params["arguments"]["value"] }))
        }
        _ => None,
    });
    let server = in_front_of(vec![upstream.await]).await;
    let legacy = Legacy::of(&server).await;
    let modern = Modern::of(&server);
    let block = json!([{ "type": "text", "text": "two" }]);
    for (value, wrapped) in [
        (json!([1, 2]), json!({ "result": [1, 2] })),
        (json!("a"), json!({ "result": "a" })),
        (json!(7), json!({ "result": 7 })),
        (json!([]), json!({ "result": [] })),
        (json!({ "a": 1 }), json!({ "a": 1 })),
    ] {
        let arguments = json!({ "value": value, "content": block });
        let result = legacy.call("get", arguments.clone()).await.result();
        assert_eq!((&result["structuredContent"], text(&result)), (&wrapped, "two"), "{value}");
        let result = modern.call("get", arguments).await.result();
        assert_eq!(result["structuredContent"], value);
    }
    let bare = legacy.call("get", json!({ "value": [1], "content": [] })).await.result();
    assert_eq!((text(&bare), &bare["structuredContent"]), ("[1]", &json!({ "result": [1] })));
}

#[tokio::test]
async fn a_large_text_of_a_tool_with_an_output_schema_has_the_spilled_form() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let tools = json!([{ "name": "get", "inputSchema": object(), "outputSchema": schema }]);
    let upstream = answering("far", move |method, params| match method {
        "tools/list" => Some(json!({ "tools": tools })),
        "tools/call" => {
            let lines = params["arguments"]["lines"].as_u64().unwrap();
            let long: String = (0..lines).map(|n| format!("line {n} of a report\n")).collect();
            let error = params["arguments"]["error"] == true;
            Some(json!({ "content": [{ "type": "text", "text": long }], "isError": error }))
        }
        _ => None,
    });
    let server = in_front_of(vec![upstream.await]).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;
    let valid = jsonschema::validator_for(&tools["get"]["outputSchema"]).unwrap();
    for lines in [5_000, 100_000] {
        let result = client.call("get", json!({ "lines": lines })).await.result();
        let structured = &result["structuredContent"];
        assert!(valid.is_valid(structured), "{structured}");
        let uri = uri_in(text(&result));
        assert_eq!(structured["spilled"]["resources"][0]["uri"], uri, "{structured}");
    }
    let failed = client.call("get", json!({ "lines": 5_000, "error": true })).await.result();
    assert_eq!(failed.get("structuredContent"), None, "{failed}");
}

/// A server that returns its arguments as its structured content, to the byte.
async fn exact() -> Settings {
    let answer = |body: Bytes| async move {
        let text = std::str::from_utf8(&body).unwrap();
        let request: Value = serde_json::from_str(text).unwrap();
        let id = request["id"].to_string();
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "far", "version": "1" },
            })
            .to_string(),
            "tools/list" => {
                json!({ "tools": [{ "name": "get", "inputSchema": object() }] }).to_string()
            }
            "tools/call" => {
                #[derive(serde::Deserialize)]
                struct Message<'a> {
                    #[serde(borrow)]
                    params: Params<'a>,
                }
                #[derive(serde::Deserialize)]
                struct Params<'a> {
                    #[serde(borrow)]
                    arguments: &'a serde_json::value::RawValue,
                }
                let message: Message<'_> = serde_json::from_str(text).unwrap();
                let arguments = message.params.arguments.get();
                format!(
                    r#"{{"content":[{{"type":"text","text":"done"}}],"structuredContent":{arguments}}}"#
                )
            }
            _ => "{}".to_owned(),
        };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        ([("content-type", "application/json")], answer)
    };
    let router = Router::new().route("/mcp", routing::post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    remote("far", &url)
}

#[tokio::test]
async fn numbers_pass_as_they_are_written_in_arguments_and_results() {
    let server = in_front_of(vec![exact().await]).await;
    let client = Legacy::of(&server).await;
    let returned = async |arguments: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get","arguments":{arguments}}}}}"#
        );
        let request = client.post(&json!({})).body(body);
        let answer = crate::support::Answer::of(request).await;
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    for arguments in [
        r#"{"id":12345678901234567890123}"#,
        r#"{"price":1.10}"#,
        r#"{"a":[{"b":-0,"c":1e3},"1.10"],"d":0.1000000000000000055511151231257827}"#,
        r#"{"version":"1.10","n":5.00,"s":"larder:exact-content \"x\""}"#,
        r#"{"n":1,"f":1.5,"big":18446744073709551615}"#,
    ] {
        let answer = returned(arguments).await;
        assert!(answer.contains(&format!(r#""structuredContent":{arguments}"#)), "{answer}");
    }
    // Over several lines, as some clients write it.
    let answer = returned("{\n  \"price\": 1.10,\r\n  \"n\": [\n 2 ]\n}").await;
    assert!(answer.contains("1.10") && !answer.contains('\n'), "{answer}");

    // Stored content has the numbers, too.
    let long: Vec<_> = (0..20_000).map(|n| format!(r#"{{"n":{n}.10}}"#)).collect();
    let answer = returned(&format!(r#"{{"rows":[{}]}}"#, long.join(","))).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let uri = uri_in(text(&answer["result"]));
    let arguments = json!({ "uri": uri, "unit": "records", "offset": 1, "limit": 1 });
    let read = client.call("read_resource", arguments).await.text();
    assert!(read.contains(r#"{"n":1.10}"#), "{read}");
}
