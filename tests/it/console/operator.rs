//! What operators see at the console.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::{Either, select};
use larder::{
    config::AuthMode,
    upstream::{Settings, Upstream},
};
use serde_json::{Value, json};

use super::{Browser, offered, said, server, settings, token};
use crate::support::{
    Answer, Modern, RedisServer, Server, TextFile, eventually, poll,
    process::{Process, larder},
    sha256,
};

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
        config.auth.mode = AuthMode::None;
        config.auth.tokens.clear();
    })
    .await;
    let browser = Browser::of(&server);
    assert_eq!(browser.session().await["operator"], true);
    let answer = Answer::of(browser.get("upstreams")).await;
    assert_eq!(answer.json(), json!({ "upstreams": [] }));
}

/// A server with the operator anna, where ben and anna have stored something.
async fn with_two_owners() -> (Server, Browser, Browser) {
    let server = Server::configured(|setup| {
        settings(&mut setup.config);
        setup.config.auth.tokens[0].scopes.push("larder:admin".into());
        setup.offer(offered);
    })
    .await;
    let (anna, ben) =
        (Browser::logged_in(&server, "anna").await, Browser::logged_in(&server, "ben").await);
    for (browser, count) in [(&anna, 1), (&ben, 3)] {
        for index in 0..count {
            let given = json!({ "uri": format!("x:{index}"), "text": "0123456789" });
            let stored = browser.call("create_resource", given).await.json();
            assert_eq!(stored["result"]["isError"], false, "{stored}");
        }
    }
    (server, anna, ben)
}

fn purge(browser: &Browser, owner: &str) -> reqwest::RequestBuilder {
    let form =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("owner", owner).finish();
    browser.post("purge").header("content-type", "application/x-www-form-urlencoded").body(form)
}

#[tokio::test]
async fn an_operator_sees_the_owners_and_deletes_what_one_has_stored() {
    let (_server, anna, ben) = with_two_owners().await;
    let page = Answer::of(anna.get("owners")).await.json();
    assert_eq!(page["next"], Value::Null, "{page}");
    assert_eq!(page["total"]["resources"], 4);
    let mut owners = page["owners"].as_array().unwrap().clone();
    owners.sort_by_key(|owner| owner["resources"].as_u64());
    let [of_anna, of_ben] = owners.try_into().unwrap();
    assert_eq!((&of_anna["resources"], &of_ben["resources"]), (&json!(1), &json!(3)));
    assert_eq!(of_anna["name"], "static \"anna\"");
    assert_eq!(of_ben["name"], "static \"ben\"");
    let bytes = |value: &Value| value["bytes"].as_u64().unwrap();
    assert!(bytes(&of_ben) >= 30, "{of_ben}");
    assert_eq!(bytes(&page["total"]), bytes(&of_anna) + bytes(&of_ben));
    assert!(bytes(&page["quota"]) > bytes(&page["total"]), "{page}");

    let name = of_ben["owner"].as_str().unwrap();
    let answer = Answer::of(purge(&anna, name)).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "deleted": 3 })));
    assert!(ben.listed().await.is_empty());
    assert_eq!(anna.listed().await.len(), 1);
    let left = Answer::of(anna.get("owners")).await.json();
    assert_eq!(left["owners"], json!([of_anna]));
    // It can be repeated.
    assert_eq!(Answer::of(purge(&anna, name)).await.json(), json!({ "deleted": 0 }));
}

#[tokio::test]
async fn only_an_operator_at_the_consoles_own_page_deletes_what_an_owner_has_stored() {
    let (server, anna, ben) = with_two_owners().await;
    let page = Answer::of(anna.get("owners")).await.json();
    let name = page["owners"][0]["owner"].as_str().unwrap();
    for (refused, status) in [
        (Answer::of(ben.get("owners")).await, 403),
        (Answer::of(purge(&ben, name)).await, 403),
        (Answer::of(Browser::of(&server).get("owners")).await, 401),
        (Answer::of(purge(&Browser::of(&server), name)).await, 401),
        (Answer::of(anna.get("owners").header("sec-fetch-site", "cross-site")).await, 403),
        (Answer::of(purge(&anna, name).header("sec-fetch-site", "cross-site")).await, 403),
        (Answer::of(anna.request(reqwest::Method::POST, "purge")).await, 403),
        (Answer::of(purge(&anna, "")).await, 400),
    ] {
        assert_eq!(refused.status, status, "{refused:?}");
    }
    assert_eq!((anna.listed().await.len(), ben.listed().await.len()), (1, 3));
}

#[tokio::test]
async fn owners_are_listed_page_by_page() {
    let names: Vec<String> = (0..120).map(|index| format!("user-{index}")).collect();
    let server = Server::configured(|setup| {
        settings(&mut setup.config);
        setup.config.auth.tokens[0].scopes.push("larder:admin".into());
        setup.config.auth.tokens.extend(names.iter().map(|name| token(name)));
        setup.offer(offered);
    })
    .await;
    for name in &names {
        Modern::bearing(&server, name).create(json!({ "uri": "x:1", "text": "one" })).await;
    }
    let anna = Browser::logged_in(&server, "anna").await;
    let (mut seen, mut pages, mut path) = (BTreeSet::new(), 0, "owners".to_owned());
    loop {
        let page = Answer::of(anna.get(&path)).await.json();
        assert_eq!(page["total"]["resources"], 120, "{page}");
        pages += 1;
        for owner in page["owners"].as_array().unwrap() {
            assert_eq!(owner["resources"], 1);
            assert!(seen.insert(owner["owner"].as_str().unwrap().to_owned()), "twice: {owner}");
        }
        let Some(next) = page["next"].as_str() else { break };
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("after", next)
            .finish();
        path = format!("owners?{query}");
    }
    assert_eq!(seen.len(), 120);
    assert!((2..=120).contains(&pages), "{pages} pages");
}

#[tokio::test]
async fn one_purge_runs_at_a_time_and_ends_without_its_browser() {
    let redis = RedisServer::start().await;
    // Needs no session, so only the purge waits for Redis.
    let server = Server::configured(|setup| {
        settings(&mut setup.config);
        setup.config.auth.mode = AuthMode::None;
        setup.config.auth.tokens.clear();
        setup.config.store.url = redis.url();
        setup.config.redis.timeout = 30.0;
        setup.config.redis.migrate = true;
        setup.offer(offered);
    })
    .await;
    let browser = Browser::of(&server);
    for index in 0..3 {
        let given = json!({ "uri": format!("x:{index}"), "text": "0123456789" });
        browser.call("create_resource", given).await.result();
    }
    let page = Answer::of(browser.get("owners")).await.json();
    let owner = page["owners"][0]["owner"].as_str().unwrap();

    redis.pause();
    let purges = [(); 2].map(|()| Box::pin(Answer::of(purge(&browser, owner))));
    let [one, other] = purges;
    // The one that runs waits for Redis, so the other ends first.
    let (Either::Left((refused, running)) | Either::Right((refused, running))) =
        select(one, other).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(said(&refused).contains("Try again when that is done"), "{refused:?}");
    // The browser closes its connection.
    drop(running);
    for _ in 0..3 {
        assert_eq!(Answer::of(purge(&browser, owner)).await.status, 409);
    }
    redis.resume();
    eventually("the purge ends", async || {
        let page = Answer::of(browser.get("owners")).await.json();
        page["total"]["resources"] == 0
    })
    .await;
    // Its turn is over soon after.
    let again = poll("the next purge", async || {
        let answer = Answer::of(purge(&browser, owner)).await;
        (answer.status != 409).then_some(answer)
    })
    .await;
    assert_eq!((again.status, again.json()), (200, json!({ "deleted": 0 })));
}

#[tokio::test]
async fn a_purge_is_in_the_audit_log_with_the_name_of_the_operator() {
    const TOKEN: &str = "the-token-of-the-operator";
    let file = TextFile::new(&format!(
        "[console]\nenabled = true\n[auth]\nmode = \"static\"\n[[auth.tokens]]\nname = \"anna\"\nsha256 = \"{}\"\nscopes = [\"larder:admin\"]\n",
        sha256(TOKEN)
    ));
    let process = Process::start(larder(&["serve", "--config", file.path()])).await;
    let mut browser = Browser::at(process.address());
    assert_eq!(browser.log_in(TOKEN).await.status, 204);
    browser.call("create_resource", json!({ "uri": "x:1", "text": "one" })).await.result();
    let page = Answer::of(browser.get("owners")).await.json();
    let owner = page["owners"][0]["owner"].as_str().unwrap();
    assert_eq!(Answer::of(purge(&browser, owner)).await.json(), json!({ "deleted": 1 }));
    let line = poll("the audit log", async || {
        let log = process.stderr();
        let line = log.lines().find(|line| line.contains(" audit: ") && line.contains("purge"));
        line.map(str::to_owned)
    })
    .await;
    let user = browser.session().await["user"].as_str().unwrap().to_owned();
    for part in
        [&format!("who={user}"), &format!("owner={owner}"), "resources=1", "allowed", "WARN"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!process.stderr().contains(TOKEN));
}
