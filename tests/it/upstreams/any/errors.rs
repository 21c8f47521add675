//! Errors of upstreams keep their meaning and are bounded, and what is secret stays in the log.

use axum::{Router, body::Body, response::Response, routing};
use base64::{Engine, prelude::BASE64_STANDARD};
use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{
    super::{http::remote, in_front_of, text},
    Any, WAYS, Way, response, usual,
};
use crate::support::{Legacy, Modern};

#[tokio::test]
async fn code_message_and_data_of_an_error_reach_the_caller() {
    let data = json!({ "elicitations": [{ "mode": "url", "url": "https://x.example/a" }] });
    let error = json!({ "code": -32042, "message": "Log in first.", "data": data });
    for way in WAYS {
        let any = Any::by(way).await;
        let sent = response(&format!(r#""error":{error}"#));
        assert_eq!(any.call(&sent).await.error(), error, "{way:?}");
        assert_eq!(any.prompt(&sent).await.error(), error, "{way:?}");
        assert_eq!(any.read(&sent).await.error(), error, "{way:?}");
    }
}

#[tokio::test]
async fn errors_of_any_shape_say_what_was_sent() {
    for way in WAYS {
        let any = Any::by(way).await;
        for (sent, shown) in [
            (r#""boom""#, "boom"),
            ("[]", "[]"),
            ("5", "5"),
            (r#"{"code":-32021,"message":"no","data":"a text"}"#, "no"),
            (r#"{"code":"-32000","message":"as text"}"#, "as text"),
            (r#"{"message":"without a code"}"#, "without a code"),
            (r#"{"code":7}"#, r#"{"code":7}"#),
        ] {
            let said = any.call(response(&format!(r#""error":{sent}"#))).await.error();
            assert!(said["message"].as_str().unwrap().contains(shown), "{way:?} {sent}: {said}");
        }
    }
}

#[tokio::test]
async fn texts_of_errors_are_bounded_and_show_their_control_characters() {
    for way in WAYS {
        let any = Any::by(way).await;
        let message = format!("a\u{1b}[2J\u{0}\u{202e}{}", "x".repeat(100_000));
        let error = json!({ "code": -32000, "message": message, "data": "y".repeat(1 << 20) });
        let said = any.call(response(&format!(r#""error":{error}"#))).await.error();
        let message = said["message"].as_str().unwrap();
        assert!(message.chars().count() <= 2_000 + 200, "{way:?}: {}", message.len());
        assert!(message.starts_with(r"a\u{1b}[2J\u{0}\u{202e}xxx"), "{way:?}: {message}");
        assert!(said.to_string().len() < 32 << 10, "{way:?}");
    }
}

/// A server over HTTP that refuses calls with a status, a header and a body.
async fn refusing(status: u16, header: (&'static str, &'static str), body: String) -> Settings {
    let answer = move |request: String| {
        let (request, body): (Value, _) = (serde_json::from_str(&request).unwrap(), body.clone());
        async move {
            let method = request["method"].as_str().unwrap_or_default();
            let response = Response::builder().header("content-type", "application/json");
            match (request.get("id"), method) {
                (Some(id), "tools/call" | "prompts/get") => {
                    let body = body.replace("$ID", &id.to_string());
                    let response = response.status(status).header(header.0, header.1);
                    response.body(Body::from(body)).unwrap()
                }
                (Some(id), _) => response.body(Body::from(usual(method, id).to_string())).unwrap(),
                (None, _) => response.status(202).body(Body::empty()).unwrap(),
            }
        }
    };
    let router = Router::new().route("/mcp", routing::post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    remote("any", &url)
}

#[tokio::test]
async fn the_status_and_the_body_of_a_refusal_reach_the_caller() {
    let body = format!("Slow down, {}\u{1b}[31m", "please ".repeat(10_000));
    let settings = refusing(429, ("retry-after", "17"), body).await;
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;
    let refused = client.call("say", json!({})).await.result();
    let said = text(&refused);
    for part in ["HTTP 429", "Retry-After: 17", "Slow down, please"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(refused["isError"] == true && said.chars().count() < 2_500, "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
    let said = client.send("prompts/get", json!({ "name": "say" })).await.error();
    assert!(said["message"].as_str().unwrap().contains("HTTP 429"), "{said}");
    assert_eq!(said["data"], json!({ "status": 429, "retryAfter": "17" }));
}

#[tokio::test]
async fn an_error_in_the_body_of_a_refusal_keeps_its_meaning_with_or_without_an_id() {
    for id in ["$ID", "null"] {
        let error = json!({ "code": -32042, "message": "Log in.", "data": { "a": 1 } });
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        let settings = refusing(400, ("x-other", "1"), body).await;
        let server = in_front_of(vec![settings]).await;
        let said = Modern::of(&server).call("say", json!({})).await.error();
        assert_eq!((&said["code"], &said["data"]), (&error["code"], &error["data"]), "{id}");
        assert!(said["message"].as_str().unwrap().starts_with("Log in."), "{id}: {said}");
    }
}

#[tokio::test]
async fn a_process_that_ends_tells_callers_no_more_than_how() {
    let script = r"
        console.error('connecting to postgres://larder:hunter2@db\u001b[2J\u202e');
        process.exit(1);
    ";
    let settings = Settings::new("odd", ["node", "-e", script].map(str::to_owned).to_vec());
    let server = in_front_of(vec![settings]).await;
    let refused = Legacy::of(&server).await.call("echo", json!({})).await.result();
    let said = text(&refused);
    assert!(said.starts_with("odd could not be started (exit code 1)."), "{said}");
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
}

#[tokio::test]
async fn a_definition_that_no_model_should_read_is_left_out() {
    let huge = "d".repeat(2 << 20);
    let object = r#"{"type":"object"}"#;
    let properties: Vec<_> =
        (0..50_000).map(|n| format!(r#""p{n}":{{"type":"string"}},"#)).collect();
    let properties = properties.concat();
    let tools = format!(
        r#"{{"tools":[
            {{"name":"long","description":"{huge}","inputSchema":{object}}},
            {{"name":"wide","inputSchema":{{"type":"object","properties":{{{properties}"p":{{}}}}}}}},
            {{"name":"hidden","description":"a\u0000b\u001b[2Jc\u202ed","title":"t\u0007","inputSchema":{{"type":"object","properties":{{"x":{{"description":"n\u0000"}}}}}}}},
            {{"name":"keyed","inputSchema":{{"type":"object","properties":{{"\u001b[31m":{{}}}}}}}},
            {{"name":"say","inputSchema":{object}}}
        ]}}"#
    );
    let message = super::result(&tools.replace('\n', ""));
    let any = Any::choosing(Way::Json, vec![("tools/list", message.into_bytes())]).await;
    let listed = any.client.send("tools/list", json!({})).await.result();
    let tools = listed["tools"].as_array().unwrap();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let long = find("long").expect("it is listed")["description"].as_str().unwrap();
    assert!(long.len() < 20_000 && long.contains("cut"), "{}", &long[long.len() - 200..]);
    let hidden = find("hidden").expect("it is listed");
    assert_eq!(hidden["description"], r"a\u{0}b\u{1b}[2Jc\u{202e}d");
    assert_eq!(hidden["inputSchema"]["properties"]["x"]["description"], r"n\u{0}");
    assert!(find("wide").is_none() && find("keyed").is_none() && find("say").is_some());
    let fine = super::result(r#"{"content":[{"type":"text","text":"fine"}]}"#);
    let bytes = BASE64_STANDARD.encode(fine);
    assert_eq!(text(&any.client.call("say", json!({ "bytes": bytes })).await.result()), "fine");
}
