//! Sessions and resources in separate stores.

use serde_json::json;

use crate::support::{Legacy, RedisServer, process::serving_in};

const SESSIONS: &str = "LARDER_SESSIONS__URL";

#[tokio::test]
async fn sessions_are_shared_where_resources_are_not() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let sessions = [(SESSIONS, url.as_str())];
    let [(_a, on_a), (_b, on_b)] =
        [serving_in(&[], &sessions).await, serving_in(&[], &sessions).await];
    let on_a = Legacy::at_url(&on_a).await;
    on_a.create(json!({ "uri": "x:1", "text": "one" })).await;
    let elsewhere = on_a.at(&on_b).send("resources/read", json!({ "uri": "x:1" })).await;
    assert_eq!((elsewhere.status, elsewhere.error()["code"].as_i64()), (200, Some(-32002)));
}

#[tokio::test]
async fn resources_are_shared_where_sessions_are_not() {
    let redis = RedisServer::start().await;
    let (url, memory) = (redis.url(), [(SESSIONS, "memory:")]);
    let store = ["--migrate", "--store", &url];
    let [(_a, on_a), (_b, on_b)] =
        [serving_in(&store, &memory).await, serving_in(&store, &memory).await];
    let client = Legacy::at_url(&on_a).await;
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    assert_eq!(client.at(&on_b).send("ping", json!({})).await.status, 404);
    let fresh = Legacy::at_url(&on_b).await;
    let read = fresh.send("resources/read", json!({ "uri": "x:1" })).await.result();
    assert_eq!(read["contents"][0]["text"], "one");
}
