//! Invalid input is answered as the protocol says, and the server goes on.

use serde_json::{Value, json};

use crate::support::{Modern, Raw, Server};

const JSON: &str = "host: localhost\ncontent-type: application/json";

#[tokio::test]
async fn an_invalid_request_gets_its_error_code_and_its_id_if_it_has_one() {
    let server = Server::start().await;
    let list = r#""method":"tools/list""#;
    for (body, code, id) in [
        (String::new(), -32700, None),
        ("{".into(), -32700, None),
        ("no json".into(), -32700, None),
        (format!(r#"{{"jsonrpc":"2.0","id":1,{list}}} and more"#), -32700, Some(json!(1))),
        ("[]".into(), -32600, None),
        (format!(r#"[{{"jsonrpc":"2.0","id":1,{list}}}]"#), -32600, None),
        ("7".into(), -32600, None),
        ("null".into(), -32600, None),
        ("\"text\"".into(), -32600, None),
        ("{}".into(), -32600, None),
        (format!(r#"{{"jsonrpc":"2.0","id":null,{list}}}"#), -32600, None),
        (format!(r#"{{"jsonrpc":"2.0","id":1.5,{list}}}"#), -32600, None),
        (format!(r#"{{"jsonrpc":"2.0","id":true,{list}}}"#), -32600, None),
        (format!(r#"{{"jsonrpc":"2.0","id":{{}},{list}}}"#), -32600, None),
        (format!(r#"{{"jsonrpc":"1.0","id":"a",{list}}}"#), -32600, Some(json!("a"))),
        (format!(r#"{{"id":3,{list}}}"#), -32600, Some(json!(3))),
        (format!(r#"{{"jsonrpc":"2.0","id":4,{list},"params":[1]}}"#), -32600, Some(json!(4))),
        (format!(r#"{{"jsonrpc":"2.0","id":4,{list},"params":7}}"#), -32600, Some(json!(4))),
        (r#"{"jsonrpc":"2.0","id":5}"#.into(), -32600, Some(json!(5))),
        (r#"{"jsonrpc":"2.0","id":6,"method":7}"#.into(), -32600, None),
    ] {
        let answer = Raw::post(&server, JSON, &body).await;
        assert_eq!(answer.refusal(), (400, code, id), "{body}");
    }
    assert_goes_on(&server).await;
}

#[tokio::test]
async fn text_that_is_not_utf8_is_a_parse_error() {
    let server = Server::start().await;
    let body = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}";
    let refusal = Raw::post(&server, JSON, body).await.refusal();
    assert_eq!(refusal, (400, -32700, Some(json!(1))));
    assert_goes_on(&server).await;
}

#[tokio::test]
async fn deeply_nested_json_does_no_harm() {
    let server = Server::start().await;
    let deep = "[".repeat(1_000_000);
    // More values than the limit, which is checked before parsing.
    assert_eq!(Raw::post(&server, JSON, &deep).await.refusal(), (413, -32600, None));
    assert_eq!(Raw::post(&server, JSON, &deep[..190_000]).await.refusal().0, 400);
    let objects = "{\"a\":".repeat(190_000);
    assert_eq!(Raw::post(&server, JSON, &objects).await.refusal(), (400, -32700, None));
    let closed = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"cursor":{closed}}}}}"#
    );
    assert_eq!(Raw::post(&server, JSON, &body).await.refusal(), (200, -32602, Some(json!(1))));
    assert_goes_on(&server).await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let server = Server::configured(|setup| setup.config.limits.body_bytes = 64 << 10).await;
    let mut raw = Raw::connect(&server).await;
    // The announced body is never sent.
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
        connection: close\r\ncontent-length: 1000000000\r\n\r\n";
    raw.write(head).await;
    assert_eq!(raw.answer().await.refusal(), (413, -32600, None));
    assert_goes_on(&server).await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_although_its_length_is_not_announced() {
    let server = Server::configured(|setup| setup.config.limits.body_bytes = 64 << 10).await;
    let mut raw = Raw::connect(&server).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
        connection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    raw.write(head).await;
    for _ in 0..5 {
        let chunk = " ".repeat(16 << 10);
        raw.write(format!("{:x}\r\n{chunk}\r\n", chunk.len())).await;
    }
    let answer = raw.answer().await;
    assert_eq!(answer.refusal(), (413, -32600, None));
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("65536"));
    assert_goes_on(&server).await;
}

#[tokio::test]
async fn a_body_of_too_many_values_is_refused_however_small_they_are() {
    let server = Server::configured(|setup| setup.config.limits.body_values = 1000).await;
    let body = |objects: usize| {
        let objects = vec!["{}"; objects].join(",");
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"x","more":[{objects}]}}}}}}"#
        )
    };
    assert_eq!(Raw::post(&server, JSON, body(900)).await.status, 200);
    let answer = Raw::post(&server, JSON, body(1100)).await;
    assert_eq!(answer.refusal(), (413, -32600, None));
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("1000") && message.contains("limits.body_values"), "{message}");
    assert_goes_on(&server).await;
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_accepted() {
    let server = Server::configured(|setup| setup.config.limits.body_bytes = 4096).await;
    let body = |padding: usize| {
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        format!("{request}{}", " ".repeat(padding - request.len()))
    };
    assert_eq!(Raw::post(&server, JSON, body(4096)).await.status, 200);
    assert_eq!(Raw::post(&server, JSON, body(4097)).await.status, 413);
}

#[tokio::test]
async fn an_incomplete_body_affects_no_other_request() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    raw.write("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n").await;
    raw.write("content-length: 100\r\n\r\n{\"jsonrpc\":").await;
    drop(raw);
    assert_goes_on(&server).await;
}

#[tokio::test]
async fn other_media_types_are_refused() {
    let server = Server::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for media in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
        let headers = format!("host: localhost\ncontent-type: {media}");
        assert_eq!(Raw::post(&server, &headers, ping).await.refusal(), (415, -32600, None));
    }
    assert_eq!(Raw::post(&server, "host: localhost", ping).await.status, 415);
    for media in ["application/json; charset=utf-8", "Application/JSON"] {
        let headers = format!("host: localhost\ncontent-type: {media}");
        assert_eq!(Raw::post(&server, &headers, ping).await.status, 200, "{media}");
    }
}

#[tokio::test]
async fn a_client_that_accepts_no_form_of_response_is_refused() {
    let server = Server::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for accept in ["text/html", "application/json;q=0", "image/*"] {
        let headers = format!("{JSON}\naccept: {accept}");
        assert_eq!(Raw::post(&server, &headers, ping).await.refusal(), (406, -32600, None));
    }
    let headers = format!("{JSON}\naccept: application/json");
    let listen = Modern::body(&json!(1), "subscriptions/listen", json!({ "notifications": {} }));
    let headers =
        format!("{headers}\nmcp-protocol-version: 2026-07-28\nmcp-method: subscriptions/listen");
    assert_eq!(Raw::post(&server, &headers, listen.to_string()).await.status, 406);
}

#[tokio::test]
async fn bytes_that_are_not_http_end_their_connection_only() {
    let server = Server::start().await;
    let mut raw = Raw::connect(&server).await;
    raw.write("\x16\x03\x01 this is not HTTP\r\n\r\n").await;
    assert_eq!(raw.answer().await.status, 400);
    assert_goes_on(&server).await;
}

/// Checks that the server still answers.
async fn assert_goes_on(server: &Server) {
    let answer: Value = Modern::of(server).send("tools/list", json!({})).await.result();
    assert!(answer["tools"].is_array());
}
