//! Upstreams over HTTP whose answers a test writes: what reaches them and what comes back are as on
//! both sides.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, Bytes},
    http::StatusCode,
    response::Response,
    routing,
};
use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{http::remote, in_front_of, subscriptions::updated, text};
use crate::support::{Legacy, Modern};

/// The requests that an upstream has received.
type Received = Arc<Mutex<Vec<Value>>>;

/// An upstream whose answer to a method is made of its params: a result, or an error if it has a
/// code. Messages of `before` are sent before the answer.
async fn scripted(
    name: &str,
    answer: impl Fn(&str, &Value) -> Value + Clone + Send + Sync + 'static,
) -> (Settings, Received) {
    let received = Received::default();
    let log = Arc::clone(&received);
    let respond = move |body: Bytes| {
        let request: Value = serde_json::from_slice(&body).unwrap();
        log.lock().unwrap().push(request.clone());
        let response = responded(&request, &answer);
        async move { response }
    };

    let router = Router::new().route("/mcp", routing::post(respond));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (remote(name, &url), received)
}

fn responded(request: &Value, answer: &impl Fn(&str, &Value) -> Value) -> Response {
    let (Some(id), Some(method)) = (request.get("id"), request["method"].as_str()) else {
        let accepted = Response::builder().status(StatusCode::ACCEPTED);
        return accepted.body(Body::empty()).unwrap();
    };

    let mut told = match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "prompts": {}, "resources": { "subscribe": true } },
            "serverInfo": { "name": "scripted", "version": "1" },
        }),
        "ping" => json!({}),
        "tools/list" => {
            let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
            let tools = ["one", "two"].map(tool);
            json!({ "tools": tools })
        }
        "prompts/list" => json!({ "prompts": [{ "name": "one" }] }),
        _ => answer(method, &request["params"]),
    };

    let before = told["before"].take();
    let member = if told["code"].is_i64() { "error" } else { "result" };
    if let Some(members) = told.as_object_mut() {
        members.remove("before");
    }
    let last = json!({ "jsonrpc": "2.0", "id": id, member: told });

    let mut stream = String::new();
    for message in before.as_array().into_iter().flatten().chain([&last]) {
        stream += &format!("data: {message}\n\n");
    }
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from(stream)).unwrap()
}

fn contents(uri: &Value, text: &str) -> Value {
    json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }] })
}

fn requests(received: &Received, method: &str) -> Vec<Value> {
    let received = received.lock().unwrap();
    received.iter().filter(|each| each["method"] == method).cloned().collect()
}

#[tokio::test]
async fn a_query_that_an_upstream_lists_is_its_own_and_others_are_windows() {
    let answer = |method: &str, params: &Value| match method {
        "resources/list" => {
            let uris =
                ["logs://app?lines=2", "doc://a?revision=2", "rng://a?x=2&lines=1", "plain:a"];
            json!({ "resources": uris.map(|uri| json!({ "uri": uri, "name": uri })) })
        }
        "resources/templates/list" => {
            let template = |uri: &str| json!({ "uriTemplate": uri, "name": uri });
            let templates = ["logs://{name}{?lines}", "tail://{name}?x=1{&bytes*}"];
            json!({ "resourceTemplates": templates.map(template) })
        }
        _ => contents(&params["uri"], &format!("own {}\nline 2\n", params["uri"])),
    };

    let alone = scripted("far", answer).await;
    let (near, far) = (scripted("near", answer).await, scripted("far", answer).await);
    for (upstreams, prefix) in [(vec![alone.0], ""), (vec![near.0, far.0], "far+")] {
        let server = in_front_of(upstreams).await;
        let client = Legacy::of(&server).await;
        client.send("resources/list", json!({})).await.result();

        for (own, whole) in [
            ("logs://app?lines=2", true),
            ("logs://db?lines=2", true),
            ("doc://a?revision=2", true),
            ("rng://a?x=2&lines=1", true),
            ("tail://a?x=1&bytes=0-3", true),
            ("plain:a?lines=2", false),
            ("logs://db?bytes=12-16", false),
        ] {
            let uri = format!("{prefix}{own}");
            let read = client.send("resources/read", json!({ "uri": uri })).await.result();
            let shown = read["contents"][0]["text"].as_str().unwrap();
            let base = format!("own \"{own}\"");
            assert_eq!(shown.starts_with(&base), whole, "{uri}: {shown}");

            if whole {
                let read = client.call("read_resource", json!({ "uri": uri })).await.result();
                assert!(text(&read).contains(&base), "{uri}: {read}");
            }
        }

        // A reference brings the same content.
        let arguments = json!({ "log": format!("{{{{{prefix}logs://db?lines=2}}}}") });
        let tool = if prefix.is_empty() { "one" } else { "far__one" };
        client.call(tool, arguments).await;
    }

    let called = requests(&alone.1, "tools/call");
    assert_eq!(called[0]["params"]["arguments"]["log"], "own \"logs://db?lines=2\"\nline 2\n");
}

#[tokio::test]
async fn resources_are_read_by_the_names_that_upstreams_list_uris_or_not() {
    let names = [
        "note://My Note",
        "file:///C:/Docs/Grüße 1.txt",
        "C:\\docs\\a.txt",
        "/abs/path",
        "not a uri",
        "test:{x}",
        "a:b|c",
        "x:%zz",
        "urn:plain",
    ];
    let long = format!("long:{}", "a".repeat(4_000));
    let answer = move |method: &str, params: &Value| match method {
        "resources/list" => {
            let listed = names.iter().copied().chain([&*long]);
            let listed = listed.map(|name| json!({ "uri": name, "name": "n" }));
            json!({ "resources": listed.collect::<Vec<_>>() })
        }
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" if params["uri"] == "no such" => {
            json!({ "code": -32002, "message": "Resource not found" })
        }
        _ => contents(&params["uri"], &format!("own {}", params["uri"])),
    };

    let alone = scripted("far", answer.clone()).await.0;
    let two = vec![scripted("near", answer.clone()).await.0, scripted("far", answer).await.0];
    for (upstreams, prefix) in [(vec![alone], ""), (two, "far+")] {
        let server = in_front_of(upstreams).await;
        let client = Legacy::of(&server).await;
        let listed = client.send("resources/list", json!({})).await.result();
        let listed = listed["resources"].as_array().unwrap().clone();

        let own = listed.iter().filter_map(|each| each["uri"].as_str()?.strip_prefix(prefix));
        let own: Vec<_> = own.filter(|own| !own.starts_with("near+")).collect();
        assert!(own.len() > names.len(), "{listed:?}");
        for name in own {
            let uri = format!("{prefix}{name}");
            let expected = format!("own {}", json!(name));
            let read = client.send("resources/read", json!({ "uri": uri })).await.result();
            assert_eq!(read["contents"][0]["uri"], uri);
            assert_eq!(read["contents"][0]["text"], expected, "{uri:.99}");

            let read = client.call("read_resource", json!({ "uri": uri })).await.result();
            assert!(text(&read).contains(&expected), "{uri:.99}: {read:.300}");
        }
    }

    let server = in_front_of(Vec::new()).await;
    let client = Legacy::of(&server).await;
    let error = client.send("resources/read", json!({ "uri": "no such" })).await.error();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("is not a URI"), "{error}");
}

#[tokio::test]
async fn an_upstream_that_refuses_to_read_or_to_announce_its_resource_says_why() {
    let codes = [-32002, -32602, -32603, -32000, 7];
    let error =
        |code: i64| json!({ "code": code, "message": format!("locked {code}"), "data": [1] });
    let answer = move |method: &str, params: &Value| match method {
        "resources/list" => {
            let listed = codes.map(|code| json!({ "uri": format!("r:{code}"), "name": "r" }));
            json!({ "resources": listed })
        }
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/subscribe" if params["uri"] == "r:7" => json!({}),
        _ => {
            let code = params["uri"].as_str().unwrap().rsplit_once(':').unwrap().1.parse();
            error(code.unwrap_or(-32002))
        }
    };

    let (upstream, received) = scripted("far", answer).await;
    let server = in_front_of(vec![upstream]).await;
    let client = Legacy::of(&server).await;
    let modern = Modern::of(&server);
    client.send("resources/list", json!({})).await.result();
    for code in codes {
        let uri = json!({ "uri": format!("r:{code}") });
        let told = client.send("resources/read", uri.clone()).await.error();
        assert_eq!(told, error(code));

        // The modern era has no code of its own for resources that do not exist.
        let told = modern.send("resources/read", uri.clone()).await.error();
        assert_eq!(told["code"], if code == -32002 { -32602 } else { code });
        assert_eq!(told["message"], error(code)["message"]);

        let subscribed = client.send("resources/subscribe", uri).await;
        if code == 7 {
            assert_eq!(subscribed.result(), json!({}));
        } else {
            assert_eq!(subscribed.error(), error(code));
        }
    }

    // A resource that nobody lists may be another server's.
    let unknown = client.send("resources/read", json!({ "uri": "s:x" })).await.error();
    assert_eq!((&unknown["code"], &unknown["data"]), (&json!(-32002), &json!({ "uri": "s:x" })));

    // Nothing is ended that was refused.
    client.send("resources/unsubscribe", json!({ "uri": "r:-32603" })).await.result();
    client.send("resources/unsubscribe", json!({ "uri": "r:7" })).await.result();
    client.send("resources/subscribe", json!({ "uri": "r:-32000" })).await.error();
    let ended = requests(&received, "resources/unsubscribe");
    assert!(ended.iter().all(|request| request["params"]["uri"] == "r:7"), "{ended:?}");
    assert_eq!(requests(&received, "resources/subscribe").len(), codes.len() + 1);
}

#[tokio::test]
async fn the_meta_of_a_clients_request_reaches_the_upstream() {
    let answer = |method: &str, params: &Value| match method {
        "resources/list" => json!({ "resources": [{ "uri": "r:1", "name": "r" }] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "prompts/get" => json!({ "messages": [] }),
        "resources/read" => contents(&params["uri"], "x"),
        _ => json!({ "content": [] }),
    };
    let (upstream, received) = scripted("far", answer).await;
    let server = in_front_of(vec![upstream]).await;
    let legacy = Legacy::of(&server).await;
    let modern = Modern::of(&server);

    let own = json!({
        "openai/locale": "de",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "nested": { "a": [1, null] },
    });
    for (method, params) in [
        ("tools/call", json!({ "name": "one", "arguments": { "a": 1 } })),
        ("prompts/get", json!({ "name": "one" })),
        ("resources/read", json!({ "uri": "r:1" })),
    ] {
        let mut params = params;
        params["_meta"] = own.clone();
        params["_meta"]["progressToken"] = json!("mine");
        params["_meta"]["io.modelcontextprotocol/other"] = json!(1);
        legacy.send(method, params.clone()).await;

        let mut meta = Modern::meta();
        meta.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        params["_meta"] = meta;
        modern.send(method, params.clone()).await;

        for request in requests(&received, method) {
            let mut meta = request["params"]["_meta"].clone();
            let members = meta.as_object_mut().unwrap_or_else(|| panic!("{request}"));
            assert_ne!(members.remove("progressToken"), Some(json!("mine")));
            assert_eq!(meta, own, "{method}");
        }
        assert_eq!(requests(&received, method).len(), 2, "{method}");
    }

    // Long ones stay here, and the call is made all the same.
    let long = json!({ "long": "x".repeat(20_000) });
    legacy.send("tools/call", json!({ "name": "two", "_meta": long })).await.result();
    let last = requests(&received, "tools/call").pop().unwrap();
    assert_eq!((&last["params"]["name"], &last["params"]["_meta"]), (&json!("two"), &Value::Null));
}

#[tokio::test]
async fn a_client_hears_that_what_it_was_asked_to_visit_is_complete() {
    let visit =
        |id: &str| json!({ "mode": "url", "elicitationId": id, "url": "https://a.example" });
    let answer = move |method: &str, params: &Value| match method {
        "resources/list" => json!({ "resources": [] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        _ if params["name"] == "one" => {
            let visits = [visit("v1"), visit("v2")];
            json!({ "code": -32042, "message": "Visit first.", "data": { "elicitations": visits } })
        }
        _ => {
            let complete = |id: &str| {
                json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/elicitation/complete",
                    "params": { "elicitationId": id },
                })
            };
            let before = ["v2", "unknown", "v2", "v1"].map(complete);
            json!({ "before": before, "content": [] })
        }
    };

    let server = in_front_of(vec![scripted("far", answer).await.0]).await;
    let able = json!({ "elicitation": { "form": {}, "url": {} } });
    let asked = Legacy::able(&server, able.clone()).await;
    let other = Legacy::able(&server, able).await;
    let mut events = asked.listen().await;
    assert_eq!(events.next().await.unwrap().data, "");

    asked.call("one", json!({})).await.error();
    other.call("two", json!({})).await.result();
    asked.call("two", json!({})).await.result();
    for id in ["v2", "v1"] {
        let message = events.message().await;
        assert_eq!(message["method"], "notifications/elicitation/complete", "{message}");
        assert_eq!(message["params"], json!({ "elicitationId": id }));
    }
}

#[tokio::test]
async fn an_error_without_data_has_the_words_of_the_upstream() {
    let answer = |method: &str, params: &Value| match method {
        "resources/list" => json!({ "resources": [] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        _ if params["name"] == "one" => json!({ "code": -32601, "message": "Unknown tool: one" }),
        _ => json!({ "code": -32021, "message": "Say who you are" }),
    };
    let server = in_front_of(vec![scripted("far", answer).await.0]).await;
    let (legacy, modern) = (Legacy::of(&server).await, Modern::of(&server));
    for (tool, code, message) in
        [("one", -32601, "Unknown tool: one"), ("two", -32021, "Say who you are")]
    {
        let expected = json!({ "code": code, "message": message });
        assert_eq!(legacy.call(tool, json!({})).await.error(), expected);
        assert_eq!(modern.call(tool, json!({})).await.error(), expected);
    }
}

#[tokio::test]
async fn odd_requests_of_hosts_are_understood() {
    let server = in_front_of(Vec::new()).await;
    for (capabilities, info) in [
        (Value::Null, Value::Null),
        (json!({ "roots": true }), json!({ "name": 7 })),
        (json!([]), json!("host")),
    ] {
        let mut initialize = Legacy::initialize("2025-11-25");
        initialize["params"]["capabilities"] = capabilities;
        initialize["params"]["clientInfo"] = info;
        let client = Legacy::begin(&server.url, &initialize).await;

        let listed = client.send("tools/list", json!({ "cursor": "" })).await.result();
        assert!(!listed["tools"].as_array().unwrap().is_empty());
        let params = json!({ "name": "list_resources", "arguments": [] });
        let called = client.send("tools/call", params).await.result();
        assert_ne!(called["isError"], true, "{called}");
    }
}

#[tokio::test]
async fn resources_are_followed_by_the_names_that_upstreams_list_uris_or_not() {
    let names =
        ["note://My Note", "C:\\docs\\a.txt", "/abs/path", "not a uri", "Grüße", "urn:plain"];
    let answer = move |method: &str, params: &Value| match method {
        "resources/list" => {
            let listed = names.map(|name| json!({ "uri": name, "name": "n" }));
            json!({ "resources": listed })
        }
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/subscribe" if params["uri"] == "no such" => {
            json!({ "code": -32002, "message": "Resource not found" })
        }
        "resources/subscribe" | "resources/unsubscribe" => json!({}),
        // A call announces an update of the resource that its argument names.
        _ => {
            let params = json!({ "uri": params["arguments"]["of"] });
            let method = "notifications/resources/updated";
            let update = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            json!({ "before": [update], "content": [] })
        }
    };

    let alone = scripted("far", answer).await.0;
    let two = vec![scripted("near", answer).await.0, scripted("far", answer).await.0];
    for (upstreams, prefix, tool) in [(vec![alone], "", "one"), (two, "far+", "far__one")] {
        let server = in_front_of(upstreams).await;
        let client = Legacy::of(&server).await;
        client.send("resources/list", json!({})).await.result();
        let mut events = client.listen().await;
        // The first event of a stream that can be resumed is empty.
        assert_eq!(events.next().await.unwrap().data, "");

        let modern = Modern::of(&server);
        let uris = names.map(|name| format!("{prefix}{name}"));
        let mut listening = modern.listen("it", json!({ "resourceSubscriptions": uris })).await;

        for (name, uri) in names.iter().zip(&uris) {
            let subscribed = client.send("resources/subscribe", json!({ "uri": uri })).await;
            assert_eq!(subscribed.result(), json!({}), "{uri}");

            client.call(tool, json!({ "of": name })).await.result();
            // Both subscribers are one caller's, so each may hear of the other's update again.
            while &updated(&mut events).await != uri {}
            modern.call(tool, json!({ "of": name })).await.result();
            while &updated(&mut listening).await != uri {}
            client.send("resources/unsubscribe", json!({ "uri": uri })).await.result();
        }

        let unknown = json!({ "uri": format!("{prefix}no such") });
        let refused = client.send("resources/subscribe", unknown).await.error();
        assert_eq!(refused, json!({ "code": -32002, "message": "Resource not found" }));
        let long = json!({ "uri": format!("{prefix}{}", " ".repeat(9_000)) });
        assert_eq!(client.send("resources/subscribe", long).await.error()["code"], -32602);
    }

    let server = in_front_of(Vec::new()).await;
    let client = Legacy::of(&server).await;
    let error = client.send("resources/subscribe", json!({ "uri": "no such" })).await.error();
    assert!(error["message"].as_str().unwrap().contains("is not a URI"), "{error}");
}
