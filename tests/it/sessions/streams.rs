//! Streams of sessions: resumption, and separation from each other.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Events, Legacy, Server, ToolState, messages};

/// A call of three steps whose connection is closed after the first; the id of the last event.
async fn cut_after_one(server: &Server, client: &Legacy, id: i64, key: &str) -> String {
    server.control.release(key, 1);
    let mut events = client.stream_call(id, "stepwise", json!({ "key": key, "steps": 3 })).await;
    loop {
        let event = events.next().await.unwrap();
        if !event.data.is_empty() {
            return event.id;
        }
    }
}

fn progress(message: &Value) -> Option<f64> {
    message["params"]["progress"].as_f64()
}

#[tokio::test]
async fn a_resumed_stream_has_exactly_the_events_that_were_missed() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let seen = cut_after_one(&server, &client, 5, "k").await;
    server.control.release("k", 1);
    server.control.reached("k", ToolState::Step(2)).await;
    // A missed event, then a live one, then the result.
    let mut events = client.resume(&seen).await;
    assert_eq!(progress(&events.message().await), Some(2.0));
    server.control.release("k", 1);
    assert_eq!(progress(&events.message().await), Some(3.0));
    server.control.release("k", 1);
    let last = events.message().await;
    assert_eq!((&last["id"], &last["result"]["content"][0]["text"]), (&json!(5), &json!("done k")));
    events.end().await;
}

#[tokio::test]
async fn a_stream_can_be_resumed_after_the_call_has_finished() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let seen = cut_after_one(&server, &client, 5, "k").await;
    server.control.release("k", 3);
    server.control.reached("k", ToolState::Finished).await;
    for _ in 0..2 {
        let events = client.resume(&seen).await.rest().await;
        let messages = messages(&events);
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert_eq!(messages[2]["id"], 5);
        // After the last event there is nothing.
        assert!(client.resume(&events[2].id).await.rest().await.is_empty());
    }
    // After its retention the stream is unknown.
    server.clock.advance(Duration::from_secs(301));
    let gone = client.get(Some(&seen)).await.status();
    assert_eq!(gone, 404);
}

#[tokio::test]
async fn the_priming_event_resumes_from_the_start() {
    let server = Server::streaming().await;
    let client = Legacy::of(&server).await;
    let call = client.stream_call(1, "stepwise", json!({ "key": "k", "steps": 1 }));
    let mut events = call.await;
    let priming = events.next().await.unwrap();
    drop(events);
    server.control.release("k", 2);
    let messages = client.resume(&priming.id).await.messages().await;
    assert_eq!((progress(&messages[0]), &messages[1]["id"]), (Some(1.0), &json!(1)));
}

#[tokio::test]
async fn a_resumed_connection_that_breaks_before_its_first_message_can_be_resumed() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let mut seen = cut_after_one(&server, &client, 5, "k").await;
    let mut ids = vec![seen.clone()];
    for _ in 0..3 {
        let mut resumed = Events::of(client.get(Some(&seen)).await);
        let priming = resumed.next().await.unwrap();
        assert!(priming.data.is_empty() && priming.retry.is_some(), "{priming:?}");
        // Event ids are unique.
        assert!(!ids.contains(&priming.id), "{}", priming.id);
        seen.clone_from(&priming.id);
        ids.push(priming.id);
    }
    server.control.release("k", 3);
    let messages = client.resume(&seen).await.messages().await;
    assert_eq!((messages.len(), &messages[2]["id"]), (3, &json!(5)), "{messages:?}");
}

#[tokio::test]
async fn clients_of_older_versions_get_no_priming_event_when_they_resume() {
    let server = Server::start().await;
    let client = Legacy::speaking(&server, "2025-06-18").await;
    let seen = cut_after_one(&server, &client, 5, "k").await;
    server.control.release("k", 3);
    let events = Events::of(client.get(Some(&seen)).await).rest().await;
    assert!(events.iter().all(|event| !event.data.is_empty()), "{events:?}");
}

#[tokio::test]
async fn event_ids_of_other_sessions_and_invalid_ids_are_unknown() {
    let server = Server::start().await;
    let (client, stranger) = (Legacy::of(&server).await, Legacy::of(&server).await);
    let seen = cut_after_one(&server, &client, 1, "k").await;
    let stream = seen.rsplit_once('-').unwrap().0.to_owned();
    assert_eq!(stranger.get(Some(&seen)).await.status(), 404);
    let beyond = format!("{stream}-999");
    for garbage in
        ["", "x", "-", "0-0", "🦀", &beyond, &format!("{stream}-x"), &format!("{seen}-1")]
    {
        let answer = client.get(Some(garbage)).await;
        assert_eq!(answer.status(), 404, "{garbage:?}");
    }
    server.control.release("k", 3);
    assert_eq!(client.resume(&seen).await.messages().await.len(), 3);
}

#[tokio::test]
async fn streams_of_one_session_are_kept_apart() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let one = cut_after_one(&server, &client, 1, "one").await;
    let two = cut_after_one(&server, &client, 2, "two").await;
    server.control.release("two", 3);
    server.control.release("one", 3);
    for (seen, id, text) in [(two, 2, "done two"), (one, 1, "done one")] {
        let messages = client.resume(&seen).await.messages().await;
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[2]["id"], id);
        assert_eq!(messages[2]["result"]["content"][0]["text"], text);
    }
}

#[tokio::test]
async fn the_last_resumption_replaces_the_earlier_ones() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let seen = cut_after_one(&server, &client, 1, "k").await;
    let first = client.resume(&seen).await;
    let second = client.resume(&seen).await;
    assert!(first.messages().await.is_empty());
    server.control.release("k", 3);
    assert_eq!(second.messages().await.len(), 3);
}

#[tokio::test]
async fn a_tool_may_close_the_connection_and_the_call_goes_on() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let mut events = client.stream_call(3, "disconnect", json!({ "key": "k" })).await;
    let priming = events.next().await.unwrap();
    events.end().await;
    assert!(events.raw().ends_with("retry: 50\n\n"), "{:?}", events.raw());
    assert!(!server.control.has("k", ToolState::Dropped));
    server.control.release("k", 1);
    let messages = client.resume(&priming.id).await.messages().await;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["result"]["content"][0]["text"], "done k");
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_from_its_start_is_not_closed_early() {
    let server = Server::start().await;
    for version in ["2025-03-26", "2025-06-18"] {
        let client = Legacy::speaking(&server, version).await;
        let arguments = json!({ "key": version });
        let body = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "disconnect", "arguments": arguments,
        } });
        let sent = tokio::spawn(client.post(&body).send());
        server.control.reached(version, ToolState::Started).await;
        server.control.release(version, 1);
        let events = Events::of(sent.await.unwrap().unwrap());
        let messages = events.messages().await;
        let text = &messages[0]["result"]["content"][0]["text"];
        assert_eq!(text, &format!("done {version}"), "{messages:?}");
    }
}

#[tokio::test]
async fn the_get_stream_has_the_messages_that_belong_to_no_call() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let mut own = client.listen().await;
    assert_eq!(own.next().await.unwrap().data, "");
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    assert_eq!(own.message().await["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn the_last_get_stream_replaces_the_earlier_one() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    let first = client.listen().await;
    let mut second = client.listen().await;
    assert!(first.messages().await.is_empty());
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    assert_eq!(second.next().await.unwrap().data, "");
    assert_eq!(second.message().await["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn the_get_stream_is_resumed_like_any_other() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    client.send("resources/subscribe", json!({ "uri": "x:1" })).await.result();
    let mut own = client.listen().await;
    // These events were sent before the stream was opened.
    let seen = last_of(&mut own, 2).await;
    drop(own);
    client.call("update_resource", json!({ "uri": "x:1", "text": "2" })).await.text();
    let mut own = client.resume(&seen).await;
    let message = own.message().await;
    assert_eq!(message["method"], "notifications/resources/updated");
    assert_eq!(message["params"], json!({ "uri": "x:1" }));
    let again = client.resume(&seen).await.next().await.unwrap();
    assert!(again.data.contains("updated"));
}

/// The id of the last of so many events.
async fn last_of(events: &mut Events, count: usize) -> String {
    let mut id = String::new();
    for _ in 0..count {
        id = events.next().await.unwrap().id;
    }
    id
}

#[tokio::test]
async fn a_gap_in_a_stream_is_an_error() {
    let server = Server::start().await;
    let client = Legacy::of(&server).await;
    server.control.release("k", 1);
    let call = client.stream_call(1, "stepwise", json!({ "key": "k", "steps": 11_000 }));
    let mut events = call.await;
    events.next().await;
    let first = events.next().await.unwrap().id;
    drop(events);
    server.control.release("k", 11_000);
    server.control.reached("k", ToolState::Finished).await;
    let stream = first.rsplit_once('-').unwrap().0;
    let late = client.resume(&format!("{stream}-10999")).await.messages().await;
    assert_eq!((late.len(), &late[1]["id"]), (2, &json!(1)));
    let gone = client.get(Some(&first)).await;
    assert_eq!(gone.status(), 404);
    assert!(gone.text().await.unwrap().contains("no longer kept"));
}

#[tokio::test]
async fn the_number_of_streams_is_bounded_and_a_refused_call_is_dropped() {
    let server = Server::streaming().await;
    let client = Legacy::of(&server).await;
    let mut running = Vec::new();
    for n in 0..64 {
        let arguments = json!({ "key": format!("k{n}") });
        running.push(client.stream_call(n, "stepwise", arguments).await);
    }
    let refused = client.call("stepwise", json!({ "key": "more" })).await;
    assert_eq!(refused.status, 429);
    assert!(refused.error()["message"].as_str().unwrap().contains("64"));
    server.control.reached("more", ToolState::Dropped).await;
    // Requests without a stream are still answered, and the end of a stream makes room.
    assert_eq!(client.send("ping", json!({})).await.status, 200);
    server.control.release("k0", 1);
    assert_eq!(running.swap_remove(0).messages().await.len(), 1);
    client.stream_call(99, "stepwise", json!({ "key": "again" })).await;
}
