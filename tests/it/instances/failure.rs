//! Instances that die, and a Redis that goes away.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{assert_counted, counted, counting, instances, session, start, start_in};
use crate::support::{
    Events, Legacy, RedisServer, ask, eventually, messages, poll, process::Process,
};

/// How long a call of an instance that died may take to end.
const SOON: Duration = Duration::from_secs(15);

/// How long a request may take to fail, with a timeout of at most a second for Redis.
const FAST: Duration = Duration::from_secs(4);

#[tokio::test]
async fn the_calls_of_a_killed_instance_end_with_an_error_and_sessions_live_on() {
    let redis = RedisServer::start().await;
    let [mut a, b, c] = instances(&redis).await;
    let on_a = session(&a).await;
    let (mut events, _) = counting(&on_a, "x", 100_000, 10).await;
    let last = events.next().await.unwrap().id;
    a.kill().await;
    let killed = Instant::now();
    drop(events);
    let on_b = on_a.at(&b.url);
    let events = on_b.resume(&last).await.rest().await;
    assert!(killed.elapsed() < SOON, "it took {:?}", killed.elapsed());
    let heard = messages(&events);
    let (error, progress) = heard.split_last().unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("x"), &json!(-32603)), "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("again"), "{error}");
    assert!(progress.iter().all(|message| message.get("id").is_none()));
    // The error is stored once: a later resumption replays the same.
    let on_c = on_a.at(&c.url);
    assert_eq!(messages(&on_c.resume(&last).await.rest().await), heard);
    let (events, _) = counting(&on_c, 2, 2, 1).await;
    assert_counted(counted(events).await, 2, 1..=2);
}

#[tokio::test]
async fn the_calls_of_an_instance_that_is_stopped_end_at_once() {
    let redis = RedisServer::start().await;
    let mut a = start_in(&redis.url(), &[("LARDER_SERVER__GRACE", "0")]).await;
    let b = start(&redis).await;
    let on_a = session(&a).await;
    let (events, start) = counting(&on_a, "x", 100_000, 10).await;
    drop(events);
    let resumed = on_a.at(&b.url).resume(&start).await;
    a.signal("-TERM").await;
    a.exit_code().await;
    let stopped = Instant::now();
    let heard = resumed.messages().await;
    assert!(stopped.elapsed() < FAST, "it took {:?}", stopped.elapsed());
    let error = heard.last().unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("x"), &json!(-32603)), "{error}");
}

/// The result of a call without a session, which needs no Redis.
async fn counted_without_session(instance: &Process) -> Value {
    let call = json!({ "name": "count", "arguments": { "to": 1, "every": 0 } });
    ask(&instance.url, "tools/call", call).await.result()
}

#[tokio::test]
async fn without_redis_sessions_fail_fast_and_come_back() {
    let mut redis = RedisServer::durable().await;
    let timeout = [("LARDER_REDIS__TIMEOUT", "0.5")];
    let (a, b) = (start_in(&redis.url(), &timeout).await, start_in(&redis.url(), &timeout).await);
    let on_a = session(&a).await;
    let on_b = on_a.at(&b.url);
    for paused in [false, true] {
        if paused {
            redis.pause();
        } else {
            redis.kill();
        }
        for client in [&on_a, &on_b] {
            // An instance remembers a session for a second.
            let fails = async || client.send("ping", json!({})).await.status != 200;
            eventually("the session to be forgotten", fails).await;
            let begin = Instant::now();
            let refused = client.send("ping", json!({})).await;
            assert_eq!(refused.status, 503, "{refused:?}");
            let error = refused.error();
            assert_eq!(error["code"], -32603, "{error}");
            assert!(error["message"].as_str().unwrap().contains("again"), "{error}");
            assert_eq!(client.get(None).await.status(), 503);
            assert_eq!(client.delete().await.status, 503);
            assert!(begin.elapsed() < 3 * FAST, "it took {:?}", begin.elapsed());
        }
        assert_eq!(counted_without_session(&a).await["content"][0]["text"], "counted to 1");
        if paused {
            redis.resume();
        } else {
            redis.restart().await;
        }
        for client in [&on_a, &on_b] {
            let works = async || client.send("ping", json!({})).await.status == 200;
            eventually("the session to work again", works).await;
        }
    }
}

#[tokio::test]
async fn a_call_outlasts_a_restart_of_redis_that_keeps_its_data() {
    let mut redis = RedisServer::durable().await;
    let [a, b] = instances(&redis).await;
    let on_a = session(&a).await;
    let (events, start) = counting(&on_a, 1, 100, 20).await;
    redis.kill();
    let fails = async || on_a.send("ping", json!({})).await.status == 503;
    eventually("the outage to be noticed", fails).await;
    redis.restart().await;
    assert_counted(counted(events).await, 1, 1..=100);
    let again = counted(on_a.at(&b.url).resume(&start).await).await;
    assert_counted(again, 1, 1..=100);
}

/// Waits until a stream ends or is lost, without a response.
async fn gone(events: Events) {
    assert!(!events.until_broken().await.iter().any(|event| event.data.contains("result")));
}

#[tokio::test]
async fn a_redis_that_comes_back_empty_ends_all_sessions_and_calls_soon() {
    let mut redis = RedisServer::start().await;
    let [a, b] = instances(&redis).await;
    let on_a = session(&a).await;
    let own = on_a.at(&b.url).listen().await;
    let (events, _) = counting(&on_a, 1, 100_000, 20).await;
    redis.restart().await;
    let restarted = Instant::now();
    gone(events).await;
    gone(own).await;
    assert!(restarted.elapsed() < SOON, "it took {:?}", restarted.elapsed());
    for instance in [&a, &b] {
        let client = on_a.at(&instance.url);
        let is_unknown = async || client.send("ping", json!({})).await.status == 404;
        eventually("the session to be unknown", is_unknown).await;
        let anew: Legacy = session(instance).await;
        let (events, _) = counting(&anew, 2, 2, 1).await;
        assert_counted(counted(events).await, 2, 1..=2);
    }
}

#[tokio::test]
async fn streams_end_when_redis_stays_away() {
    let mut redis = RedisServer::durable().await;
    let [a] = instances(&redis).await;
    let on_a = session(&a).await;
    let (events, start) = counting(&on_a, "x", 100_000, 20).await;
    redis.kill();
    gone(events).await;
    redis.restart().await;
    // The call was given up; a resumed stream says so.
    let resumed = async || {
        let response = on_a.get(Some(&start)).await;
        (response.status() == 200).then(|| Events::of(response))
    };
    let heard = poll("the session to work again", resumed).await.messages().await;
    let error = heard.last().unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("x"), &json!(-32603)), "{error}");
}
