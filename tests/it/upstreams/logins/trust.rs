//! What an upstream may make Larder and its users do: which servers it names, and who gets secrets.

use serde_json::json;
use tokio::net::TcpListener;

use super::{Browser, crm, gateway, link, location};
use crate::{
    auth::issuer::{Issuer, Reply},
    support::{
        Modern, TextFile,
        process::{larder, run},
    },
};

const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// An upstream that answers each call with a demand for a login.
async fn demanding() -> Issuer {
    let upstream = Issuer::empty().await;
    upstream.set_reply("/mcp", Reply::Status(401, json!({})));
    upstream
}

/// The page after a confirmed login at an upstream that names this authorization server.
async fn page(upstream: &Issuer, alice: &Modern, server: &str) -> String {
    let metadata = json!({
        "resource": format!("{}/mcp", upstream.url),
        "authorization_servers": [server],
    });
    upstream.set_reply(METADATA, Reply::Json(metadata));
    let page = Browser::new().confirm(&link(alice, "whoami").await).await;
    assert_eq!(page.status(), 503, "{server}");
    page.text().await.unwrap()
}

#[tokio::test]
async fn an_authorization_server_that_an_upstream_names_is_at_a_public_address() {
    let upstream = demanding().await;
    let server = gateway(crm(&format!("{}/mcp", upstream.url)), |_| {}).await;
    let alice = Modern::bearing(&server, "alice");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap().port();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for address in ["https://0.0.0.0", "https://[::]", "https://10.255.255.1"] {
        let said = page(&upstream, &alice, &format!("{address}:{open}")).await;
        assert!(said.contains("address"), "{address}: {said}");
        assert!(!said.contains("refused") && !said.contains("reset"), "{address}: {said}");
    }

    // A name of this machine, which is known after it is resolved. Whether somebody listens at the
    // port is not told.
    let mut texts = Vec::new();
    for port in [open, closed] {
        let said = page(&upstream, &alice, &format!("https://localhost.:{port}")).await;
        assert!(said.contains("it cannot be reached"), "{said}");
        texts.push(said.replace(&port.to_string(), "PORT"));
    }
    assert_eq!(texts[0], texts[1]);

    let connection = futures_util::FutureExt::now_or_never(listener.accept());
    assert!(connection.is_none(), "Larder has connected to an address that is not public");
}

#[tokio::test]
async fn keys_in_the_url_of_an_upstream_are_shown_to_nobody() {
    let upstream = demanding().await;
    let origin = &upstream.url;
    let metadata = json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "code_challenge_methods_supported": ["S256"],
    });
    upstream.set_reply("/.well-known/oauth-authorization-server", Reply::Json(metadata));
    upstream.set_reply("/register", Reply::Status(201, json!({ "client_id": "larder" })));
    let server = gateway(crm(&format!("{origin}/mcp?api_key=hush")), |_| {}).await;
    let alice = Modern::bearing(&server, "alice");

    let link = link(&alice, "whoami").await;
    let mut browser = Browser::new();
    let asked = browser.get(link.clone()).await.text().await.unwrap();
    assert!(asked.contains(origin) && !asked.contains("hush"), "{asked}");

    let response = browser.confirm(&link).await;
    assert_eq!(response.status(), 303);
    let to = location(&response, &link);
    let resource = to.query_pairs().find(|(name, _)| name == "resource").unwrap().1.into_owned();
    assert_eq!(resource, format!("{origin}/mcp"));
    assert!(!to.as_str().contains("hush"), "{to}");
}

#[tokio::test]
async fn a_client_secret_without_the_issuer_that_gets_it_is_refused_at_the_start() {
    let upstream = |auth: &str| {
        TextFile::new(&format!(
            "[[upstreams]]\nname = \"crm\"\nurl = \"https://crm.example/mcp\"\n\
             auth = {{ kind = \"oauth\", client_id = \"larder\"{auth} }}\n"
        ))
    };
    let check =
        async |file: &TextFile| run(larder(&["config", "check", "--config", file.path()])).await;

    let checked = check(&upstream(", client_secret = \"hush\"")).await;
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.stderr.contains("upstreams.auth.issuer: \"crm\""), "{checked:?}");
    assert!(!checked.stderr.contains("hush"), "{checked:?}");
    for good in ["", ", client_secret = \"hush\", issuer = \"https://login.example\""] {
        let checked = check(&upstream(good)).await;
        assert_eq!(checked.code, Some(0), "{good}: {checked:?}");
    }
}
