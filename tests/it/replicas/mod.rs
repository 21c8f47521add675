//! Several processes on one Redis, behind a client that takes whichever
//! comes next: what a session is must not depend on who serves it.

mod failover;
mod failure;
mod places;
mod random;
mod resources;
mod signals;
mod streams;
mod tasks;

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::support::{Events, Legacy, RedisServer, patiently};

/// A server process of the example `instances`.
struct Replica {
    process: Child,
    url: String,
}

impl Replica {
    async fn start(redis: &RedisServer) -> Self {
        Self::start_with(redis, &[]).await
    }

    async fn start_with(redis: &RedisServer, environment: &[(&str, &str)]) -> Self {
        Self::start_at(&redis.url(), environment).await
    }

    /// On whatever Redis that URL leads to.
    async fn start_at(url: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(example());
        command.args(["--listen", "127.0.0.1:0", "--store", url]);
        command.env("LARDER_REDIS__TIMEOUT", "1").envs(environment.iter().copied());
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null());
        let mut process = command.stderr(Stdio::piped()).spawn().expect("cargo build --examples");
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = loop {
            let line = patiently("the server", said.next_line()).await.unwrap().unwrap();
            if let Some(url) = line.strip_prefix("larder listening on ") {
                break url.to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        Self { process, url }
    }

    /// `kill -9`
    async fn kill(&mut self) {
        self.process.kill().await.unwrap();
    }
}

/// So many replicas on one Redis.
async fn replicas<const N: usize>(redis: &RedisServer) -> [Replica; N] {
    let mut replicas = Vec::new();
    for _ in 0..N {
        replicas.push(Replica::start(redis).await);
    }
    replicas.try_into().ok().unwrap()
}

/// Cargo builds it beside the binary.
fn example() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_larder"));
    binary.with_file_name("examples").join("instances")
}

/// A session of a client that can be asked things.
async fn session(replica: &Replica) -> Legacy {
    let mut initialize = Legacy::initialize("2025-11-25");
    initialize["params"]["capabilities"] = json!({ "elicitation": {} });
    Legacy::begin(&replica.url, &initialize).await
}

/// A call that counts, and has begun to.
async fn counting(client: &Legacy, id: impl Into<Value>, to: u32, every: u64) -> (Events, String) {
    let mut events = client.stream_call(id, "count", json!({ "to": to, "every": every })).await;
    let priming = events.next().await.unwrap();
    assert_eq!(priming.data, "");
    (events, priming.id)
}

/// What is left of counting: the numbers, and the response.
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

/// That the call of that id has counted so far, with these numbers still to be heard.
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

/// Asks a Redis something, past whatever is tested.
async fn try_ask<T: ::redis::FromRedisValue>(
    redis: &RedisServer,
    words: &[&str],
) -> ::redis::RedisResult<T> {
    let client = ::redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await?;
    ::redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await
}
