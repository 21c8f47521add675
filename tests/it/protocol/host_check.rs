//! The checks of Host, Origin, path and method, which need nothing else of a request.

use crate::support::{Raw, RawAnswer, Server};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A ping with this request line and these headers.
async fn with(server: &Server, line: &str, headers: &str) -> RawAnswer {
    let headers = format!("content-type: application/json\n{headers}");
    Raw::request(server, line, &headers, PING).await
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let server = Server::start().await;
    for line in ["POST /mcp HTTP/1.1", "GET /mcp HTTP/1.1", "DELETE /mcp HTTP/1.1"] {
        for headers in [
            "host: evil.example.com",
            "host: evil.example.com\norigin: http://evil.example.com",
            "host: localhost.evil.example.com",
            "host: localhost\norigin: http://evil.example.com",
            "host: localhost\norigin: null",
            "host: localhost\norigin: http://localhost@evil.example.com",
            "host: 10.0.0.1",
        ] {
            let answer = with(&server, line, headers).await;
            assert_eq!(answer.refusal(), (403, -32600, None), "{line} {headers}");
        }
    }
}

#[tokio::test]
async fn ambiguous_hosts_and_origins_are_bad_requests() {
    let server = Server::start().await;
    for (line, headers) in [
        ("POST /mcp HTTP/1.1", "host: localhost\nhost: localhost"),
        ("POST /mcp HTTP/1.1", "host: localhost\nhost: evil.example.com"),
        ("POST /mcp HTTP/1.1", "host: localhost:evil"),
        ("POST /mcp HTTP/1.1", "host: localhost:1@evil.example.com"),
        ("POST http://evil.example.com/mcp HTTP/1.1", "host: localhost"),
        ("POST http://localhost/mcp HTTP/1.1", "host: evil.example.com"),
        (
            "POST /mcp HTTP/1.1",
            "host: localhost\norigin: http://localhost:1\norigin: http://evil.example.com",
        ),
    ] {
        let answer = with(&server, line, headers).await;
        assert_eq!(answer.refusal(), (400, -32600, None), "{line} {headers}");
    }
    let answer = with(&server, "POST http://localhost/mcp HTTP/1.1", "host: localhost").await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn hosts_and_origins_of_this_machine_are_allowed() {
    let server = Server::start().await;
    let port = server.address.port();
    for headers in [
        "host: localhost".to_owned(),
        format!("host: localhost:{port}"),
        format!("host: 127.0.0.1:{port}\norigin: http://127.0.0.1:{port}"),
        format!("host: [::1]:{port}\norigin: http://localhost:6274"),
    ] {
        let answer = with(&server, "POST /mcp HTTP/1.1", &headers).await;
        assert_eq!(answer.status, 200, "{headers}");
    }
}

#[tokio::test]
async fn the_configuration_allows_more_hosts_and_origins() {
    let server = Server::configured(|setup| {
        setup.config.server.allowed_hosts = vec!["mcp.example.com".into()];
        setup.config.server.allowed_origins = vec!["https://app.example.com".into()];
    })
    .await;
    let post = "POST /mcp HTTP/1.1";
    let allowed = "host: mcp.example.com\norigin: https://app.example.com";
    assert_eq!(with(&server, post, allowed).await.status, 200);
    let refused = "host: mcp.example.com\norigin: http://app.example.com";
    assert_eq!(with(&server, post, refused).await.status, 403);
}

#[tokio::test]
async fn a_request_without_a_host_is_refused() {
    let server = Server::start().await;
    let answer = with(&server, "POST /mcp HTTP/1.1", "x-nothing: 1").await;
    assert!(matches!(answer.status, 400 | 403), "{answer:?}");
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let server = Server::start().await;
    for path in ["/", "/mcp//", "/mcp/more", "/MCP", "/sse"] {
        let answer = with(&server, &format!("POST {path} HTTP/1.1"), "host: localhost").await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains("/mcp"));
    }
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD"] {
        let answer = with(&server, &format!("{method} /mcp HTTP/1.1"), "host: localhost").await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: "), "{}", answer.head);
    }
}

#[tokio::test]
async fn the_modern_era_allows_post_only() {
    let server = Server::start().await;
    for method in ["GET", "DELETE"] {
        let headers = "host: localhost\naccept: text/event-stream\n\
            mcp-protocol-version: 2026-07-28\nmcp-session-id: 0123\nlast-event-id: 0123-1";
        let answer = with(&server, &format!("{method} /mcp HTTP/1.1"), headers).await;
        assert_eq!(answer.status, 405);
        assert!(answer.head.to_lowercase().contains("allow: post"), "{}", answer.head);
    }
}
