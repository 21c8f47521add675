//! Clients in browsers: preflights need no token, and pages may read the headers that they need.

use larder::config::{AuthMode, TokenConfig};

use crate::support::{Raw, Server};

const PAGE: &str = "https://app.example.com";

/// A server that requires a token and allows the origin [`PAGE`].
async fn server() -> Server {
    Server::configured(|setup| {
        setup.config.server.allowed_origins = vec![PAGE.into()];
        setup.config.auth.mode = AuthMode::Static;
        let sha256 = "0".repeat(64);
        setup.config.auth.tokens =
            vec![TokenConfig { name: "a".into(), sha256, ..TokenConfig::default() }];
    })
    .await
}

fn has(head: &str, line: &str) -> bool {
    head.to_ascii_lowercase().lines().any(|l| l == line.to_ascii_lowercase())
}

#[tokio::test]
async fn a_preflight_is_answered_without_a_token() {
    let server = server().await;
    let headers = format!(
        "host: localhost\norigin: {PAGE}\naccess-control-request-method: POST\naccess-control-request-headers: authorization,mcp-param-x"
    );
    let answer = Raw::request(&server, "OPTIONS /mcp HTTP/1.1", &headers, "").await;
    assert_eq!(answer.status, 204, "{answer:?}");
    for line in [
        &format!("access-control-allow-origin: {PAGE}"),
        "access-control-allow-methods: GET, POST, DELETE",
        "access-control-allow-headers: authorization,mcp-param-x",
    ] {
        assert!(has(&answer.head, line), "{line} in {}", answer.head);
    }
    let other = headers.replace(PAGE, "https://evil.example.com");
    let answer = Raw::request(&server, "OPTIONS /mcp HTTP/1.1", &other, "").await;
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[tokio::test]
async fn other_requests_need_a_token_and_pages_see_the_challenge() {
    let server = server().await;
    let line = "OPTIONS /mcp HTTP/1.1";
    for headers in ["host: localhost".to_owned(), format!("host: localhost\norigin: {PAGE}")] {
        assert_eq!(Raw::request(&server, line, &headers, "").await.status, 401, "{headers}");
    }
    let page = format!("host: localhost\norigin: {PAGE}\ncontent-type: application/json");
    let answer = Raw::post(&server, &page, "{}").await;
    assert_eq!(answer.status, 401);
    assert!(has(&answer.head, &format!("access-control-allow-origin: {PAGE}")));
    let exposed = answer.head.lines().find(|l| l.starts_with("access-control-expose-headers"));
    let exposed = exposed.unwrap();
    assert!(exposed.contains("www-authenticate") && exposed.contains("mcp-session-id"));
    // A response to a request without an origin has no CORS headers.
    let answer = Raw::post(&server, "host: localhost", "{}").await;
    assert!(!answer.head.contains("access-control"), "{}", answer.head);
}
