//! Several instances on one Redis: a session, a task or a resource must not
//! depend on which instance serves it.

mod crowd;
mod failover;
mod failure;
mod random;
mod resources;
mod signals;
mod stores;
mod streams;
mod tasks;

use serde_json::{Value, json};

use crate::support::{
    Events, Legacy, RedisServer,
    process::{Process, example},
};

/// The example that the instances run, with slow tools.
pub(crate) const EXAMPLE: &str = "instances";

/// Starts an instance on a Redis.
async fn start(redis: &RedisServer) -> Process {
    start_in(&redis.url(), &[]).await
}

/// Starts an instance on the Redis at a URL, with these environment variables.
async fn start_in(url: &str, environment: &[(&str, &str)]) -> Process {
    let mut command = example(EXAMPLE);
    command.args(["--store", url]).env("LARDER_REDIS__TIMEOUT", "1");
    command.envs(environment.iter().copied());
    Process::start(command).await
}

/// Starts `N` instances on one Redis.
async fn instances<const N: usize>(redis: &RedisServer) -> [Process; N] {
    let mut instances = Vec::new();
    for _ in 0..N {
        instances.push(start(redis).await);
    }
    instances.try_into().ok().unwrap()
}

/// A session of a client that answers questions.
async fn session(instance: &Process) -> Legacy {
    let mut initialize = Legacy::initialize("2025-11-25");
    initialize["params"]["capabilities"] = json!({ "elicitation": {} });
    Legacy::begin(&instance.url, &initialize).await
}

/// A call of `count` that has begun; its stream, and the id of the priming event.
async fn counting(client: &Legacy, id: impl Into<Value>, to: u32, every: u64) -> (Events, String) {
    let mut events = client.stream_call(id, "count", json!({ "to": to, "every": every })).await;
    let priming = events.next().await.unwrap();
    assert_eq!(priming.data, "");
    (events, priming.id)
}

/// The remaining numbers of a call of `count`, and its response.
async fn counted(mut events: Events) -> (Vec<u64>, Value) {
    let mut numbers = Vec::new();
    loop {
        let message = events.message().await;
        let Some(number) = message["params"]["progress"].as_f64() else {
            events.end().await;
            return (numbers, message);
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        numbers.push(number as u64);
    }
}

/// Checks what [`counted`] returned: the numbers `rest`, and the response of the call `id`.
#[track_caller]
fn assert_counted(
    (numbers, response): (Vec<u64>, Value),
    id: impl Into<Value>,
    rest: std::ops::RangeInclusive<u64>,
) {
    let to = *rest.end();
    assert_eq!(numbers, rest.collect::<Vec<_>>());
    assert_eq!(response["id"], id.into(), "{response}");
    let text = &response["result"]["content"][0]["text"];
    assert_eq!(text, &format!("counted to {to}"), "{response}");
}

/// Sends a command to a Redis directly.
async fn query<T: ::redis::FromRedisValue>(
    redis: &RedisServer,
    words: &[&str],
) -> ::redis::RedisResult<T> {
    let client = ::redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await?;
    ::redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await
}
