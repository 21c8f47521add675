//! What operators see of the servers behind Larder, and changes of them while it runs.

use std::path::Path;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::metrics::Measured;
use crate::support::{
    Answer, Modern, TextFile, eventually, http, patiently,
    process::{Process, larder, run},
    sha256,
};

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/odd.mjs");
const LARGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/large.mjs");
const ANY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upstreams/any.mjs");

/// The configuration of a server of tests/upstreams, with further settings.
fn odd(name: &str, flags: &[&str], more: &str) -> String {
    let command = json!([&["node", ODD], flags].concat());
    format!("[[upstreams]]\nname = \"{name}\"\ncommand = {command}\n{more}\n")
}

async fn names(client: &Modern) -> Vec<String> {
    let tools = client.list("tools/list", "tools").await;
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn readiness(server: &Process) -> (u16, Value) {
    let url = server.url.replace("/mcp", "/readyz/dependencies");
    let answer = Answer::of(http().get(url)).await;
    (answer.status, answer.json()["upstreams"].clone())
}

#[tokio::test]
async fn state_tools_and_kept_bytes_are_told_in_the_terminal_and_as_metrics() {
    let config = odd("good", &[], "") + &odd("bad", &["--fail=1"], "") + &odd("new", &[], "");
    let file = TextFile::new(&config);
    let mut command = larder(&["serve"]);
    command.env("LARDER_CONFIG", file.path());
    let server = Measured::start(command).await;
    let client = Modern::at(&server.process.url);
    client.call("good__huge", json!({ "bytes": 100_000 })).await.result();
    client.call("bad__echo", json!({})).await;

    let address = server.metrics.url.trim_start_matches("http://").trim_end_matches("/metrics");
    let shown = run(larder(&["upstreams", "--metrics", address])).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let row = |name: &str| -> Vec<String> {
        let row = shown.stdout.lines().find(|line| line.starts_with(name));
        row.unwrap_or_else(|| panic!("{shown:?}")).split_whitespace().map(str::to_owned).collect()
    };
    let good = row("good");
    assert_eq!(good[1..5], ["up", "1", "legacy", "10"], "{good:?}");
    let kept_out: u64 = good[5].replace(',', "").parse().unwrap();
    assert!(kept_out > 90_000, "{good:?}");
    assert_eq!(row("new")[1..], ["idle", "0", "-", "-", "0", "0", "-"]);
    let bad = row("bad").join(" ");
    assert!(bad.starts_with("bad down 0") && bad.contains("cannot open its data"), "{bad}");
    let json = run(larder(&["upstreams", "--metrics", address, "--json"])).await.stdout;
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["name"], &first["state"]), (&json!("good"), &json!("up")));

    let metrics = server.metrics.scrape().await;
    let of = |name: &str, upstream: &str| metrics.sum(name, &[&format!("upstream=\"{upstream}\"")]);
    let up = ["good", "bad", "new"].map(|name| of("larder_upstream_up", name));
    assert_eq!((up, of("larder_upstream_processes", "good")), ([1, 0, 1], 1));
    assert!(of("larder_upstream_failures_total", "bad") >= 1);
    assert!(of("larder_upstream_kept_out_bytes_total", "good") > 90_000);
    let calls = "larder_upstream_request_duration_seconds_count";
    assert_eq!(metrics.sum(calls, &["upstream=\"good\"", "error_type=\"\""]), 1);
    assert_eq!(metrics.sum(calls, &["upstream=\"bad\"", "error_type=\"start\""]), 1);

    // An upstream that is gone is no alert.
    file.write(&odd("good", &[], ""));
    server.process.signal("-HUP").await;
    eventually("the gauge of one that was removed", async || {
        let answer = Answer::of(http().get(&server.metrics.url)).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        text.contains("larder_upstream_up{upstream=\"bad\"} NaN")
    })
    .await;
}

#[tokio::test]
async fn invented_names_of_tools_are_no_labels_while_an_upstream_has_no_list() {
    let file = TextFile::new(&odd("bad", &["--fail=1"], ""));
    let mut command = larder(&["serve"]);
    command.env("LARDER_CONFIG", file.path());
    let server = Measured::start(command).await;
    let client = Modern::at(&server.process.url);

    let called = async |name: String| client.call(&name, json!({})).await.failure();
    let names = (0..100).map(|number| format!("invented_{number}"));
    let answers = futures_util::future::join_all(names.map(called)).await;

    let says_why = |answer: &&String| answer.starts_with("bad could not be started (exit ");
    assert_eq!(answers.iter().filter(says_why).count(), 100, "{:?}", answers.first());
    let metrics = server.metrics.scrape().await;
    assert!(!metrics.has("invented_"), "clients must not be able to create labels");
    let calls = "mcp_server_operation_duration_seconds_count";
    let labels = ["mcp_method_name=\"tools/call\"", "error_type=\"tool_error\""];
    assert_eq!(metrics.sum(calls, &labels), 100);
}

#[tokio::test]
async fn an_upstream_with_many_tools_leaves_names_in_the_metrics_to_the_others() {
    const TOOLS: u64 = 1_100;

    let command = json!(["node", LARGE, "--list=long", format!("--items={TOOLS}"), "--size=10"]);
    let greedy = format!("[[upstreams]]\nname = \"greedy\"\ncommand = {command}\n");
    let file = TextFile::new(&(greedy + &odd("good", &[], "")));
    let mut command = larder(&["serve"]);
    command.env("LARDER_CONFIG", file.path());
    let server = Measured::start(command).await;
    let client = Modern::at(&server.process.url);

    let call = async |number: u64| {
        client.call(&format!("greedy__t{number}"), json!({})).await.result();
    };
    stream::iter(0..TOOLS).for_each_concurrent(16, call).await;
    client.call("good__echo", json!({})).await.result();

    let calls = "mcp_server_operation_duration_seconds_count";
    eventually("all calls to be recorded", async || {
        server.metrics.scrape().await.sum(calls, &["\"tools/call\""]) > TOOLS
    })
    .await;
    let metrics = server.metrics.scrape().await;
    assert!(metrics.has("gen_ai_tool_name=\"good__echo\""));
    let text = metrics.text();
    let named = text.lines().filter(|line| line.starts_with(calls) && line.contains("greedy__"));
    assert_eq!(named.count(), 500);
}

#[tokio::test]
async fn lists_that_are_cut_or_fail_are_told_in_the_metrics_and_to_probes() {
    let endless = json!(["node", LARGE, "--list=endless", "--size=9000"]);
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":5}"#;
    let failing = format!("--prompts/list={}", BASE64_STANDARD.encode(answer));
    let failing = json!(["node", ANY, failing]);
    let config = format!(
        "[[upstreams]]\nname = \"cut\"\ncommand = {endless}\nmax_catalogue = \"1MiB\"\n\
        [[upstreams]]\nname = \"failing\"\ncommand = {failing}\n"
    );
    let file = TextFile::new(&(config + &odd("good", &[], "")));
    let mut command = larder(&["serve"]);
    command.env("LARDER_CONFIG", file.path());
    let server = Measured::start(command).await;
    let dependencies = async || {
        let url = server.process.url.replace("/mcp", "/readyz/dependencies");
        let answer = Answer::of(http().get(url)).await;
        (answer.status, answer.json()["degraded"].clone())
    };
    assert_eq!(dependencies().await, (200, Value::Null));

    // Starts all.
    let client = Modern::at(&server.process.url);
    names(&client).await;
    eventually("the gauges", async || {
        let metrics = server.metrics.scrape().await;
        let of = |name: &str| {
            metrics.sum("larder_upstream_degraded", &[&format!("upstream=\"{name}\"")])
        };
        ["cut", "failing", "good"].map(of) == [1, 1, 0]
    })
    .await;
    eventually("the probe", async || dependencies().await == (200, json!(["upstreams"]))).await;

    let address = server.metrics.url.trim_start_matches("http://").trim_end_matches("/metrics");
    let shown = run(larder(&["upstreams", "--metrics", address])).await.stdout;
    let row = shown.lines().find(|line| line.starts_with("failing")).unwrap_or_default();
    assert!(row.contains("degraded") && row.contains("prompts/list"), "{shown}");
}

#[tokio::test]
async fn the_terminal_says_what_it_needs() {
    let shown = run(larder(&["upstreams"])).await;
    assert_eq!(shown.code, Some(2));
    assert!(shown.stderr.contains("metrics.listen"), "{shown:?}");
    let shown = run(larder(&["upstreams", "--metrics", "127.0.0.1:1"])).await;
    assert_eq!(shown.code, Some(3), "{shown:?}");
}

#[tokio::test]
async fn only_a_required_upstream_makes_the_server_unready() {
    for (more, ready) in [("", (200, json!(true))), ("required = true", (503, json!(false)))] {
        let file = TextFile::new(&odd("bad", &["--fail=1"], more));
        let server = Process::start(larder(&["serve", "--config", file.path()])).await;
        // Nobody has used it.
        assert_eq!(readiness(&server).await, (200, json!(true)));
        Modern::at(&server.url).call("echo", json!({})).await;
        eventually("readiness", async || readiness(&server).await == ready).await;
    }
}

#[tokio::test]
async fn upstreams_are_added_changed_and_removed_while_the_server_runs() {
    let folder = TempDir::new().unwrap();
    let go = folder.path().join("go");
    let (go, called) = (go.to_str().unwrap(), format!("{}.called", go.display()));
    let waiting = odd("one", &["--tools=waiting"], "");
    let grace = "[log]\nlevel = \"info\"\n[server]\ngrace = 600\n";
    let file = TextFile::new(&format!("{grace}{waiting}{}", odd("two", &[], "")));
    let mut server = Process::start(larder(&["serve", "--config", file.path()])).await;
    let client = Modern::at(&server.url);
    let mut listening = client.listen(1, json!({ "toolsListChanged": true })).await;
    let before = names(&client).await;
    assert!(before.contains(&"one__wait".into()) && before.contains(&"two__echo".into()));

    // A call runs on while its upstream is removed.
    let running = client.call("one__wait", json!({ "file": go }));
    let change = async {
        eventually("the call", async || Path::new(&called).exists()).await;
        let changed = odd("two", &[], "tools = { deny = [\"die\"] }");
        file.write(&format!("{grace}{changed}{}", odd("three", &["--tools=waiting"], "")));
        server.signal("-HUP").await;
        let line = server.logs("read again").await;
        assert!(line.contains("upstreams"), "{line}");
        let changed = patiently("the change", listening.message()).await;
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        let after = names(&client).await;
        assert!(!after.iter().any(|name| name.starts_with("one__")), "{after:?}");
        assert!(after.contains(&"three__wait".into()) && after.contains(&"two__echo".into()));
        assert!(!after.contains(&"two__die".into()), "{after:?}");
        let unknown = client.call("one__echo", json!({})).await;
        assert_eq!(unknown.error()["code"], -32602);
        std::fs::write(go, "").unwrap();
    };
    let (answer, ()) = tokio::join!(running, change);
    assert_eq!(answer.text(), "waited");

    // What cannot be used changes nothing.
    file.write(&format!("{grace}{waiting}{waiting}"));
    server.signal("-HUP").await;
    server.logs("stays as it was").await;
    assert!(names(&client).await.contains(&"three__wait".into()));
}

#[tokio::test]
async fn a_call_of_a_removed_upstream_ends_with_the_grace_period() {
    let folder = TempDir::new().unwrap();
    let never = folder.path().join("never").to_str().unwrap().to_owned();
    let called = format!("{never}.called");
    let grace = "[server]\ngrace = 0\n";
    let waiting = odd("one", &["--tools=waiting"], "");
    let file = TextFile::new(&format!("{grace}{waiting}{}", odd("two", &[], "")));
    let server = Process::start(larder(&["serve", "--config", file.path()])).await;
    let client = Modern::at(&server.url);
    let hanging = client.call("one__wait", json!({ "file": never }));
    let change = async {
        eventually("the call", async || Path::new(&called).exists()).await;
        file.write(&format!("{grace}{}", odd("two", &[], "")));
        server.signal("-HUP").await;
    };
    let (answer, ()) = patiently("the end", async { tokio::join!(hanging, change) }).await;
    let text = answer.failure();
    assert!(text.contains("one ended") && text.contains("wait"), "{text}");
}

#[tokio::test]
async fn a_header_in_a_file_is_read_again_when_the_file_changes() {
    let hash = sha256("right");
    let behind = format!(
        "[auth]\nmode = \"static\"\n[[auth.tokens]]\nname = \"gateway\"\nsha256 = \"{hash}\""
    );
    let behind = TextFile::new(&behind);
    let behind = Process::start(larder(&["serve", "--config", behind.path()])).await;
    let secret = TextFile::new("Bearer wrong\n");
    let config = format!(
        "[log]\nlevel = \"info\"\n[[upstreams]]\nname = \"crm\"\nurl = \"{}\"\n",
        behind.url
    );
    let file = TextFile::new(&config);
    let mut server = Process::start(larder(&["serve", "--config", file.path()])).await;
    // A file that a reload adds is watched as well.
    file.write(&format!("{config}header_files = {{ authorization = {:?} }}", secret.path()));
    server.signal("-HUP").await;
    server.logs("read again").await;
    let client = Modern::at(&server.url);
    let refused = client.call("crm__list_resources", json!({})).await.result();
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("HTTP 401"), "{refused}");
    secret.write("Bearer right\n");
    let line = server.logs("read again").await;
    assert!(line.contains("upstreams.header_files"), "{line}");
    eventually("the upstream", async || {
        names(&client).await.contains(&"crm__list_resources".into())
    })
    .await;
}
