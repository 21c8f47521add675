//! A graceful shutdown of a server.

use serde_json::json;

use crate::support::{Answer, Legacy, Modern, Raw, Server, ToolState, http, poll};

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
    let control = std::sync::Arc::clone(&server.control);
    let newer = modern.stream_call(1, "stepwise", json!({ "key": "m" })).await;
    let older = legacy.stream_call(1, "stepwise", json!({ "key": "l" })).await;
    let alone = legacy.stream_call(2, "stepwise", json!({ "key": "alone" })).await;
    drop(alone);
    let stopping = server.stop();
    for key in ["m", "l", "alone"] {
        control.release(key, 1);
        control.reached(key, ToolState::Finished).await;
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
    let control = std::sync::Arc::clone(&server.control);
    let newer = modern.stream_call(1, "stepwise", json!({ "key": "m" })).await;
    let older = legacy.stream_call(1, "stepwise", json!({ "key": "l" })).await;
    drop(legacy.stream_call(2, "stepwise", json!({ "key": "alone" })).await);
    assert!(!server.stop().finished().await);
    for key in ["m", "l", "alone"] {
        control.reached(key, ToolState::Dropped).await;
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
    let control = std::sync::Arc::clone(&server.control);
    let address = server.address;
    let events = modern.stream_call(1, "stepwise", json!({ "key": "k" })).await;
    let listen = modern.listen(2, json!({})).await;
    let stopping = server.stop();
    assert_eq!(listen.messages().await.len(), 1);
    // The listener is closed before the streams end.
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    control.release("k", 1);
    assert_eq!(events.messages().await.len(), 1);
    assert!(stopping.finished().await);
}

#[tokio::test]
async fn proxies_learn_of_a_stop_before_connections_are_refused() {
    // Longer than the requests below take.
    let server = Server::configured(|setup| setup.config.server.shutdown_delay = 5).await;
    let address = server.address;
    let legacy = Legacy::of(&server).await;
    let mut own = legacy.listen().await;
    assert_eq!(own.next().await.unwrap().data, "");
    let ping = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let mut idle = Raw::connect(&server).await;
    idle.write(ping).await;
    idle.reads("\"result\":{}}").await;
    let stopping = server.stop();
    let ready = format!("http://{address}/readyz");
    let answer = poll("the server not to be ready", async || {
        let answer = Answer::of(http().get(&ready)).await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert_eq!(answer.header("connection"), Some("close"));
    // Requests on new and on open connections are still answered.
    assert_eq!(legacy.send("ping", json!({})).await.result(), json!({}));
    idle.write(ping).await;
    // And the proxy uses the connection for no other one.
    let last = idle.answer().await;
    assert_eq!(last.status, 200, "{last:?}");
    assert!(last.head.to_lowercase().contains("connection: close"), "{last:?}");
    // The client of a stream reconnects when it ends: this instance refuses it then.
    own.end().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert!(stopping.finished().await);
}
