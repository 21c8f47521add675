//! Metrics, as the binary exports them.

use std::collections::BTreeSet;

use larder::telemetry::{Kind, METRICS};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{
    Answer, Legacy, RedisServer, TextFile, ask, eventually, http, post,
    process::{Process, example, larder},
};

/// A server with a listener for its metrics.
pub(super) struct Measured {
    pub(super) process: Process,
    pub(super) metrics: Metrics,
}

impl Measured {
    pub(super) async fn start(mut command: Command) -> Self {
        const LISTENING: &str = "larder metrics on ";

        command.env("LARDER_METRICS__LISTEN", "127.0.0.1:0");
        let mut process = Process::start(command).await;
        let line = process.logs(LISTENING).await;
        let url = line.strip_prefix(LISTENING).unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { process, metrics: Metrics { url } }
    }

    /// `larder serve` with these environment variables.
    async fn larder(environment: &[(&str, &str)]) -> Self {
        let mut command = larder(&["serve"]);
        command.envs(environment.iter().copied());
        Self::start(command).await
    }

    async fn send(&self, method: &str, params: Value) -> Answer {
        ask(&self.process.url, method, params).await
    }

    /// The result of a tool call that succeeds.
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.send("tools/call", params).await.result();
        assert_ne!(result["isError"], true, "{result}");
        result
    }

    /// The id of a new session.
    async fn begin_session(&self) -> String {
        let initialize = Legacy::initialize("2025-11-25");
        let answer = Answer::of(post(&self.process.url, &initialize)).await;
        answer.header("mcp-session-id").unwrap().to_owned()
    }

    /// The GET stream of a session.
    async fn stream(&self, session: &str) -> reqwest::Response {
        let request = http().get(&self.process.url).header("mcp-session-id", session);
        request.send().await.unwrap()
    }
}

/// Where a server exports its metrics.
pub(super) struct Metrics {
    pub(super) url: String,
}

impl Metrics {
    pub(super) async fn scrape(&self) -> Scraped {
        let answer = Answer::of(http().get(&self.url)).await;
        assert!(answer.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
        Scraped(String::from_utf8(answer.body.to_vec()).unwrap())
    }
}

/// Metrics in the text format of Prometheus.
pub(super) struct Scraped(String);

impl Scraped {
    /// The whole text.
    pub(super) fn text(self) -> String {
        self.0
    }

    /// Whether a text is in it.
    pub(super) fn has(&self, text: &str) -> bool {
        self.0.contains(text)
    }

    /// The sum of all samples of a metric whose labels contain all of `labels`.
    pub(super) fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let lines = self.0.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
                && labels.iter().all(|label| line.contains(label))
        });
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }
}

#[tokio::test]
async fn calls_writes_sessions_and_streams_are_counted() {
    let server = Measured::larder(&[]).await;
    let before = server.metrics.scrape().await;
    assert_eq!(before.sum("larder_stored_bytes_total", &[]), 0);
    let call = async |name: &str, arguments: Value| {
        server.send("tools/call", json!({ "name": name, "arguments": arguments })).await
    };
    call("create_resource", json!({ "uri": "x:1", "text": "x".repeat(1000) })).await;
    call("read_resource", json!({ "uri": "x:none" })).await;
    call("no_such_tool", json!({})).await;
    call("delete_resource", json!({ "uri": "x:1" })).await;
    let session = server.begin_session().await;
    let stream = server.stream(&session).await;

    let after = server.metrics.scrape().await;
    let calls = "mcp_server_operation_duration_seconds_count";
    let method = "mcp_method_name=\"tools/call\"";
    let of = |tool: &str, error: &str| {
        let (tool, error) =
            (format!("gen_ai_tool_name=\"{tool}\""), format!("error_type=\"{error}\""));
        after.sum(calls, &[method, &tool, &error])
    };
    assert_eq!(of("create_resource", ""), 1, "{}", after.0);
    assert_eq!(of("read_resource", "tool_error"), 1);
    assert!(!after.0.contains("no_such_tool"), "clients must not be able to create labels");
    assert_eq!(of("", "refused"), 1);
    for (name, expected) in [
        ("larder_stored_bytes_total", 1000),
        ("larder_resources_written_total", 1),
        ("larder_resources_deleted_total", 1),
        ("larder_sessions_started_total", 1),
        ("larder_streams", 1),
        // The text came with the request, so the model knows it already.
        ("larder_context_kept_out_bytes_total", 0),
    ] {
        assert_eq!(after.sum(name, &[]), expected, "{name}");
    }
    let requests = "http_server_request_duration_seconds_count";
    assert_eq!(after.sum(requests, &["\"POST\"", "\"200\""]), 5);
    drop(stream);
}

#[tokio::test]
async fn each_dependency_has_a_gauge() {
    let mut redis = RedisServer::durable().await;
    let url = redis.url();
    let server = Measured::larder(&[
        ("LARDER_STORE__URL", &url),
        ("LARDER_REDIS__MIGRATE", "true"),
        ("LARDER_REDIS__TIMEOUT", "0.5"),
    ])
    .await;
    let up = async |dependency: &str| {
        let label = format!("dependency=\"{dependency}\"");
        server.metrics.scrape().await.sum("larder_dependency_up", &[&label])
    };
    for dependency in ["store", "sessions", "keys", "upstreams"] {
        assert_eq!(up(dependency).await, 1, "{dependency}");
    }
    redis.kill();
    eventually("the store is missing", async || up("store").await == 0).await;
    assert_eq!(up("keys").await, 1);
}

#[tokio::test]
async fn queries_are_counted_by_their_tool_and_end() {
    let server = Measured::larder(&[]).await;
    let rows = "{\"a\":1}\n{\"a\":2}\n".repeat(500);
    server.call("create_resource", json!({ "uri": "x:1", "text": rows })).await;
    let query = |sql: &str| json!({ "from": "x:1", "sql": sql });
    server.call("query_resource", query("SELECT sum(a) FROM t")).await;
    let mut into = query("SELECT a FROM t");
    into["into"] = json!({ "uri": "x:2" });
    server.call("query_resource", into).await;
    let fails = json!({ "name": "query_resource", "arguments": query("SELECT b FROM t") });
    server.send("tools/call", fails).await;
    let metrics = server.metrics.scrape().await;
    let calls = |error: &str| {
        let labels = ["gen_ai_tool_name=\"query_resource\"", &format!("error_type=\"{error}\"")];
        metrics.sum("mcp_server_operation_duration_seconds_count", &labels)
    };
    assert_eq!((calls(""), calls("tool_error")), (2, 1), "{}", metrics.0);
    assert_eq!(metrics.sum("larder_resources_written_total", &[]), 2);
}

#[tokio::test]
async fn a_resource_that_a_tool_stores_is_kept_out_of_the_context() {
    let mut command = example("search_logs");
    command.args(["--store", "memory:"]);
    let server = Measured::start(command).await;
    let result = server.call("search_logs", json!({ "query": "timeout" })).await;
    let metrics = server.metrics.scrape().await;
    let stored = metrics.sum("larder_stored_bytes_total", &[]);
    assert!(stored > 100_000, "{}", metrics.0);
    let params = json!({ "name": "search_logs", "arguments": { "query": "timeout" } });
    let seen = (params.to_string().len() + result.to_string().len()) as u64;
    // Exact except for the other members of the request.
    let kept_out = metrics.sum("larder_context_kept_out_bytes_total", &[]);
    assert!(kept_out.abs_diff(stored - seen) < 2_000, "{kept_out} of {stored}, {seen} seen");
}

#[tokio::test]
async fn a_result_that_spills_is_kept_out_of_the_context() {
    let file = TextFile::new("[tools.spill]\nlist_resources = \"always\"");
    let server = Measured::larder(&[("LARDER_CONFIG", file.path())]).await;
    for n in 0..100 {
        let uri = format!("notes://a-long-name-that-says-what-is-in-it-from-its-first-line-on/{n}");
        server.call("create_resource", json!({ "uri": uri, "text": "" })).await;
    }
    let kept_out = "larder_context_kept_out_bytes_total";
    assert_eq!(server.metrics.scrape().await.sum(kept_out, &[]), 0);
    let result = server.call("list_resources", json!({ "limit": 100 })).await;
    let metrics = server.metrics.scrape().await;
    let stored = metrics.sum("larder_stored_bytes_total", &[]);
    let seen = result.to_string().len() as u64;
    assert!(stored > 2 * seen, "{stored}: {result}");
    let kept_out = metrics.sum(kept_out, &[]);
    assert!((stored - seen).abs_diff(kept_out) < 200, "{kept_out} of {stored}, {seen} seen");
}

#[tokio::test]
async fn gauges_show_the_resources_sessions_and_streams_that_exist() {
    let server = Measured::larder(&[]).await;
    for n in 0..3 {
        let resource = json!({ "uri": format!("x:{n}"), "text": "12345" });
        server.call("create_resource", resource).await;
    }
    server.call("delete_resource", json!({ "uri": "x:0" })).await;
    let [kept, ended] = [server.begin_session().await, server.begin_session().await];
    let end = http().delete(&server.process.url).header("mcp-session-id", ended);
    assert!(end.send().await.unwrap().status().is_success());
    let stream = server.stream(&kept).await;
    let metrics = server.metrics.scrape().await;
    let own = ["{store=\"memory:"];
    // Content, name, media type, four times the URI and a fixed amount.
    let counted = 2 * (5 + 1 + 10 + 4 * 3 + 1024);
    for (name, labels, expected) in [
        ("larder_resources", &own[..], 2),
        ("larder_resource_bytes", &own, counted),
        ("larder_sessions", &own, 1),
        ("larder_streams", &[], 1),
    ] {
        assert_eq!(metrics.sum(name, labels), expected, "{name}: {}", metrics.0);
    }
    drop(stream);
}

#[tokio::test]
async fn instances_that_share_a_store_export_the_same_samples() {
    let redis = RedisServer::start().await;
    let store = redis.url().replace("redis://", "redis://:hush@");
    redis.command(&["CONFIG", "SET", "requirepass", "hush"]).await;
    let on_redis = [("LARDER_STORE__URL", &store[..]), ("LARDER_REDIS__MIGRATE", "true")];
    let instances = [Measured::larder(&on_redis).await, Measured::larder(&on_redis).await];
    for (n, instance) in instances.iter().enumerate() {
        let resource = json!({ "uri": format!("x:{n}"), "text": "12345" });
        instance.call("create_resource", resource).await;
        instance.begin_session().await;
    }
    let mut samples = BTreeSet::new();
    for instance in &instances {
        let metrics = instance.metrics.scrape().await.0;
        assert!(!metrics.contains("hush"), "{metrics}");
        let lines = metrics.lines().filter(|line| line.contains("{store="));
        samples.extend(lines.map(str::to_owned));
    }
    let store = redis.url().trim_end_matches('/').to_owned() + "#larder";
    let counted = 2 * (5 + 1 + 10 + 4 * 3 + 1024);
    let expected = [("resource_bytes", counted), ("resources", 2), ("sessions", 2)];
    let expected = expected.map(|(name, n)| format!("larder_{name}{{store=\"{store}\"}} {n}"));
    assert_eq!(samples, BTreeSet::from(expected));
}

#[tokio::test]
async fn gauges_are_nan_while_the_store_is_unreachable() {
    let mut redis = RedisServer::start().await;
    let store = redis.url();
    let on_redis = [("LARDER_STORE__URL", &store[..]), ("LARDER_REDIS__MIGRATE", "true")];
    let server = Measured::larder(&on_redis).await;
    redis.kill();
    let metrics = server.metrics.scrape().await.0;
    for name in ["larder_resources", "larder_resource_bytes", "larder_sessions"] {
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{"))).unwrap();
        assert!(line.ends_with(" NaN"), "{line}");
    }
}

#[tokio::test]
async fn names_are_those_of_the_table_and_follow_the_conventions() {
    // Those of an upstream appear with its first call.
    let odd = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/odd.mjs");
    let upstream = json!(["node", odd]);
    let file = TextFile::new(&format!("[[upstreams]]\nname = \"odd\"\ncommand = {upstream}"));
    // Only a store on a disk has free space.
    let folder = tempfile::tempdir().unwrap();
    let store = format!("file://{}", folder.path().display());
    let server =
        Measured::larder(&[("LARDER_CONFIG", file.path()), ("LARDER_STORE__URL", &store)]).await;
    server.call("echo", json!({})).await;
    let metrics = server.metrics.scrape().await.0;
    let shown: BTreeSet<_> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect();
    // One appears with the first login, where the server is the authorization server, and the other
    // with the first refusal.
    let later = ["larder_logins_total", "larder_limits_reached_total"];
    let table = METRICS.into_iter().filter(|(_, name, _)| !later.contains(name));
    let table = table.map(|(kind, name, _)| {
        let kind = match kind {
            Kind::Counter | Kind::LabelledCounter => "counter",
            Kind::Gauge
            | Kind::DependencyGauge
            | Kind::SharedGauge
            | Kind::UpstreamGauge
            | Kind::QueryGauge
            | Kind::ProcessGauge => "gauge",
            Kind::Histogram => "histogram",
        };
        (name.to_owned(), kind.to_owned())
    });
    assert_eq!(shown, table.collect());
    for (kind, name, says) in METRICS {
        let is_counter = matches!(kind, Kind::Counter | Kind::LabelledCounter);
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        assert!(kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        assert!(says.ends_with('.'), "{name}");
    }
}

#[tokio::test]
async fn steps_of_a_workflow_are_counted_by_tool() {
    let file = TextFile::new(
        r#"
        [[workflows]]
        name = "twice"
        description = "Lists twice"
        also = "tool"
        steps = [{ name = "one", tool = "list_resources" }, { name = "two", tool = "list_resources" }]
        "#,
    );
    let server = Measured::larder(&[("LARDER_CONFIG", file.path())]).await;
    server.call("twice", json!({})).await;
    let metrics = server.metrics.scrape().await;
    let calls = "mcp_server_operation_duration_seconds_count";
    for (tool, times) in [("list_resources", 2), ("twice", 1)] {
        let tool = format!("gen_ai_tool_name=\"{tool}\"");
        assert_eq!(metrics.sum(calls, &[&tool]), times, "{tool}: {}", metrics.0);
    }
}
