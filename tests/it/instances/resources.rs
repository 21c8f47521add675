//! Resources that several `larder serve` share, and what is seen of them in Redis.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{process::Child, time::sleep};

use super::try_ask;
use crate::{
    process::serving,
    support::{Legacy, Modern, RedisServer, patiently},
};

/// So many on one Redis, each with its address.
async fn served<const N: usize>(redis: &RedisServer) -> [(Child, String); N] {
    let url = redis.url();
    let mut served = Vec::new();
    for _ in 0..N {
        served.push(serving(&["--migrate", "--store", &url]).await);
    }
    served.try_into().ok().unwrap()
}

/// A session with whatever answers there.
pub(super) async fn session(url: &str) -> Legacy {
    Legacy::begin(url, &Legacy::initialize("2025-11-25")).await
}

/// The keys of a resource, with the milliseconds that they live.
async fn keys(redis: &RedisServer) -> Vec<(String, i64)> {
    let mut lives = Vec::new();
    for kind in ["*:entry:*", "*:blob:*"] {
        for key in try_ask::<Vec<String>>(redis, &["KEYS", kind]).await.unwrap() {
            let life = try_ask(redis, &["PTTL", &key]).await.unwrap();
            lives.push((key, life));
        }
    }
    lives
}

#[tokio::test]
async fn what_one_stores_lives_on_without_it_and_expires_with_nobody_there() {
    const TTL: Duration = Duration::from_secs(6);
    let redis = RedisServer::start().await;
    let [(mut a, on_a), (mut b, on_b), (mut c, on_c)] = served(&redis).await;
    let resource = json!({ "uri": "x:1", "text": "one", "ttl": TTL.as_secs() });
    Modern::at(&on_a).create(resource.clone()).await;
    a.kill().await.unwrap();
    let (on_b, on_c) = (Modern::at(&on_b), session(&on_c).await);
    assert_eq!(on_b.read("x:1").await["text"], "one");
    let read = async || on_c.send("resources/read", json!({ "uri": "x:1" })).await;
    assert_eq!(read().await.result()["contents"][0]["text"], "one");
    let listed = on_c.send("resources/list", json!({})).await.result();
    assert!(listed["resources"].as_array().unwrap().iter().any(|one| one["uri"] == "x:1"));

    let lives = keys(&redis).await;
    assert_eq!(lives.len(), 2, "{lives:?}");
    let longest = i64::try_from(TTL.as_millis()).unwrap();
    assert!(lives.iter().all(|(_, life)| (1..=longest).contains(life)), "{lives:?}");
    let left = u64::try_from(lives.iter().map(|(_, life)| *life).max().unwrap()).unwrap();
    sleep(Duration::from_millis(left + 1)).await;
    let gone = on_b.send("resources/read", json!({ "uri": "x:1" })).await.error();
    assert_eq!(gone["code"], -32602, "{gone}");
    let gone = read().await.error();
    assert_eq!(gone["code"], -32002, "{gone}");

    on_b.create(resource).await;
    for process in [&mut b, &mut c] {
        process.kill().await.unwrap();
    }
    assert_eq!(keys(&redis).await.len(), 2);
    sleep(TTL).await;
    assert!(keys(&redis).await.is_empty());
}

/// What is told next: a method, and of which resource.
async fn told(events: &mut crate::support::Events) -> (String, Value) {
    let message = events.message().await;
    let method = message["method"].as_str().unwrap();
    let what = method.strip_prefix("notifications/resources/").unwrap();
    (what.to_owned(), message["params"]["uri"].clone())
}

#[tokio::test]
async fn each_change_on_one_is_told_once_by_others_to_those_whom_it_concerns() {
    let redis = RedisServer::start().await;
    let [(_a, on_a), (_b, on_b), (_c, on_c)] = served(&redis).await;
    let (subscriber, other) = (session(&on_b).await, session(&on_c).await);
    let (mut subscribed, mut others) = (subscriber.listen().await, other.listen().await);
    for events in [&mut subscribed, &mut others] {
        assert_eq!(events.next().await.unwrap().data, "", "a priming event");
    }
    let on_a = Modern::at(&on_a);
    let list = ("list_changed".to_owned(), Value::Null);
    let one = ("updated".to_owned(), json!("x:1"));
    on_a.create(json!({ "uri": "x:1", "text": "one", "ttl": 5 })).await;
    assert_eq!(told(&mut subscribed).await, list);
    assert_eq!(told(&mut others).await, list);
    subscriber.send("resources/subscribe", json!({ "uri": "x:1" })).await.result();
    on_a.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
    assert_eq!(told(&mut subscribed).await, one);
    // It expires.
    assert_eq!(told(&mut subscribed).await, list);
    assert_eq!(told(&mut subscribed).await, one);
    assert_eq!(told(&mut others).await, list);
    for deleted in [false, true] {
        if deleted {
            on_a.call("delete_resource", json!({ "uri": "x:2" })).await.text();
        } else {
            on_a.create(json!({ "uri": "x:2", "text": "two" })).await;
        }
        assert_eq!(told(&mut subscribed).await, list);
        assert_eq!(told(&mut others).await, list);
    }
}

/// Commands that go through all keys, or that hold up whoever shares their connection.
const NEVER: [&str; 9] =
    ["keys", "scan", "blpop", "brpop", "blmove", "bzpopmin", "xread", "xreadgroup", "wait"];

#[tokio::test]
async fn a_process_has_two_connections_and_never_looks_through_all_keys_or_blocks_them() {
    let redis = RedisServer::start().await;
    let [(_child, url)] = served(&redis).await;
    let client = session(&url).await;
    let mut own = client.listen().await;
    own.next().await.unwrap();
    for n in 0..3 {
        client.create(json!({ "uri": format!("x:{n}"), "text": "a word" })).await;
    }
    client.send("resources/subscribe", json!({ "uri": "x:1" })).await.result();
    client.call("update_resource", json!({ "uri": "x:1", "text": "two words" })).await.text();
    while own.message().await["params"]["uri"] != "x:1" {}
    for (tool, arguments) in [
        ("list_resources", json!({ "prefix": "x:" })),
        ("search_resource", json!({ "uri": "x:1", "query": "word" })),
        ("search_resources", json!({ "query": "word" })),
        ("describe_resource", json!({ "uri": "x:1" })),
        ("delete_resource", json!({ "uri": "x:2" })),
    ] {
        client.call(tool, arguments).await.text();
    }
    assert_eq!(client.delete().await.status, 204);
    patiently("the stream's end", own.rest()).await;

    let clients: String = try_ask(&redis, &["CLIENT", "LIST"]).await.unwrap();
    let clients = clients.lines().filter(|client| !client.contains("cmd=client|list"));
    let clients: Vec<_> = clients.collect();
    assert_eq!(clients.len(), 2, "{clients:#?}");
    assert!(clients.iter().all(|client| client.contains(" resp=3")), "{clients:#?}");
    assert!(clients.iter().any(|client| !client.contains(" sub=0 ")), "{clients:#?}");
    let statistics: String = try_ask(&redis, &["INFO", "commandstats"]).await.unwrap();
    assert!(statistics.contains("cmdstat_evalsha:"), "{statistics}");
    for never in NEVER {
        assert!(!statistics.contains(&format!("cmdstat_{never}:")), "{statistics}");
    }
}
