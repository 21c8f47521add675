//! Many calls, cut off after random events and resumed on other instances.

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{instances, session};
use crate::support::{Events, Legacy, RedisServer, process::Process};

/// The number of calls.
const CALLS: u64 = 1000;

/// The number of sessions, and of calls at a time.
const SESSIONS: usize = 10;
const AT_ONCE: usize = 16;

/// How far each call counts.
const TO: u32 = 6;

/// Random numbers that are the same in every run: a linear congruential generator
/// (Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A call that is cut off after some events again and again until it ends; the number of
/// cuts.
async fn cut_and_resumed(client: &Legacy, instances: &[Process], id: u64) -> u64 {
    let mut dice = Dice(id);
    let mut at = usize::try_from(id).unwrap();
    let mut next = || {
        at += 1;
        client.at(&instances[at % instances.len()].url)
    };
    let body = json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {
            "name": "count", "arguments": { "to": TO, "every": dice.below(5) },
            "_meta": { "progressToken": id },
        },
    });
    let mut events = Events::of(next().post(&body).send().await.unwrap());
    let (mut last, mut heard, mut cuts) = (String::new(), 0_u32, 0);
    let mut until_cut = 1 + dice.below(4);
    loop {
        if until_cut == 0 {
            cuts += 1;
            drop(events);
            events = next().resume(&last).await;
            until_cut = 1 + dice.below(4);
        }
        let event = events.next().await.unwrap_or_else(|| panic!("{id} ended after {heard}"));
        until_cut -= 1;
        assert_ne!(event.id, last, "{id}");
        last = event.id;
        if event.data.is_empty() {
            continue;
        }
        let message: Value = serde_json::from_str(&event.data).unwrap();
        if message.get("id").is_some() {
            assert_eq!((&message["id"], heard), (&json!(id), TO), "{message}");
            assert!(message["result"].is_object(), "{message}");
            events.end().await;
            return cuts;
        }
        heard += 1;
        assert_eq!(message["params"]["progressToken"], id, "of another call: {message}");
        assert_eq!(
            message["params"]["progress"].as_f64(),
            Some(f64::from(heard)),
            "{id}: {message}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_message_of_a_call_that_is_cut_and_resumed_arrives_exactly_once() {
    let redis = RedisServer::start().await;
    let instances: [Process; 3] = instances(&redis).await;
    let mut clients = Vec::new();
    for n in 0..SESSIONS {
        clients.push(session(&instances[n % instances.len()]).await);
    }
    let calls = stream::iter(1..=CALLS).map(|id| {
        let client = &clients[usize::try_from(id).unwrap() % SESSIONS];
        cut_and_resumed(client, &instances, id)
    });
    let cuts: Vec<u64> = calls.buffer_unordered(AT_ONCE).collect().await;
    assert_eq!(cuts.len() as u64, CALLS);
    assert!(cuts.iter().sum::<u64>() > CALLS, "{} cuts", cuts.iter().sum::<u64>());
}
