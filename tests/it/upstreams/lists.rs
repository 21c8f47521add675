//! Lists that fail, hang, or are known from an earlier process.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{SOON, host::Host, in_front_of, lines, listed, odd, text};
use crate::support::{Legacy, eventually};

/// The metadata of a list of tools about its upstreams.
async fn troubles(client: &Legacy) -> Value {
    let listed = client.send("tools/list", json!({})).await.result();
    listed["_meta"]["larder/upstreams"].clone()
}

#[tokio::test]
async fn a_list_that_fails_costs_no_other_list() {
    for (refused, kept, lost) in [
        ("resources/list,-32601", "tools/list", "resources/list"),
        ("resources/list,-32603", "tools/list", "resources/list"),
        ("tools/list,-32603", "resources/list", "tools/list"),
        ("tools/list,-32601", "resources/list", "tools/list"),
    ] {
        let server = in_front_of(vec![odd("odd", &[&format!("--refuse={refused}")])]).await;
        let client = Legacy::of(&server).await;
        let tools = listed(&client).await;
        let resources = client.send("resources/list", json!({})).await.result();
        let resources = resources["resources"].as_array().unwrap().len();
        assert_eq!(tools.contains_key("echo"), kept == "tools/list", "{refused}");
        assert_eq!(resources, usize::from(kept == "resources/list"), "{refused}");

        let trouble = json!([{
            "name": "odd", "state": "degraded",
            "problem": format!("{lost} cannot be read (refused)"),
        }]);
        assert_eq!(troubles(&client).await, trouble, "{refused}");
        if kept == "resources/list" {
            let refused = client.call("echo", json!({})).await.result();
            let expected = "odd cannot be used: its lists cannot be read: no tools/list now.";
            assert_eq!(text(&refused), expected);
        }
    }
}

#[tokio::test]
async fn a_list_that_failed_for_a_moment_is_read_again() {
    for method in ["tools/list", "resources/list"] {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("left");
        fs::write(&left, "1").unwrap();
        let refuse = format!("--refuse={method},-32603,{}", left.display());
        let server = in_front_of(vec![odd("odd", &[&refuse])]).await;
        let client = Legacy::of(&server).await;
        client.send(method, json!({})).await.result();
        // The next list asks again, and has the answer.
        assert!(listed(&client).await.contains_key("echo"), "{method}");
        let resources = client.send("resources/list", json!({})).await.result();
        assert_eq!(resources["resources"].as_array().unwrap().len(), 1, "{method}");
        assert_eq!(troubles(&client).await, Value::Null, "{method}");
        assert_eq!(fs::read_to_string(&left).unwrap(), "0", "{method} was refused");
    }
}

#[tokio::test]
async fn a_list_that_fails_later_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left");
    let refuse = format!("--refuse=tools/list,-32603,{}", left.display());
    let server = in_front_of(vec![odd("odd", &[&refuse])]).await;
    let client = Legacy::of(&server).await;
    assert!(listed(&client).await.contains_key("echo"));
    fs::write(&left, "1000").unwrap();
    client.call("grow", json!({})).await.result();
    eventually("the failure", async || troubles(&client).await != Value::Null).await;
    assert!(listed(&client).await.contains_key("echo"));
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    fs::write(&left, "0").unwrap();
    eventually("the new tool", async || listed(&client).await.contains_key("grown")).await;
    assert_eq!(troubles(&client).await, Value::Null);
}

#[tokio::test]
async fn a_list_that_hangs_costs_no_other_list() {
    let mut settings = odd("odd", &["--hangs=resources/list"]);
    settings.list_timeout = Duration::from_secs(1);
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;
    eventually("the tools", async || listed(&client).await.contains_key("echo")).await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    assert_eq!(troubles(&client).await[0]["state"], "degraded");
}

#[tokio::test]
async fn an_upstream_that_hangs_is_waited_for_once() {
    let mut hangs = odd("hangs", &["--hang=1"]);
    hangs.list_timeout = Duration::from_secs(2);
    hangs.start_timeout = Duration::from_secs(60);
    let server = in_front_of(vec![hangs, odd("healthy", &[])]).await;
    let begun = Instant::now();
    for _ in 0..4 {
        let client = Legacy::of(&server).await;
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            client.send(method, json!({})).await.result();
        }
        assert!(listed(&client).await.contains_key("healthy__echo"));
        let trouble = troubles(&client).await;
        assert_eq!(trouble, json!([{ "name": "hangs", "state": "starting" }]));
    }
    // Each of the twenty lists waited for two seconds before.
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn sessions_beyond_the_limit_see_the_lists_and_their_calls_wait_their_turn() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut settings = odd("odd", &[&format!("--pid={}", pids.display()), "--tools=waiting"]);
    settings.max_processes = 2;
    let server = in_front_of(vec![settings]).await;
    let file = folder.path().join("go");
    let mut calls = Vec::new();
    for _ in 0..4 {
        let client = Legacy::of(&server).await;
        assert!(listed(&client).await.contains_key("wait"));
        let arguments = json!({ "file": file });
        calls.push(tokio::spawn(async move { client.call("wait", arguments).await.result() }));
    }
    let called = folder.path().join("go.called");
    eventually("the first calls", async || {
        fs::read_to_string(&called).is_ok_and(|called| called.len() == 2)
    })
    .await;
    let last = Legacy::of(&server).await;
    assert!(listed(&last).await.contains_key("wait"));
    assert_eq!(lines(&pids).len(), 2);
    fs::write(&file, "").unwrap();
    for call in calls {
        assert_eq!(text(&call.await.unwrap()), "waited");
    }
}

#[tokio::test]
async fn a_session_that_only_lists_starts_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let server = in_front_of(vec![odd("odd", &[&format!("--pid={}", pids.display())])]).await;
    for _ in 0..5 {
        let client = Legacy::of(&server).await;
        assert!(listed(&client).await.contains_key("echo"));
        let resources = client.send("resources/list", json!({})).await.result();
        assert_eq!(resources["resources"].as_array().unwrap().len(), 1);
    }
    assert_eq!(lines(&pids).len(), 1);
    let client = Legacy::of(&server).await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    assert_eq!(lines(&pids).len(), 2);
}

#[tokio::test]
async fn what_a_session_has_changed_is_not_listed_to_others() {
    let server = in_front_of(vec![odd("odd", &[])]).await;
    let client = Legacy::of(&server).await;
    client.call("grow", json!({})).await.result();
    eventually("the new tool", async || listed(&client).await.contains_key("grown")).await;
    let other = Legacy::of(&server).await;
    assert!(!listed(&other).await.contains_key("grown"));
    assert!(listed(&client).await.contains_key("grown"));
}

/// Starts Larder with this folder for what is remembered.
async fn remembering(folder: &Path, flags: &[&str]) -> Host {
    let cache = folder.join("cache");
    let environment = [("LARDER_TOOLS__CATALOGUE_CACHE", cache.to_str().unwrap())];
    Host::start(&odd("odd", flags), json!({}), &environment).await
}

#[tokio::test]
async fn the_lists_are_remembered_across_starts_and_a_process_starts_with_its_first_call() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let pid = format!("--pid={}", pids.display());
    let mut host = remembering(folder.path(), &[&pid]).await;
    let first = host.tools().await;
    assert!(first.contains(&"echo".to_owned()));
    host.end().await;
    assert_eq!(lines(&pids).len(), 1);

    let mut host = remembering(folder.path(), &[&pid]).await;
    assert_eq!(host.tools().await, first);
    let resources = host.request("resources/list", json!({})).await;
    assert_eq!(resources["result"]["resources"][0]["uri"], "odd://several");
    assert_eq!(lines(&pids).len(), 1, "no process was started for a list");
    assert_eq!(host.call("echo", json!({})).await, "{}");
    assert_eq!(lines(&pids).len(), 2);
    host.end().await;

    // Another command is another upstream.
    let mut host = remembering(folder.path(), &[&pid, "--tools=living"]).await;
    assert!(host.tools().await.contains(&"count".to_owned()));
    host.end().await;
}

#[tokio::test]
async fn a_memory_that_is_damaged_or_out_of_date_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let choice = folder.path().join("choice");
    // The command stays while what it offers changes.
    let script = format!("exec node {}/odd.mjs --tools=$(cat {})", super::FOLDER, choice.display());
    let settings = larder::upstream::Settings::new("odd", vec!["sh".into(), "-c".into(), script]);
    let cache = folder.path().join("cache");
    let environment = [("LARDER_TOOLS__CATALOGUE_CACHE", cache.to_str().unwrap())];
    let start = || Host::start(&settings, json!({}), &environment);

    fs::write(&choice, "plain").unwrap();
    let mut host = start().await;
    assert!(host.tools().await.contains(&"echo".to_owned()));
    host.end().await;
    let files: Vec<_> = fs::read_dir(&cache).unwrap().map(|file| file.unwrap().path()).collect();
    // One for this kind of client, and one for the last client.
    assert_eq!(files.len(), 2, "{files:?}");

    fs::write(&choice, "living").unwrap();
    let mut host = start().await;
    assert!(host.tools().await.contains(&"echo".to_owned()), "as it was");
    host.call("echo", json!({})).await;
    while !host.told.contains(&"notifications/tools/list_changed".to_owned()) {
        host.next().await;
    }
    assert!(host.tools().await.contains(&"count".to_owned()));
    host.end().await;
    let mut host = start().await;
    assert!(host.tools().await.contains(&"count".to_owned()), "as it is now");
    host.end().await;

    for damage in ["", "{", "null", r#"{"era":"legacy","tools":{}}"#] {
        for file in &files {
            fs::write(file, damage).unwrap();
        }
        let mut host = start().await;
        assert!(host.tools().await.contains(&"count".to_owned()), "{damage}");
        host.end().await;
        assert!(fs::read_to_string(&files[0]).unwrap().contains("\"count\""), "{damage}");
    }
}
