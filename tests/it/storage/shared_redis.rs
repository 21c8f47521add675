//! Servers that share a Redis, and what they do while it is away.

use serde_json::json;
use tokio::time::{Duration, Instant};

use crate::support::{Modern, RedisServer, Server, eventually, process::refused};

/// A server on a Redis, which it migrates.
async fn server_on(redis: &RedisServer) -> Server {
    let url = redis.url();
    Server::configured(|setup| {
        setup.config.store.url = url;
        setup.config.redis.migrate = true;
        setup.config.redis.timeout = 0.5;
    })
    .await
}

/// Waits until a resource can be created again.
async fn recovered(client: &Modern) {
    let is_created = async || {
        let resource = json!({ "uri": "x:recovered", "text": "1" });
        client.call("create_resource", resource).await.result()["isError"] != true
    };
    eventually("the server to reach Redis again", is_created).await;
}

#[tokio::test]
async fn an_error_of_the_shared_keys_names_the_setting_of_their_redis() {
    let redis = RedisServer::start().await;
    redis.command(&["SET", "larder:state-keys", "no hash"]).await;
    let url = redis.url();
    for (store, environment, named) in [
        (&*url, &[][..], "store.url"),
        ("memory:", &[("LARDER_SESSIONS__URL", &*url)], "sessions.url"),
    ] {
        let arguments = ["serve", "--migrate", "--listen", "127.0.0.1:0", "--store", store];
        let (code, said) = refused(&arguments, environment).await;
        assert!(code == Some(1) && said.contains(&format!("larder: {named}: ")), "{said}");
    }
}

#[tokio::test]
async fn a_resource_of_one_server_is_read_on_the_other_until_it_expires_on_both() {
    let redis = RedisServer::start().await;
    let servers = [server_on(&redis).await, server_on(&redis).await];
    let [a, b] = servers.each_ref().map(Modern::of);
    a.create(json!({ "uri": "x:1", "text": "one" })).await;
    assert_eq!(b.read("x:1").await["text"], "one");
    b.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
    assert_eq!(a.read("x:1").await["text"], "two");
    a.create(json!({ "uri": "x:1", "text": "three", "ttl": 1 })).await;
    for client in [&a, &b] {
        let is_gone = async || {
            let answer = client.send("resources/read", json!({ "uri": "x:1" })).await;
            answer.json()["error"]["code"] == -32602
        };
        eventually("the resource to expire", is_gone).await;
    }
}

#[tokio::test]
async fn a_change_on_one_server_is_notified_once_to_subscribers_of_either() {
    let redis = RedisServer::start().await;
    let servers = [server_on(&redis).await, server_on(&redis).await];
    let [a, b] = servers.each_ref().map(Modern::of);
    a.create(json!({ "uri": "x:1", "text": "1" })).await;
    let watched = json!({ "resourceSubscriptions": ["x:1", "x:mark"] });
    let mut listening = [a.listen(1, watched.clone()).await, b.listen(1, watched).await];
    a.call("update_resource", json!({ "uri": "x:1", "text": "2" })).await.text();
    // It is replaced by a resource that expires: one notification for each of both.
    b.create(json!({ "uri": "x:1", "text": "3", "ttl": 1 })).await;
    for events in &mut listening {
        for change in ["update", "replacement", "expiry"] {
            let message = events.message().await;
            assert_eq!(message["params"]["uri"], "x:1", "{change}: {message}");
        }
    }
    // Nothing comes twice: the next notification is that of another resource.
    b.create(json!({ "uri": "x:mark", "text": "1" })).await;
    b.call("delete_resource", json!({ "uri": "x:mark" })).await.text();
    for events in &mut listening {
        let message = events.message().await;
        assert_eq!(message["params"]["uri"], "x:mark", "{message}");
    }
}

#[tokio::test]
async fn without_redis_static_resources_are_served_and_dynamic_ones_fail_soon() {
    let mut redis = RedisServer::durable().await;
    let server = server_on(&redis).await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    for paused in [false, true] {
        if paused {
            redis.pause();
        } else {
            redis.kill();
        }
        let begin = Instant::now();
        let failure = client.call("create_resource", json!({ "uri": "x:2", "text": "2" })).await;
        let failure = failure.failure();
        assert!(failure.contains("redis") && failure.contains("try again"), "{failure}");
        let error = client.send("resources/read", json!({ "uri": "x:1" })).await.error();
        assert_eq!(error["code"], -32603, "{error}");
        let error = client.send("resources/list", json!({})).await.error();
        assert_eq!(error["code"], -32603, "{error}");
        assert_eq!(client.read("docs://welcome").await["text"], "Welcome.");
        let said = client.call("echo", json!({ "text": "still here" })).await.text();
        assert_eq!(said, "still here");
        assert!(begin.elapsed() < Duration::from_secs(12), "it took {:?}", begin.elapsed());
        if paused {
            redis.resume();
        } else {
            redis.restart().await;
        }
        recovered(&client).await;
        assert_eq!(client.read("x:1").await["text"], "one");
    }
}

#[tokio::test]
async fn a_redis_that_comes_back_empty_is_used_again() {
    let mut redis = RedisServer::start().await;
    let server = server_on(&redis).await;
    let client = Modern::of(&server);
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    redis.restart().await;
    recovered(&client).await;
    let gone = client.send("resources/read", json!({ "uri": "x:1" })).await.error();
    assert_eq!(gone["code"], -32602, "{gone}");
    assert_eq!(client.read("x:recovered").await["text"], "1");
}

#[tokio::test]
async fn a_call_that_asked_its_client_is_continued_by_another_server() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let server = async || {
        let url = url.clone();
        Server::configured(move |setup| {
            setup.config.store.url = url;
            setup.config.redis.migrate = true;
            setup.offer(crate::asking::offers);
        })
        .await
    };
    let servers = [server().await, server().await];
    let [a, b] = servers.each_ref().map(|s| Modern::able(s, json!({ "elicitation": {} })));
    let call = json!({ "name": "ask_twice", "arguments": {} });
    let asked = a.send("tools/call", call.clone()).await.result();
    let answer = |asked: &serde_json::Value, key: &str| {
        let mut call = call.clone();
        call["requestState"] = asked["requestState"].clone();
        let given = json!({ "action": "accept", "content": { "name": key } });
        call["inputResponses"] = json!({ key: given });
        call
    };
    let asked = b.send("tools/call", answer(&asked, "first")).await.result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    // A server that starts later has the key as well.
    let late = server().await;
    let late = Modern::able(&late, json!({ "elicitation": {} }));
    let done = late.send("tools/call", answer(&asked, "second")).await;
    assert_eq!(done.text(), "first and second");
}
