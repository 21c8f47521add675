//! How much memory upstreams take, and that they leave some of it to others.

use std::path::Path;

use larder::{
    config::{AuthMode, TokenConfig},
    tools::{self, ToolOptions},
    upstream::{SessionPolicy, Settings, Upstreams},
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{FOLDER, exists, lines, streaming::memory, text};
use crate::support::{
    Legacy, Server, TextFile, eventually, patiently,
    process::{Process, larder, run},
    sha256,
};

pub(super) const MIB: usize = 1 << 20;

/// The server that is too large.
pub(super) fn large(name: &str, flags: &[&str]) -> Settings {
    let script = format!("{FOLDER}/large.mjs");
    let command = ["node", &script].into_iter().chain(flags.iter().copied());
    Settings::new(name, command.map(str::to_owned).collect::<Vec<_>>())
}

/// The binary in front of it, with these limits in bytes and further settings of the upstream.
pub(super) fn serving(
    flags: &[&str],
    upstream_bytes: usize,
    max_catalogue: &str,
    more: &str,
) -> (TextFile, Command) {
    let command = json!([&["node", &format!("{FOLDER}/large.mjs")], flags].concat());
    let file = TextFile::new(&format!(
        "[limits]\nupstream_bytes = {upstream_bytes}\n[metrics]\nlisten = \"127.0.0.1:0\"\n\
        [[upstreams]]\nname = \"large\"\ncommand = {command}\nmax_catalogue = \"{max_catalogue}\"\n{more}\n"
    ));
    let command = larder(&["serve", "--config", file.path()]);
    (file, command)
}

/// What `larder upstreams` tells of the only upstream.
async fn told(metrics: &str) -> Value {
    let shown = run(larder(&["upstreams", "--metrics", metrics, "--json"])).await;
    serde_json::from_str(shown.stdout.trim()).unwrap_or_else(|_| panic!("{shown:?}"))
}

/// Where a server exports its metrics.
async fn metrics_of(server: &mut Process) -> String {
    let line = server.logs("larder metrics on ").await;
    let (_, address) = line.split_once("http://").unwrap();
    address.trim_end_matches("/metrics").to_owned()
}

#[tokio::test]
async fn a_list_without_end_is_cut_and_told() {
    let (_file, command) = serving(&["--list=endless", "--size=9000"], 32 * MIB, "8MiB", "");
    let mut server = Process::start(command).await;
    let metrics = metrics_of(&mut server).await;
    let client = Legacy::at_url(&server.url).await;
    let before = memory(&server, "VmHWM:");
    // Starts it.
    client.send("tools/list", json!({})).await.result();
    eventually("the state", async || told(&metrics).await["state"] == "degraded").await;

    let status = told(&metrics).await;
    let expected = "tools/list is cut: all lists are over 8 MiB (upstreams.max_catalogue)";
    assert_eq!(status["degraded"], expected, "{status}");
    let tools = status["tools"].as_u64().unwrap();
    assert!((820..900).contains(&tools), "{tools}");
    let grown = memory(&server, "VmHWM:") - before;
    assert!(grown < 64 * MIB, "{} MiB", grown / MIB);
    // What is listed works.
    assert_eq!(text(&client.call("t64", json!({})).await.result()), "echo");
}

#[tokio::test]
async fn sessions_share_the_same_list() {
    let flags = ["--list=long", "--items=1000", "--size=9000"];
    let (_file, command) = serving(&flags, 256 * MIB, "64MiB", "");
    let server = Process::start(command).await;
    let mut clients = Vec::new();
    let mut used = Vec::new();
    for _ in 0..12 {
        let client = Legacy::at_url(&server.url).await;
        assert_eq!(text(&client.call("t999", json!({})).await.result()), "echo");
        clients.push(client);
        used.push(memory(&server, "VmRSS:"));
    }
    // Nine lists of their own would take 90 MiB and more. The allocator holds some pages of a list.
    let least = |sessions: &[usize]| sessions.iter().copied().min().unwrap();
    let grown = least(&used[9..]).saturating_sub(least(&used[..3]));
    assert!(grown < 60 * MIB, "{used:?}");
}

#[tokio::test]
async fn a_caller_without_room_delays_no_answer_of_another_caller() {
    const CALLS: usize = 7;

    let folder = tempfile::tempdir().unwrap();
    let (slow, sent) = (folder.path().join("slow"), folder.path().join("sent"));
    let builder = larder::Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    let mut shared = large("shared", &[]);
    shared.session = SessionPolicy::All;
    let upstreams = vec![large("slow", &[]), shared];
    let upstreams = Upstreams::new(upstreams, Vec::new(), builder.tool_names()).unwrap();
    upstreams.limit_messages(4 * MIB);
    let builder = upstreams.providers().into_iter().fold(builder, larder::Builder::provider);
    let registry = builder.build().unwrap();
    let server = Server::configured(|setup| {
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = ["mallory", "bob"].map(token).into();
        setup.offers = Box::new(|_, _| registry);
    })
    .await;

    // An answer that never ends takes most of mallory's share.
    let mallory = Legacy::bearing(&server, "mallory").await;
    let bob = Legacy::bearing(&server, "bob").await;
    assert_eq!(text(&bob.call("shared__echo", json!({})).await.result()), "echo");
    let arguments = json!({ "bytes": 2 * MIB - 100_000, "file": slow });
    let call = mallory.clone();
    let dripping = tokio::spawn(async move { call.call("slow__drip", arguments).await });
    eventually("the beginning", async || lines(&slow).len() == 1).await;

    let mut refused = Vec::new();
    for _ in 0..CALLS {
        let (mallory, arguments) = (mallory.clone(), json!({ "bytes": MIB, "file": sent }));
        refused.push(tokio::spawn(async move { mallory.call("shared__rows", arguments).await }));
    }
    eventually("what mallory asks for", async || lines(&sent).len() == CALLS).await;
    // Each answer of mallory would wait for ten seconds.
    let answer = patiently("an answer", bob.call("shared__echo", json!({}))).await;
    assert_eq!(text(&answer.result()), "echo");

    for refused in refused {
        let said = patiently("a refusal", refused).await.unwrap().result();
        assert!(text(&said).contains("limits.upstream_bytes"), "{said:.300}");
    }
    dripping.abort();
}

#[tokio::test]
async fn a_slow_upstream_of_one_caller_leaves_memory_to_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("written");
    let builder = larder::Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    let upstreams = vec![large("slow", &[]), large("healthy", &[])];
    let upstreams = Upstreams::new(upstreams, Vec::new(), builder.tool_names()).unwrap();
    upstreams.limit_messages(16 * MIB);
    let builder = upstreams.providers().into_iter().fold(builder, larder::Builder::provider);
    let registry = builder.build().unwrap();
    let server = Server::configured(|setup| {
        setup.config.auth.mode = AuthMode::Static;
        setup.config.auth.tokens = ["mallory", "bob"].map(token).into();
        setup.offers = Box::new(|_, _| registry);
    })
    .await;

    // Four answers of 4 MiB that never end: together, all of the memory.
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mallory = Legacy::bearing(&server, "mallory").await;
        let arguments = json!({ "bytes": 4 * MIB - 1000, "file": file });
        slow.push(tokio::spawn(async move { mallory.call("slow__drip", arguments).await }));
    }
    eventually("what they send", async || lines(&file).len() == 4).await;

    let bob = Legacy::bearing(&server, "bob").await;
    for tool in ["healthy__rows", "healthy__rows", "healthy__rows", "slow__rows"] {
        let result = bob.call(tool, json!({ "bytes": MIB })).await.result();
        assert_ne!(result["isError"], true, "{result:.300}");
    }
    // The share of one upstream leaves some of the caller's own to another upstream.
    let mallory = Legacy::bearing(&server, "mallory").await;
    let result = mallory.call("healthy__rows", json!({ "bytes": 500_000 })).await.result();
    assert_ne!(result["isError"], true, "{result:.300}");
    slow.iter().for_each(tokio::task::JoinHandle::abort);
}

fn token(name: &str) -> TokenConfig {
    TokenConfig {
        name: name.into(),
        sha256: sha256(name),
        scopes: Vec::new(),
        groups: Vec::new(),
        expires: None,
    }
}

/// The binary in front of a server that starts a daemon, which is in use; the processes that both
/// have started.
async fn with_a_daemon(pids: &Path, more: &[&str]) -> (TextFile, Process, Legacy) {
    let pids_flag = format!("--pids={}", pids.display());
    let flags: Vec<_> = [&*pids_flag].into_iter().chain(more.iter().copied()).collect();
    let (file, command) = serving(&flags, 32 * MIB, "8MiB", "");
    let server = Process::start(command).await;
    let client = Legacy::at_url(&server.url).await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "echo");
    (file, server, client)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_in_a_session_of_its_own_ends_with_its_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let (_file, server, client) = with_a_daemon(&pids, &[]).await;
    let first = lines(&pids);
    assert!(first.len() >= 2 && first.iter().any(|pid| exists(pid)), "{first:?}");
    client.delete().await;
    eventually("the end of both", async || !first.iter().any(|pid| exists(pid))).await;

    let other = Legacy::at_url(&server.url).await;
    assert_eq!(text(&other.call("echo", json!({})).await.result()), "echo");
    assert!(lines(&pids).len() > first.len());
    let stopped = patiently("the end", server.stop("-TERM")).await;
    assert_eq!(stopped.code, Some(0));
    let left: Vec<_> = lines(&pids).into_iter().filter(|pid| exists(pid)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_of_an_upstream_survives_a_killed_larder() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let (_file, mut server, _client) = with_a_daemon(&pids, &["--stubborn=1"]).await;
    let started = lines(&pids);
    assert!(started.len() >= 2);
    server.kill().await;
    eventually("the end of all", async || !started.iter().any(|pid| exists(pid))).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_supervised_program_ends_and_fails_as_by_itself() {
    let (_file, command) = serving(&["--list=short"], 32 * MIB, "8MiB", "");
    let server = Process::start(command).await;
    let client = Legacy::at_url(&server.url).await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "echo");
    drop(server);
    for (program, expected) in [
        ("/nowhere/at-all", "could not be started (/nowhere/at-all: No such file or directory"),
        ("nowhere-at-all", "could not be started (nowhere-at-all: No such file or directory"),
    ] {
        let config = format!("[[upstreams]]\nname = \"gone\"\ncommand = [\"{program}\"]\n");
        let file = TextFile::new(&config);
        let server = Process::start(larder(&["serve", "--config", file.path()])).await;
        let client = Legacy::at_url(&server.url).await;
        let refused = client.call("x", json!({})).await.result();
        assert!(text(&refused).contains(expected), "{refused}");
    }
    let line = json!(["sh", "-c", "kill -9 $$"]);
    let file = TextFile::new(&format!("[[upstreams]]\nname = \"killed\"\ncommand = {line}\n"));
    let server = Process::start(larder(&["serve", "--config", file.path()])).await;
    let refused = Legacy::at_url(&server.url).await.call("x", json!({})).await.result();
    assert!(text(&refused).contains("could not be started (signal 9)"), "{refused}");
}
