//! Modern requests: their metadata, and methods and headers of other eras.

use serde_json::{Value, json};

use crate::support::{Answer, Modern, Server};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// A request with this metadata.
fn with_meta(client: &Modern, method: &str, meta: &Value) -> reqwest::RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": { "_meta": meta } });
    client.bare(body).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method)
}

/// The usual metadata without a member.
fn without(member: &str) -> Value {
    let mut meta = Modern::meta();
    meta.as_object_mut().unwrap().remove(member);
    meta
}

#[tokio::test]
async fn missing_metadata_is_named() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for member in [VERSION, CAPABILITIES] {
        let answer = Answer::of(with_meta(&client, "server/discover", &without(member))).await;
        assert_eq!(answer.refusal(), (400, -32602, Some(json!(3))), "{member}");
        assert!(answer.error()["message"].as_str().unwrap().contains(member));
    }
    for meta in [json!(null), json!({}), json!("x"), json!({ VERSION: 7 })] {
        let answer = Answer::of(with_meta(&client, "server/discover", &meta)).await;
        assert_eq!(answer.refusal(), (400, -32602, Some(json!(3))), "{meta}");
    }
    let body = json!({ "jsonrpc": "2.0", "id": 3, "method": "server/discover" });
    let request = client.bare(body).header("mcp-protocol-version", "2026-07-28");
    let answer = Answer::of(request.header("mcp-method", "server/discover")).await;
    assert_eq!(answer.refusal(), (400, -32602, Some(json!(3))));
}

#[tokio::test]
async fn the_client_info_is_optional() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    Answer::of(with_meta(&client, "server/discover", &without(CLIENT))).await.result();
}

#[tokio::test]
async fn discovery_returns_versions_capabilities_and_server_info() {
    let server = Server::start().await;
    let result = Modern::of(&server).send("server/discover", json!({})).await.result();
    let versions = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
    assert_eq!(result["supportedVersions"], json!(versions));
    assert!(result["capabilities"]["tools"].is_object());
    assert!(result["capabilities"]["resources"].is_object());
    assert!(result["capabilities"].get("prompts").is_none());
    assert_eq!(result["instructions"], "For tests.");
    let server_info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(
        (&server_info["name"], &server_info["version"]),
        (&json!("fixture"), &json!("1.2.3"))
    );
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string());
}

#[tokio::test]
async fn an_unsupported_version_is_answered_with_the_supported_ones() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for version in ["v999.0.0", "1900-01-01", ""] {
        let mut meta = Modern::meta();
        meta[VERSION] = json!(version);
        for method in ["server/discover", "no/such/method"] {
            let body =
                json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": { "_meta": meta } });
            let request = client.bare(body).header("mcp-method", method);
            let answer = Answer::of(request.header("mcp-protocol-version", version)).await;
            assert_eq!(answer.refusal(), (400, -32022, Some(json!(3))), "{version}");
            let data = &answer.error()["data"];
            assert_eq!(data["requested"], version);
            assert!(data["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
        }
    }
}

#[tokio::test]
async fn the_configuration_can_disable_the_modern_era() {
    let server = Server::configured(|s| s.config.server.max_version = "2025-11-25".into()).await;
    let answer = Modern::of(&server).send("server/discover", json!({})).await;
    assert_eq!(answer.refusal(), (400, -32022, Some(json!(1))));
    let supported = answer.error()["data"]["supported"].clone();
    assert_eq!(supported[0], "2025-11-25");
}

#[tokio::test]
async fn methods_of_other_eras_and_unknown_methods_are_not_found() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "unknown/method",
        "prompts/list",
        "TOOLS/LIST",
    ] {
        let answer = client.send(method, json!({})).await;
        assert_eq!(answer.refusal(), (404, -32601, Some(json!(1))), "{method}");
    }
}

#[tokio::test]
async fn session_headers_are_ignored() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let request = client.request(1, "tools/list", json!({}));
    let request = request.header("mcp-session-id", "0123").header("last-event-id", "0123-4");
    let answer = Answer::of(request).await;
    assert!(answer.result()["tools"].is_array());
    assert_eq!(answer.header("mcp-session-id"), None);
}

#[tokio::test]
async fn notifications_are_accepted_and_responses_are_refused() {
    let server = Server::start().await;
    let client = Modern::of(&server);
    let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let taken = Answer::of(client.bare(body).header("mcp-protocol-version", "2026-07-28")).await;
    assert_eq!((taken.status, taken.body.len()), (202, 0));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let refused = Answer::of(client.bare(body).header("mcp-protocol-version", "2026-07-28")).await;
    assert_eq!(refused.refusal(), (400, -32600, Some(json!(1))));
}

#[tokio::test]
async fn caching_hints_are_the_same_on_every_page() {
    let server = Server::configured(|setup| setup.page_size = 2).await;
    let client = Modern::of(&server);
    for (method, member) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let mut cursor: Option<Value> = None;
        let mut hints = Vec::new();
        loop {
            let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
            let result = client.send(method, params).await.result();
            assert!(result[member].is_array());
            assert_eq!(result["resultType"], "complete");
            hints.push((result["ttlMs"].as_u64().unwrap(), result["cacheScope"].clone()));
            match result.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        assert!(hints.windows(2).all(|w| w[0] == w[1]), "{method}: {hints:?}");
    }
    let read = client.send("resources/read", json!({ "uri": "docs://welcome" })).await.result();
    assert!(read["ttlMs"].is_u64());
    assert_eq!(read["cacheScope"], "private");
}
