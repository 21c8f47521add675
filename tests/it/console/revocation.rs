//! Sessions of tokens that end: JWTs of an issuer by their `exp`, static tokens by their removal
//! from the file.

use std::time::Duration;

use larder::clock::Clock;
use serde_json::{Value, json};

use super::{Browser, offered, said};
use crate::{
    auth::{World, signer::Signer, world_set_up},
    support::{
        Answer, Events, TextFile, patiently,
        process::{Process, larder},
        sha256,
    },
};

/// A console whose people log in with access tokens of an issuer.
async fn world() -> World {
    world_set_up(|setup| {
        setup.config.console.enabled = true;
        setup.offer(offered);
    })
    .await
}

async fn events(browser: &Browser) -> Events {
    let opened = patiently("the stream", browser.get("events").send()).await.unwrap();
    assert_eq!(opened.status(), 200);
    let mut events = Events::of(opened);
    let acknowledged = events.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    events
}

#[tokio::test]
async fn a_jwt_begins_a_session_that_ends_at_its_exp() {
    let world = world().await;
    let token = world.token_for("alice", "mcp:read");
    let browser = Browser::logged_in(&world.server, &token).await;
    let session = browser.session().await;
    assert!(session["user"].as_str().unwrap().contains("alice"), "{session}");
    let exp = world.server.clock.now().saturating_add(Duration::from_secs(600));
    assert_eq!(session["expires"], exp.to_string());
    browser.call("create_resource", json!({ "uri": "x:a", "text": "a" })).await.result();
    let other = Browser::logged_in(&world.server, &world.token_for("bob", "mcp:read")).await;
    assert_eq!(browser.listed().await, ["x:a"]);
    assert_eq!(other.listed().await, Vec::<String>::new());

    let stream = events(&browser).await;
    world.server.clock.advance(Duration::from_secs(599));
    assert_eq!(browser.call("list_resources", json!({})).await.status, 200);
    world.server.clock.advance(Duration::from_secs(1));
    assert_eq!(browser.session().await, json!({ "login": true }));
    assert_eq!(browser.call("list_resources", json!({})).await.status, 401);
    patiently("the end of the stream", stream.rest()).await;
}

#[tokio::test]
async fn a_jwt_that_the_server_does_not_accept_begins_no_session() {
    let world = world().await;
    let now = world.server.clock.now().as_millis() / 1000;
    let valid = world.claims();
    let changed = |name: &str, value: Value| {
        let mut claims = valid.clone();
        claims[name] = value;
        Signer::Rsa.token(&claims)
    };
    for (what, token) in [
        ("another audience", changed("aud", json!("https://other.example/mcp"))),
        ("another issuer", changed("iss", json!("https://other.example"))),
        ("expired", changed("exp", json!(now - 600))),
        ("signed by a stranger", Signer::Stranger.token(&valid)),
        ("an ID token", {
            let mut header = Signer::Rsa.header();
            header["typ"] = json!("JWT");
            let mut claims = valid.clone();
            claims["aud"] = json!("app");
            Signer::Rsa.sign(&header, &claims)
        }),
    ] {
        let mut browser = Browser::of(&world.server);
        let answer = browser.log_in(&token).await;
        assert_eq!(answer.status, 401, "{what}: {answer:?}");
        assert!(browser.cookie.is_none(), "{what}");
    }
    let mut browser = Browser::of(&world.server);
    assert_eq!(browser.log_in(&Signer::Rsa.token(&valid)).await.status, 204);
}

#[tokio::test]
async fn the_session_of_a_token_that_is_removed_from_the_file_ends() {
    let config = |tokens: &[&str]| {
        let tokens = tokens.iter().map(|token| {
            let digest = sha256(token);
            format!("[[auth.tokens]]\nname = \"{token}\"\nsha256 = \"{digest}\"\n")
        });
        let tokens: String = tokens.collect();
        format!(
            "[log]\nlevel = \"info\"\n[console]\nenabled = true\n[auth]\nmode = \"static\"\n{tokens}"
        )
    };
    let file = TextFile::new(&config(&["anna", "ben"]));
    let mut server = Process::start(larder(&["serve", "--config", file.path()])).await;
    let origin = format!("http://{}", server.address());
    let log_in = async |token: &str| {
        let mut browser = Browser { origin: origin.clone(), cookie: None };
        assert_eq!(browser.log_in(token).await.status, 204);
        browser
    };
    let (anna, ben) = (log_in("anna").await, log_in("ben").await);
    let stream = events(&anna).await;
    file.write(&config(&["ben"]));
    server.logs("read again").await;
    patiently("the end of the stream", stream.rest()).await;

    let refused = anna.call("list_resources", json!({})).await;
    assert_eq!(refused.status, 401);
    assert!(said(&refused).contains("no longer accepted"), "{refused:?}");
    let cookies: Vec<_> = refused.headers.get_all("set-cookie").iter().collect();
    assert!(!cookies.is_empty(), "the browser forgets the key");
    assert!(cookies.iter().all(|cookie| cookie.to_str().unwrap().contains("Max-Age=0")));
    assert_eq!(ben.call("list_resources", json!({})).await.status, 200);

    // The session has ended, not only its token: the token comes back, the session does not.
    file.write(&config(&["anna", "ben"]));
    server.logs("read again").await;
    assert_eq!(anna.session().await, json!({ "login": true }));
    assert_eq!(Answer::of(anna.get("events")).await.status, 401);
    assert_eq!(log_in("anna").await.call("list_resources", json!({})).await.status, 200);
}
