//! The response to each fault of a request's credentials, and the order of the checks.

use serde_json::json;

use super::{METADATA, challenge, issuer::Reply, ping, signer::Signer, world, world_with};
use crate::support::{Answer, Raw, http};

#[tokio::test]
async fn without_credentials_the_challenge_names_no_error() {
    let world = world_with(|config| {
        config.auth.required_scopes = vec!["mcp:read".into(), "mcp:list".into()];
    })
    .await;
    for scheme in [None, Some("Basic dTpw"), Some("DPoP abc")] {
        let request = match scheme {
            None => ping(&world.server),
            Some(value) => ping(&world.server).header("authorization", value),
        };
        let answer = Answer::of(request).await;
        assert_eq!(answer.status, 401);
        assert_eq!(
            challenge(&answer),
            format!("resource_metadata=\"{METADATA}\", scope=\"mcp:list mcp:read\"")
        );
    }
}

#[tokio::test]
async fn without_required_scopes_the_challenge_names_none() {
    let world = world().await;
    let answer = Answer::of(ping(&world.server)).await;
    assert_eq!(challenge(&answer), format!("resource_metadata=\"{METADATA}\""));
}

#[tokio::test]
async fn every_method_is_challenged() {
    let world = world().await;
    for method in ["GET", "DELETE", "POST", "PUT", "OPTIONS"] {
        let line = format!("{method} /mcp HTTP/1.1");
        let headers = "host: localhost\nmcp-session-id: 0123\naccept: text/event-stream";
        assert_eq!(Raw::request(&world.server, &line, headers, "").await.status, 401, "{method}");
    }
}

#[tokio::test]
async fn a_header_that_cannot_be_read_is_an_invalid_request() {
    let world = world().await;
    let token = world.token(|_| {});
    for bad in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {token} {token}"),
        format!("Bearer {token}, Bearer {token}"),
        format!("Bearer \"{token}\""),
    ] {
        let answer = world.with_header(&bad).await;
        assert_eq!(answer.status, 400, "{bad}");
        assert!(challenge(&answer).contains("error=\"invalid_request\""));
    }
}

#[tokio::test]
async fn two_authorization_headers_are_an_invalid_request() {
    let world = world().await;
    let bearer = format!("Bearer {}", world.token(|_| {}));
    let request = ping(&world.server).header("authorization", &bearer);
    let answer = Answer::of(request.header("authorization", &bearer)).await;
    assert_eq!(answer.status, 400);
    assert!(challenge(&answer).contains("error=\"invalid_request\""));
}

#[tokio::test]
async fn the_scheme_is_read_in_any_case() {
    let world = world().await;
    let token = world.token(|_| {});
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        assert_eq!(world.with_header(&format!("{scheme} {token}")).await.status, 200);
    }
}

#[tokio::test]
async fn a_token_in_the_query_or_the_body_is_ignored() {
    let world = world().await;
    let token = world.token(|_| {});
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "access_token": token });
    let request = http().post(format!("{}?access_token={token}", world.server.url));
    let request = request.header("content-type", "application/json").body(body.to_string());
    let answer = Answer::of(request).await;
    assert_eq!(answer.status, 401);
    assert!(!challenge(&answer).contains("error"));
}

#[tokio::test]
async fn a_token_that_is_too_long_is_not_decoded() {
    let world = world().await;
    let long = world.token(|claims| claims["x"] = json!("x".repeat(16 << 10)));
    let answer = world.with_token(&long).await;
    assert_eq!(answer.status, 431);
    assert_eq!(world.issuer.hits("/jwks"), 0);
}

#[tokio::test]
async fn without_the_issuers_keys_a_token_is_neither_accepted_nor_invalid() {
    for reply in [
        Reply::Status(503, json!({})),
        Reply::Status(500, json!({ "keys": [] })),
        Reply::Status(404, json!({})),
        Reply::Text("no JSON".into()),
        Reply::Json(json!({ "keys": 1 })),
    ] {
        let world = world().await;
        world.issuer.set_reply("/jwks", reply.clone());
        let answer = world.with_token(&world.token(|_| {})).await;
        assert_eq!(answer.status, 503, "{reply:?}");
        assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
        assert_eq!(answer.header("www-authenticate"), None);
        // An expired token is invalid, whatever its signature.
        let answer = world.with_token(&world.token(|claims| claims["exp"] = json!(1))).await;
        assert_eq!(answer.status, 401, "{reply:?}");
    }
}

#[tokio::test]
async fn with_an_unreachable_issuer_a_token_is_neither_accepted_nor_invalid() {
    let world = world_with(|config| config.auth.issuers[0].issuer = "http://127.0.0.1:1".into());
    let world = world.await;
    let token = world.token(|claims| claims["iss"] = json!("http://127.0.0.1:1"));
    assert_eq!(world.with_token(&token).await.status, 503);
}

#[tokio::test]
async fn host_and_origin_are_checked_before_the_token() {
    let world = world().await;
    for headers in [
        "host: evil.example",
        "host: localhost\norigin: null",
        "host: localhost\norigin: https://evil.example",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let line = format!("{method} /mcp HTTP/1.1");
            let answer = Raw::request(&world.server, &line, headers, "{").await;
            assert_eq!(answer.status, 403, "{method} {headers}");
            assert!(!answer.head.to_lowercase().contains("www-authenticate"));
        }
    }
}

#[tokio::test]
async fn the_size_is_checked_before_the_token_and_the_token_before_the_body() {
    let world = world_with(|config| config.limits.body_bytes = 100).await;
    let post = "POST /mcp HTTP/1.1";
    let json = "host: localhost\ncontent-type: application/json";
    let large = Raw::request(&world.server, post, json, "x".repeat(101)).await;
    assert_eq!(large.status, 413);
    // The token is checked first even if the body is malformed, of the wrong type, or not sent yet.
    assert_eq!(Raw::request(&world.server, post, json, "{").await.status, 401);
    let text = "host: localhost\ncontent-type: text/plain";
    assert_eq!(Raw::request(&world.server, post, text, "{}").await.status, 401);
    let mut waiting = Raw::connect(&world.server).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n";
    waiting.write(head).await;
    assert_eq!(waiting.answer().await.status, 401);
    let bearer = format!("{json}\nauthorization: Bearer {}", world.token(|_| {}));
    assert_eq!(Raw::request(&world.server, post, &bearer, "{").await.status, 400);
}

#[tokio::test]
async fn the_host_of_the_public_url_is_allowed() {
    let world = world_with(|config| {
        config.server.public_url = Some("https://mcp.example.com/mcp".into());
    })
    .await;
    let token = Signer::Rsa.token(&{
        let mut claims = world.claims();
        claims["aud"] = json!("https://mcp.example.com/mcp");
        claims
    });
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for (names, status) in [
        ("host: mcp.example.com", 200),
        ("host: mcp.example.com\norigin: https://mcp.example.com", 200),
        ("host: other.example.com", 403),
    ] {
        let headers =
            format!("{names}\ncontent-type: application/json\nauthorization: Bearer {token}");
        let answer = Raw::request(&world.server, "POST /mcp HTTP/1.1", &headers, &ping).await;
        assert_eq!(answer.status, status, "{names}");
    }
}
