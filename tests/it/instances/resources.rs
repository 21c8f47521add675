//! Resources that several `larder serve` share, and what of them is visible in Redis.

use serde_json::{Value, json};

use super::query;
use crate::support::{
    Events, Legacy, Modern, RedisServer, eventually, patiently,
    process::{Process, serving},
};

/// Starts `N` servers on one Redis, each with its URL.
async fn served<const N: usize>(redis: &RedisServer) -> [(Process, String); N] {
    let url = redis.url();
    let mut served = Vec::new();
    for _ in 0..N {
        served.push(serving(&["--migrate", "--store", &url]).await);
    }
    served.try_into().ok().unwrap()
}

/// How many milliseconds the keys of resources have until they expire.
async fn expiries(redis: &RedisServer) -> Vec<i64> {
    let mut expiries = Vec::new();
    for pattern in ["*:entry:*", "*:blob:*"] {
        for key in query::<Vec<String>>(redis, &["KEYS", pattern]).await.unwrap() {
            expiries.push(query(redis, &["PTTL", &key]).await.unwrap());
        }
    }
    expiries
}

#[tokio::test]
async fn a_resource_outlives_its_instance_and_expires_without_any() {
    const TTL: i64 = 3600;
    let redis = RedisServer::start().await;
    let [(mut a, on_a), (mut b, on_b), (mut c, on_c)] = served(&redis).await;
    Modern::at(&on_a).create(json!({ "uri": "x:1", "text": "one", "ttl": TTL })).await;
    a.kill().await;
    let (on_b, on_c) = (Modern::at(&on_b), Legacy::at_url(&on_c).await);
    assert_eq!(on_b.read("x:1").await["text"], "one");
    let read_on_c = async || on_c.send("resources/read", json!({ "uri": "x:1" })).await;
    assert_eq!(read_on_c().await.result()["contents"][0]["text"], "one");
    let listed = on_c.send("resources/list", json!({})).await.result();
    assert!(listed["resources"].as_array().unwrap().iter().any(|one| one["uri"] == "x:1"));
    // All keys of the resource expire by themselves, and no later than the resource.
    let set = expiries(&redis).await;
    assert_eq!(set.len(), 2, "{set:?}");
    assert!(set.iter().all(|expiry| (1..=TTL * 1000).contains(expiry)), "{set:?}");

    // The resource is created anew, with a TTL that passes.
    let short = json!({ "uri": "x:1", "text": "short", "ttl": 1 });
    on_b.create(short.clone()).await;
    let is_gone_on_b = async || {
        let answer = on_b.send("resources/read", json!({ "uri": "x:1" })).await;
        answer.json()["error"]["code"] == -32602
    };
    eventually("the resource to expire", is_gone_on_b).await;
    let gone = read_on_c().await.error();
    assert_eq!(gone["code"], -32002, "{gone}");

    on_b.create(short).await;
    for process in [&mut b, &mut c] {
        process.kill().await;
    }
    let are_gone = async || expiries(&redis).await.is_empty();
    eventually("the keys to expire with no server running", are_gone).await;
}

/// The next notification: its kind, and the URI of the resource.
async fn notified(events: &mut Events) -> (String, Value) {
    let message = events.message().await;
    let method = message["method"].as_str().unwrap();
    let kind = method.strip_prefix("notifications/resources/").unwrap();
    (kind.to_owned(), message["params"]["uri"].clone())
}

#[tokio::test]
async fn each_change_on_one_instance_is_notified_once_by_the_others() {
    let redis = RedisServer::start().await;
    let [(_a, on_a), (_b, on_b), (_c, on_c)] = served(&redis).await;
    let (subscriber, other) = (Legacy::at_url(&on_b).await, Legacy::at_url(&on_c).await);
    let (mut subscribed, mut others) = (subscriber.listen().await, other.listen().await);
    for events in [&mut subscribed, &mut others] {
        assert_eq!(events.next().await.unwrap().data, "", "a priming event");
    }
    let on_a = Modern::at(&on_a);
    let list = ("list_changed".to_owned(), Value::Null);
    let one = ("updated".to_owned(), json!("x:1"));
    on_a.create(json!({ "uri": "x:1", "text": "one" })).await;
    assert_eq!(notified(&mut subscribed).await, list);
    assert_eq!(notified(&mut others).await, list);
    subscriber.send("resources/subscribe", json!({ "uri": "x:1" })).await.result();
    on_a.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
    assert_eq!(notified(&mut subscribed).await, one);
    // It is replaced by a resource that expires.
    on_a.create(json!({ "uri": "x:1", "text": "three", "ttl": 1 })).await;
    assert_eq!(notified(&mut subscribed).await, one);
    assert_eq!(notified(&mut subscribed).await, list);
    assert_eq!(notified(&mut subscribed).await, one);
    assert_eq!(notified(&mut others).await, list);
    for deleted in [false, true] {
        if deleted {
            on_a.call("delete_resource", json!({ "uri": "x:2" })).await.text();
        } else {
            on_a.create(json!({ "uri": "x:2", "text": "two" })).await;
        }
        assert_eq!(notified(&mut subscribed).await, list);
        assert_eq!(notified(&mut others).await, list);
    }
}

/// Commands that iterate over all keys, or that block their connection.
const NEVER: [&str; 9] =
    ["keys", "scan", "blpop", "brpop", "blmove", "bzpopmin", "xread", "xreadgroup", "wait"];

#[tokio::test]
async fn an_instance_has_two_connections_and_uses_no_blocking_commands_or_scans() {
    let redis = RedisServer::start().await;
    let [(_larder, url)] = served(&redis).await;
    let client = Legacy::at_url(&url).await;
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

    let clients: String = query(&redis, &["CLIENT", "LIST"]).await.unwrap();
    let clients = clients.lines().filter(|client| !client.contains("cmd=client|list"));
    let clients: Vec<_> = clients.collect();
    assert_eq!(clients.len(), 2, "{clients:#?}");
    assert!(clients.iter().all(|client| client.contains(" resp=3")), "{clients:#?}");
    assert!(clients.iter().any(|client| !client.contains(" sub=0 ")), "{clients:#?}");
    let statistics: String = query(&redis, &["INFO", "commandstats"]).await.unwrap();
    assert!(statistics.contains("cmdstat_evalsha:"), "{statistics}");
    for never in NEVER {
        assert!(!statistics.contains(&format!("cmdstat_{never}:")), "{statistics}");
    }
}
