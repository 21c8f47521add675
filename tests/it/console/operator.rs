//! What operators see at the console.

use std::time::Duration;

use larder::upstream::{Settings, Upstream};
use serde_json::{Value, json};

use super::{Browser, offered, said, server, settings};
use crate::support::{Answer, Server};

#[tokio::test]
async fn an_operator_sees_the_upstreams_and_the_class_of_their_last_error() {
    let server = Server::configured(|setup| {
        settings(&mut setup.config);
        setup.config.auth.tokens[0].scopes = vec!["larder:admin".into()];
        setup.offer(|builder| {
            let line = ["sh", "-c", "echo a secret >&2; exit 3"].map(str::to_owned);
            let broken = Settings::new("broken", line.to_vec());
            let idle = Settings::new("idle", vec!["true".to_owned()]);
            let upstreams = Upstream::all(vec![broken, idle], builder.tool_names());
            upstreams.into_iter().fold(offered(builder), larder::Builder::provider)
        });
    })
    .await;
    let (anna, ben) =
        (Browser::logged_in(&server, "anna").await, Browser::logged_in(&server, "ben").await);
    assert_eq!(anna.session().await["operator"], true);
    assert_eq!(ben.session().await["operator"], false);
    let refused = Answer::of(ben.get("upstreams")).await;
    assert_eq!(refused.status, 403);
    assert!(said(&refused).contains("larder:admin"), "{refused:?}");
    assert_eq!(Answer::of(Browser::of(&server).get("upstreams")).await.status, 401);
    let elsewhere = anna.get("upstreams").header("sec-fetch-site", "cross-site");
    assert_eq!(Answer::of(elsewhere).await.status, 403);

    // The list of tools starts them.
    anna.rpc("tools/list", json!({})).send().await.unwrap();
    let mut states = json!(null);
    for _ in 0..200 {
        let answer = Answer::of(anna.get("upstreams")).await;
        assert!(!said(&answer).contains("a secret"), "{answer:?}");
        states = answer.json()["upstreams"].take();
        if states[0]["state"] == "down" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((&states[0]["name"], &states[1]["name"]), (&json!("broken"), &json!("idle")));
    assert_eq!(states[0]["state"], "down", "{states}");
    assert_eq!(states[0]["last_error"], "start");
    assert_eq!(states[0]["tools"], Value::Null);
    assert!(states[0]["error_seconds_ago"].is_u64(), "{states}");
}

#[tokio::test]
async fn without_authentication_whoever_reaches_the_server_is_its_operator() {
    let server = server(|config| {
        config.auth.mode = larder::config::AuthMode::None;
        config.auth.tokens.clear();
    })
    .await;
    let browser = Browser::of(&server);
    assert_eq!(browser.session().await["operator"], true);
    let answer = Answer::of(browser.get("upstreams")).await;
    assert_eq!(answer.json(), json!({ "upstreams": [] }));
}
