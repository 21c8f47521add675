//! Replicas that die, and a Redis that goes away.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Replica, assert_counted, counted, counting, replicas, session};
use crate::support::{Answer, Legacy, RedisServer, http, messages, patiently};

/// So soon a call of a replica that died has to end.
const SOON: Duration = Duration::from_secs(15);

/// So soon a request has to fail, with a time-out of one second for Redis.
const FAST: Duration = Duration::from_secs(4);

#[tokio::test]
async fn the_calls_of_a_killed_replica_end_with_an_error_and_sessions_live_on() {
    let redis = RedisServer::start().await;
    let [mut a, b, c] = replicas(&redis).await;
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
    // Said once: whoever comes later hears the same.
    let on_c = on_a.at(&c.url);
    assert_eq!(messages(&on_c.resume(&last).await.rest().await), heard);
    let (events, _) = counting(&on_c, 2, 2, 1).await;
    assert_counted(counted(events).await, 2, 1..=2);
}

#[tokio::test]
async fn the_calls_of_a_replica_that_is_stopped_end_at_once() {
    let redis = RedisServer::start().await;
    let mut a = Replica::start_with(&redis, &[("LARDER_SERVER__GRACE", "0")]).await;
    let b = Replica::start(&redis).await;
    let on_a = session(&a).await;
    let (events, start) = counting(&on_a, "x", 100_000, 10).await;
    drop(events);
    let resumed = on_a.at(&b.url).resume(&start).await;
    let id = a.process.id().unwrap().to_string();
    let sent = tokio::process::Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    assert!(sent.success());
    patiently("its end", a.process.wait()).await.unwrap();
    let stopped = Instant::now();
    let heard = resumed.messages().await;
    assert!(stopped.elapsed() < FAST, "it took {:?}", stopped.elapsed());
    let error = heard.last().unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("x"), &json!(-32603)), "{error}");
}

/// A session-less call, which needs no Redis.
async fn greeted(replica: &Replica) -> Value {
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "count", "arguments": { "to": 1, "every": 0 } },
    });
    let request = http().post(&replica.url).header("content-type", "application/json");
    Answer::of(request.body(call.to_string())).await.result()
}

#[tokio::test]
async fn without_redis_sessions_fail_fast_and_come_back() {
    let mut redis = RedisServer::durable().await;
    let [a, b] = replicas(&redis).await;
    let on_a = session(&a).await;
    let on_b = on_a.at(&b.url);
    for paused in [false, true] {
        if paused {
            redis.pause();
        } else {
            redis.kill();
        }
        // Whoever was here a moment ago is remembered for a moment.
        sleep(Duration::from_millis(1100)).await;
        for client in [&on_a, &on_b] {
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
        assert_eq!(greeted(&a).await["content"][0]["text"], "counted to 1");
        if paused {
            redis.resume();
        } else {
            redis.restart().await;
        }
        for client in [&on_a, &on_b] {
            let back = async {
                while client.send("ping", json!({})).await.status != 200 {
                    sleep(Duration::from_millis(50)).await;
                }
            };
            patiently("the session", back).await;
        }
    }
}

#[tokio::test]
async fn a_call_outlasts_a_restart_of_redis_that_keeps_its_data() {
    let mut redis = RedisServer::durable().await;
    let [a, b] = replicas(&redis).await;
    let on_a = session(&a).await;
    let (events, start) = counting(&on_a, 1, 100, 20).await;
    redis.kill();
    sleep(Duration::from_millis(500)).await;
    redis.restart().await;
    assert_counted(counted(events).await, 1, 1..=100);
    let again = counted(on_a.at(&b.url).resume(&start).await).await;
    assert_counted(again, 1, 1..=100);
}

/// What becomes of a connection that breaks off or ends without a response.
async fn gone(events: crate::support::Events) {
    assert!(!events.until_broken().await.iter().any(|event| event.data.contains("result")));
}

#[tokio::test]
async fn a_redis_that_comes_back_empty_ends_everything_and_keeps_nobody_waiting() {
    let mut redis = RedisServer::start().await;
    let [a, b] = replicas(&redis).await;
    let on_a = session(&a).await;
    let own = on_a.at(&b.url).listen().await;
    let (events, _) = counting(&on_a, 1, 100_000, 20).await;
    redis.restart().await;
    let restarted = Instant::now();
    gone(events).await;
    gone(own).await;
    assert!(restarted.elapsed() < SOON, "it took {:?}", restarted.elapsed());
    for replica in [&a, &b] {
        let unknown = async {
            while on_a.at(&replica.url).send("ping", json!({})).await.status != 404 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        patiently("the session to be unknown", unknown).await;
        let anew: Legacy = session(replica).await;
        let (events, _) = counting(&anew, 2, 2, 1).await;
        assert_counted(counted(events).await, 2, 1..=2);
    }
}

#[tokio::test]
async fn a_redis_that_stays_away_breaks_connections_off() {
    let mut redis = RedisServer::durable().await;
    let [a] = replicas(&redis).await;
    let on_a = session(&a).await;
    let (events, start) = counting(&on_a, "x", 100_000, 20).await;
    redis.kill();
    gone(events).await;
    redis.restart().await;
    // The call was given up; whoever comes back is told so.
    let told = async {
        loop {
            let response = on_a.get(Some(&start)).await;
            if response.status() == 200 {
                return crate::support::Events::of(response).messages().await;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let heard = patiently("the session", told).await;
    let error = heard.last().unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("x"), &json!(-32603)), "{error}");
}
