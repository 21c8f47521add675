//! A graceful shutdown of a server.

use serde_json::json;

use crate::support::{Beat, Legacy, Modern, Server};

#[tokio::test]
async fn streams_that_would_not_end_by_themselves_are_ended() {
    let server = Server::start().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let listen = modern.listen("sub", json!({ "resourcesListChanged": true })).await;
    let mut own = legacy.listen().await;
    assert_eq!(own.next().await.unwrap().data, "");
    let stopping = server.stop();
    let last = listen.messages().await;
    let id = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!(last[0]["id"], "sub");
    assert_eq!(last[0]["result"], json!({ "resultType": "complete", "_meta": { id: "sub" } }));
    own.end().await;
    assert!(own.raw().ends_with("\n\nretry: 1000\n\n"), "{:?}", own.raw());
    assert!(stopping.finished().await);
}

#[tokio::test]
async fn running_calls_may_end() {
    let server = Server::streaming().await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let stage = std::sync::Arc::clone(&server.stage);
    let newer = modern.stream_call(1, "stepwise", json!({ "key": "m" })).await;
    let older = legacy.stream_call(1, "stepwise", json!({ "key": "l" })).await;
    let alone = legacy.stream_call(2, "stepwise", json!({ "key": "alone" })).await;
    drop(alone);
    let stopping = server.stop();
    for key in ["m", "l", "alone"] {
        stage.release(key, 1);
        stage.reached(key, Beat::Finished).await;
    }
    assert_eq!(newer.messages().await[0]["result"]["content"][0]["text"], "done m");
    assert_eq!(older.messages().await[0]["result"]["content"][0]["text"], "done l");
    assert!(stopping.finished().await);
}

#[tokio::test]
async fn calls_that_do_not_end_are_stopped_after_the_grace_period_and_say_so() {
    let server = Server::configured(|setup| {
        setup.config.server.grace = 0;
        setup.http = Box::new(|http| http.promote_after = std::time::Duration::ZERO);
    })
    .await;
    let (modern, legacy) = (Modern::of(&server), Legacy::of(&server).await);
    let stage = std::sync::Arc::clone(&server.stage);
    let newer = modern.stream_call(1, "stepwise", json!({ "key": "m" })).await;
    let older = legacy.stream_call(1, "stepwise", json!({ "key": "l" })).await;
    drop(legacy.stream_call(2, "stepwise", json!({ "key": "alone" })).await);
    assert!(!server.stop().finished().await);
    for key in ["m", "l", "alone"] {
        stage.reached(key, Beat::Dropped).await;
    }
    for events in [newer, older] {
        let last = events.messages().await.pop().unwrap();
        let said = last["error"]["message"].as_str().unwrap();
        assert!(said.contains("Send the request again"), "{last}");
    }
}

#[tokio::test]
async fn new_connections_are_refused() {
    let server = Server::streaming().await;
    let modern = Modern::of(&server);
    let stage = std::sync::Arc::clone(&server.stage);
    let address = server.address;
    let events = modern.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    let listen = modern.listen(2, json!({})).await;
    let stopping = server.stop();
    assert_eq!(listen.messages().await.len(), 1);
    // The listener is closed before the streams end.
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    stage.release("k", 1);
    assert_eq!(events.messages().await.len(), 1);
    assert!(stopping.finished().await);
}
