//! Protected resource metadata (RFC 9728).

use serde_json::json;

use super::{METADATA, RESOURCE, challenge, ping, world, world_with};
use crate::support::{Answer, Raw, Server, http};

const BOTH: [&str; 2] =
    ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"];

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = http().get(format!("http://{}{path}", server.address));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request).await
}

#[tokio::test]
async fn it_is_served_at_both_paths_to_every_origin() {
    let world = world_with(|config| {
        config.auth.required_scopes = vec!["mcp:read".into()];
        config.auth.resource_name = Some("Larder".into());
    })
    .await;
    for path in BOTH {
        for headers in [&[][..], &[("origin", "https://elsewhere.example")], &[("origin", "null")]]
        {
            let answer = get(&world.server, path, headers).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            assert_eq!(
                answer.json(),
                json!({
                    "resource": RESOURCE,
                    "authorization_servers": [world.issuer.url],
                    "scopes_supported": ["mcp:read"],
                    "bearer_methods_supported": ["header"],
                    "resource_name": "Larder",
                })
            );
        }
        let preflight = Raw::request(
            &world.server,
            &format!("OPTIONS {path} HTTP/1.1"),
            "host: localhost\norigin: https://elsewhere.example\naccess-control-request-method: GET\naccess-control-request-headers: mcp-protocol-version",
            "",
        )
        .await;
        assert_eq!(preflight.status, 204);
        assert!(preflight.head.contains("mcp-protocol-version"), "{}", preflight.head);
    }
}

#[tokio::test]
async fn it_has_no_empty_members() {
    let world = world().await;
    let document = get(&world.server, BOTH[1], &[]).await.json();
    assert_eq!(
        document,
        json!({
            "resource": RESOURCE,
            "authorization_servers": [world.issuer.url],
            "bearer_methods_supported": ["header"],
        })
    );
}

#[tokio::test]
async fn the_resource_is_the_configured_url_whatever_the_host_of_a_request() {
    let world = world().await;
    let headers = [
        ("host", "localhost:1234"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "host=evil.example"),
    ];
    let document = get(&world.server, BOTH[1], &headers).await.json();
    assert_eq!(document["resource"], RESOURCE);
    let mut request = ping(&world.server);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let challenge = challenge(&Answer::of(request).await);
    assert!(challenge.contains(METADATA), "{challenge}");
}

#[tokio::test]
async fn a_host_that_is_not_allowed_is_refused() {
    let world = world().await;
    let line = format!("GET {} HTTP/1.1", BOTH[0]);
    assert_eq!(Raw::request(&world.server, &line, "host: evil.example", "").await.status, 403);
}

#[tokio::test]
async fn without_authorization_servers_it_is_not_served() {
    let server = Server::start().await;
    for path in BOTH {
        assert_eq!(get(&server, path, &[]).await.status, 404);
    }
}
