//! The headers that mirror the body of a modern request.

use serde_json::{Value, json};

use crate::support::{Answer, Modern, Raw, Server};

/// A tool call with these headers only.
async fn call(client: &Modern, name: &str, headers: &[(&str, &str)]) -> Answer {
    let params = json!({ "name": name, "arguments": { "text": "heard" } });
    let mut request = client.bare(Modern::body(&json!("id"), "tools/call", params));
    for (header, value) in headers {
        request = request.header(*header, *value);
    }
    Answer::of(request).await
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const METHOD: (&str, &str) = ("mcp-method", "tools/call");
const NAME: (&str, &str) = ("mcp-name", "echo");

#[tokio::test]
async fn headers_that_mirror_the_body_are_accepted_in_any_case_and_spacing() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for headers in [
        [VERSION, METHOD, NAME],
        [VERSION, ("MCP-METHOD", "tools/call"), ("MCP-NAME", "echo")],
        [VERSION, METHOD, ("mcp-name", "  echo  ")],
        [VERSION, METHOD, ("mcp-name", "=?base64?ZWNobw==?=")],
    ] {
        assert_eq!(call(&client, "echo", &headers).await.text(), "heard", "{headers:?}");
    }
    // Another header may occur twice.
    let headers = [VERSION, METHOD, NAME, ("x-other", "1"), ("x-other", "2")];
    assert_eq!(call(&client, "echo", &headers).await.text(), "heard");
}

#[tokio::test]
async fn headers_that_are_missing_or_do_not_match_are_refused() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let refused: [&[(&str, &str)]; 15] = [
        &[METHOD, NAME],
        &[VERSION, NAME],
        &[VERSION, METHOD],
        &[("mcp-protocol-version", "2025-11-25"), METHOD, NAME],
        &[("mcp-protocol-version", "v999.0.0"), METHOD, NAME],
        &[VERSION, ("mcp-method", "tools/list"), NAME],
        &[VERSION, ("mcp-method", "TOOLS/CALL"), NAME],
        &[VERSION, METHOD, ("mcp-name", "add")],
        &[VERSION, METHOD, ("mcp-name", "Echo")],
        &[VERSION, METHOD, ("mcp-name", "=?base64?ZWNobw?=")],
        &[VERSION, METHOD, ("mcp-name", "=?base64?*?=")],
        &[VERSION, METHOD, ("mcp-name", "=?BASE64?ZWNobw==?=")],
        &[VERSION, METHOD, ("mcp-name", "")],
        &[VERSION, METHOD, NAME, ("mcp-name", "add")],
        &[VERSION, METHOD, METHOD, NAME],
    ];
    for headers in refused {
        let answer = call(&client, "echo", headers).await;
        assert_eq!(answer.refusal(), (400, -32020, Some(json!("id"))), "{headers:?}");
    }
}

#[tokio::test]
async fn a_name_that_does_not_fit_into_a_header_is_encoded_in_base64() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let uri = "results://caf%C3%A9/1";
    client.create(json!({ "uri": uri, "text": "ristretto" })).await;
    let params = json!({ "uri": uri });
    let request = client.bare(Modern::body(&json!(1), "resources/read", params));
    let request = request.header(VERSION.0, VERSION.1).header("mcp-method", "resources/read");
    let request = request.header("mcp-name", "=?base64?cmVzdWx0czovL2NhZiVDMyVBOS8x?=");
    assert_eq!(Answer::of(request).await.result()["contents"][0]["text"], "ristretto");
    // The header is right (`naïve`), although no tool has this name.
    let headers = [VERSION, METHOD, ("mcp-name", "=?base64?bmHDr3Zl?=")];
    assert_eq!(call(&client, "naïve", &headers).await.error()["message"], "Unknown tool: naïve");
}

#[tokio::test]
async fn invalid_bytes_in_a_header_are_a_mismatch() {
    let server = Server::start().await;
    let body = Modern::body(&json!(1), "tools/call", json!({ "name": "echo" })).to_string();
    let mut raw = Raw::connect(&server).await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
        connection: close\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
        content-length: {}\r\nmcp-name: ",
        body.len()
    );
    raw.write([head.as_bytes(), b"\xff\xfe\r\n\r\n", body.as_bytes()].concat()).await;
    assert_eq!(raw.answer().await.refusal(), (400, -32020, Some(json!(1))));
}

#[tokio::test]
async fn metadata_decides_the_era_and_the_header_must_agree() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    // Modern metadata without any header, and under a legacy header.
    assert_eq!(call(&client, "echo", &[]).await.refusal().1, -32020);
    // A modern header over legacy metadata.
    let body: Value = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2025-11-25",
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    let request = client.bare(body).header(VERSION.0, VERSION.1).header("mcp-method", "tools/list");
    assert_eq!(Answer::of(request).await.refusal(), (400, -32020, Some(json!(1))));
}
