//! A rolling restart of three instances behind a proxy, under load: every call is answered,
//! and every stream continues.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::MissedTickBehavior};

use crate::{
    instances::EXAMPLE,
    support::{
        Events, Legacy, Modern, RedisServer, eventually,
        process::{Process, example},
        proxy::Proxy,
    },
};

/// How many callers there are, and the interval of each: 200 calls a second in all, where the
/// machine can.
const CALLERS: usize = 8;
const INTERVAL: Duration = Duration::from_millis(40);

/// How many calls are made between two restarts at least.
const CALLS_BETWEEN: usize = 100;

/// How many times each instance is restarted.
const ROUNDS: usize = 2;

/// The last resource that is updated.
const LAST: &str = "x:last";

/// What the clients share.
struct World {
    /// The URL of the proxy.
    url: String,
    /// How many calls were answered.
    answered: AtomicUsize,
    /// What went wrong.
    problems: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl World {
    fn is_running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn problem(&self, problem: String) {
        self.problems.lock().unwrap().push(problem);
    }

    /// The result of a request. That it has none is a problem, not the end of the test: all
    /// of them together tell more.
    async fn result(&self, what: &str, request: reqwest::RequestBuilder) -> Option<Value> {
        let outcome = async {
            let response = request.send().await.map_err(|error| format!("{error:?}"))?;
            let status = response.status().as_u16();
            let text = response.text().await.map_err(|error| format!("{error:?}"))?;
            // Of a stream it is the last message.
            let message = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
            let message: Value = serde_json::from_str(message.unwrap_or(&text))
                .map_err(|_| format!("{status} {text}"))?;
            match &message["result"] {
                Value::Object(result)
                    if status == 200 && result.get("isError") != Some(&true.into()) =>
                {
                    Ok(message["result"].clone())
                }
                _ => Err(format!("{status} {message}")),
            }
        };
        match outcome.await {
            Ok(result) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                Some(result)
            }
            Err(problem) => {
                self.problem(format!("{what}: {problem}"));
                None
            }
        }
    }
}

/// nginx tries another instance when a connection is refused.
#[tokio::test]
async fn a_rolling_restart_behind_nginx_loses_nothing() {
    let cluster = Cluster::start(0).await;
    let proxy = Proxy::nginx(&cluster.addresses()).await;
    restarted_under_load(cluster, proxy).await;
}

/// Caddy asks instances whether they are ready: five times a second here.
#[tokio::test]
#[ignore = "needs Caddy: make proxies"]
async fn a_rolling_restart_behind_caddy_loses_nothing() {
    let cluster = Cluster::start(3).await;
    let proxy = Proxy::caddy(&cluster.addresses(), "200ms").await;
    restarted_under_load(cluster, proxy).await;
}

/// Three instances on one Redis.
struct Cluster {
    redis: RedisServer,
    /// `server.shutdown_delay`.
    delay: String,
    instances: Vec<Process>,
}

impl Cluster {
    async fn start(delay: u32) -> Self {
        let (redis, delay) = (RedisServer::start().await, delay.to_string());
        let mut cluster = Self { redis, delay, instances: Vec::new() };
        for _ in 0..3 {
            cluster.instances.push(Process::start(cluster.command()).await);
        }
        cluster
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = example(EXAMPLE);
        command.args(["--store", &self.redis.url()]);
        command.env("LARDER_SERVER__SHUTDOWN_DELAY", &self.delay);
        command
    }

    fn addresses(&self) -> Vec<&str> {
        self.instances.iter().map(Process::address).collect()
    }

    /// Stops an instance and starts it again at the same address.
    async fn restart(&mut self, number: usize) {
        let instance = &mut self.instances[number];
        instance.signal("-TERM").await;
        assert_eq!(instance.exit_code().await, Some(0), "{}", instance.stderr());
        let address = instance.address().to_owned();
        self.instances[number] = Process::start_at(self.command(), &address).await;
    }
}

async fn restarted_under_load(mut cluster: Cluster, proxy: Proxy) {
    let world = Arc::new(World {
        url: proxy.url.clone(),
        answered: AtomicUsize::new(0),
        problems: Mutex::default(),
        stop: AtomicBool::new(false),
    });
    let mut clients = JoinSet::new();
    for number in 0..CALLERS {
        clients.spawn(calls(Arc::clone(&world), number));
    }
    clients.spawn(resumed_calls(Arc::clone(&world)));
    clients.spawn(subscription(Arc::clone(&world)));
    let session = Legacy::at_url(&world.url).await;
    let events = session.listen().await;
    let reader = tokio::spawn(own_stream(session.clone(), events));
    let writer = tokio::spawn(updates(Arc::clone(&world), session));

    for _ in 0..ROUNDS {
        for number in 0..cluster.instances.len() {
            let before = world.answered.load(Ordering::Relaxed);
            cluster.restart(number).await;
            eventually("more calls", async || {
                world.answered.load(Ordering::Relaxed) >= before + CALLS_BETWEEN
                    || !world.problems.lock().unwrap().is_empty()
            })
            .await;
        }
    }
    world.stop.store(true, Ordering::Relaxed);
    let updated = writer.await.unwrap();
    let seen = reader.await.unwrap();
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let problems = std::mem::take(&mut *world.problems.lock().unwrap());
    assert!(problems.is_empty(), "{problems:#?}\n{}", proxy.log());
    let unique: BTreeSet<_> = seen.iter().cloned().collect();
    assert_eq!(unique, updated.iter().cloned().collect());
    assert_eq!(seen.len(), updated.len(), "each once: {seen:?}");
}

/// Calls without a session, each of which changes something: a proxy may not repeat them.
async fn calls(world: Arc<World>, number: usize) {
    let client = Modern::at(&world.url);
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut made = 0;
    while world.is_running() {
        interval.tick().await;
        let uri = format!("calls:{number}/{}", made % 20);
        let arguments = json!({ "uri": uri, "text": format!("{made}") });
        let tool = if made < 20 { "create_resource" } else { "update_resource" };
        let params = json!({ "name": tool, "arguments": arguments });
        world.result(tool, client.request(made, "tools/call", params)).await;
        let read = client.request(made, "resources/read", json!({ "uri": uri }));
        if let Some(result) = world.result("resources/read", read).await
            && result["contents"][0]["text"].as_str() != Some(made.to_string().as_str())
        {
            world.problem(format!("{uri} is not {made}: {result}"));
        }
        made += 1;
    }
}

/// Calls of a session that report progress; a stream that ends early is resumed.
async fn resumed_calls(world: Arc<World>) {
    const TO: u64 = 20;

    let client = Legacy::at_url(&world.url).await;
    let mut id = 0;
    while world.is_running() {
        id += 1;
        let mut events = client.stream_call(id, "count", json!({ "to": TO, "every": 50 })).await;
        let (mut last, mut numbers, mut times) = (String::new(), Vec::new(), 0);
        let response = loop {
            let Some(event) = events.next_or_lost().await else {
                events = resumed(&client, &last, &mut times).await;
                continue;
            };
            last = event.id;
            if event.data.is_empty() {
                continue;
            }
            let message: Value = serde_json::from_str(&event.data).unwrap();
            match message["params"]["progress"].as_f64() {
                Some(progress) => numbers.push(format!("{progress}")),
                None => break message,
            }
        };
        let expected: Vec<_> = (1..=TO).map(|number| number.to_string()).collect();
        if numbers != expected || response["result"]["content"][0]["text"] != "counted to 20" {
            world.problem(format!("the call {id} sent {numbers:?} and {response}"));
        }
    }
}

/// A subscription without a session. It ends with a result when its instance stops, and the
/// client subscribes again and reads what it may have missed.
async fn subscription(world: Arc<World>) {
    let client = Modern::at(&world.url);
    let read = async || {
        let request = client.request(1, "resources/read", json!({ "uri": "live:x" }));
        let result = world.result("live:x", request).await?;
        result["contents"][0]["text"].as_str()?.parse::<u64>().ok()
    };
    client.create(json!({ "uri": "live:x", "text": "0" })).await;
    let mut written = 0;
    while world.is_running() {
        let mut events =
            client.listen("live", json!({ "resourceSubscriptions": ["live:x"] })).await;
        if read().await != Some(written) {
            world.problem(format!("live:x is not {written} after subscribing"));
        }
        // Each change is announced until the end of the subscription.
        loop {
            written += 1;
            let arguments = json!({ "uri": "live:x", "text": written.to_string() });
            let params = json!({ "name": "update_resource", "arguments": arguments });
            world.result("update", client.request(1, "tools/call", params)).await;
            match events.next_or_lost().await {
                Some(event) if event.data.contains("notifications/resources/updated") => {}
                Some(event) => {
                    if !event.data.contains("\"complete\"") {
                        world.problem(format!("instead of an update: {event:?}"));
                    }
                    break;
                }
                None => {
                    world.problem("a subscription ended without a result".into());
                    break;
                }
            }
            if !world.is_running() {
                return;
            }
        }
    }
}

/// Creates, subscribes to and updates one resource after the other; all of them.
async fn updates(world: Arc<World>, session: Legacy) -> Vec<String> {
    let mut updated = Vec::new();
    let mut last = false;
    while !last {
        last = !world.is_running();
        let uri = if last { LAST.to_owned() } else { format!("x:{}", updated.len()) };
        let call = |tool: &str, text: &str| {
            let arguments = json!({ "uri": uri, "text": text });
            json!({ "name": tool, "arguments": arguments })
        };
        for (method, params) in [
            ("tools/call", call("create_resource", "1")),
            ("resources/subscribe", json!({ "uri": uri })),
            ("tools/call", call("update_resource", "2")),
        ] {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            world.result(method, session.post(&body)).await;
        }
        updated.push(uri);
    }
    updated
}

/// The stream after an event. An instance that stops may end it at once, but no stream ends again
/// and again.
async fn resumed(session: &Legacy, last: &str, times: &mut usize) -> Events {
    *times += 1;
    assert!(*times <= 20 * ROUNDS, "the stream ends after {last} again and again");
    Events::of(session.get((!last.is_empty()).then_some(last)).await)
}

/// The resources whose update the session's own stream told of, until the last one. The
/// stream is resumed wherever it ends.
async fn own_stream(session: Legacy, mut events: Events) -> Vec<String> {
    let (mut seen, mut last, mut times) = (Vec::new(), String::new(), 0);
    while seen.last().is_none_or(|uri| uri != LAST) {
        let Some(event) = events.next_or_lost().await else {
            events = resumed(&session, &last, &mut times).await;
            continue;
        };
        last = event.id;
        if event.data.contains("notifications/resources/updated") {
            let message: Value = serde_json::from_str(&event.data).unwrap();
            seen.push(message["params"]["uri"].as_str().unwrap().to_owned());
        }
    }
    seen
}
