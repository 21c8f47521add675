//! Long results of upstreams, which are stored while they arrive.

use std::process::Stdio;

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::{
    Registry,
    tools::{self, ToolOptions},
    upstream::{SessionPolicy, Settings, Target},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{FOLDER, http::remote, in_front_of, lines, text, uri_in, with_upstreams};
use crate::support::{
    Legacy, Modern, Server, TextFile, eventually, free_port,
    process::{Process, larder},
    sha256,
};

/// The server with long results.
pub(super) fn long(flags: &[&str]) -> Settings {
    let script = format!("{FOLDER}/long.mjs");
    let command = ["node", &script].into_iter().chain(flags.iter().copied());
    Settings::new("long", command.map(str::to_owned).collect::<Vec<_>>())
}

/// The same over HTTP, and its process.
pub(super) async fn long_over_http(flags: &[&str]) -> (Settings, Child) {
    let port = free_port();
    let mut command = Command::new("node");
    command.arg(format!("{FOLDER}/long.mjs")).arg(format!("--http={port}")).args(flags);
    let child = command.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    eventually("the server", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    })
    .await;
    (remote("long", &format!("http://127.0.0.1:{port}/mcp")), child)
}

/// The text of so many bytes that the server sends.
pub(super) fn text_of(mut bytes: usize) -> String {
    let mut text = String::new();
    for n in 0.. {
        let line = format!("line {n}: \"é\" \\ 🦀 {}\n", "and so on ".repeat(8));
        if line.len() > bytes {
            break;
        }
        bytes -= line.len();
        text += &line;
    }
    text + &"x".repeat(bytes)
}

/// The contents that the caller has stored.
pub(super) async fn stored(client: &Legacy) -> Vec<Value> {
    let listed = client.send("resources/list", json!({})).await.result();
    listed["resources"].as_array().unwrap().clone()
}

/// The content of a stored resource.
async fn content(client: &Legacy, uri: &str) -> String {
    let read = client.send("resources/read", json!({ "uri": uri })).await.result();
    read["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read:.200}")).to_owned()
}

/// A server in front of these whose callers may store so many bytes.
pub(super) async fn with_quota(upstream: Settings, bytes: u64) -> Server {
    Server::configured(|setup| {
        setup.config.memory.bytes_per_owner = bytes;
        setup.offers = Box::new(|_, _| {
            let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
            with_upstreams(builder, vec![upstream])
        });
    })
    .await
}

#[tokio::test]
async fn long_texts_are_stored_as_they_are_however_they_arrive() {
    let (json, _json_server) = long_over_http(&[]).await;
    let (events, _events_server) = long_over_http(&["--events"]).await;
    for upstream in [long(&[]), json, events] {
        let target = format!("{:?}", upstream.target);
        let server = in_front_of(vec![upstream]).await;
        let client = Legacy::of(&server).await;
        for arguments in [
            json!({ "bytes": 3_000_000 }),
            json!({ "bytes": 3_000_000, "late_id": true, "piece": 999 }),
            json!({ "bytes": 300_001, "late_id": true, "ascii": true, "piece": 7 }),
            json!({ "bytes": 1_000_000, "copy": "text" }),
            json!({ "bytes": 1_000_000, "copy": "member", "late_id": true }),
            json!({ "bytes": 100_000, "resource": "file:///a.log" }),
        ] {
            let before = stored(&client).await.len();
            let result = client.call("long", arguments.clone()).await.result();
            let shown = text(&result);
            assert!(shown.starts_with("PREVIEW ONLY"), "{target} {arguments}: {shown:.300}");
            let expected = text_of(usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap());
            let lines = expected.lines().count();
            assert!(shown.contains("line 0: \"é\" \\ 🦀 and so on"), "{shown}");
            let resource = &result["structuredContent"]["spilled"]["resources"][0];
            if !arguments["copy"].is_null() {
                assert_eq!(resource["lines"], lines, "{target} {arguments}");
            }
            if arguments["copy"] == "member" {
                let value = json!({ "outcome": "done" });
                assert_eq!(result["structuredContent"]["spilled"]["value"], value);
            }
            let found = content(&client, &uri_in(shown)).await;
            assert_eq!(sha256(&found), sha256(&expected), "{target} {arguments}");
            assert_eq!(stored(&client).await.len(), before + 1, "{target} {arguments}: once");
        }
    }
}

/// The bytes that the server sends as media.
pub(super) fn bytes_of(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + (i >> 8) * 7).to_le_bytes()[0]).collect()
}

/// The binary content of a stored resource.
async fn blob(client: &Legacy, uri: &str) -> Vec<u8> {
    let read = client.send("resources/read", json!({ "uri": uri })).await.result();
    let blob = read["contents"][0]["blob"].as_str().unwrap_or_else(|| panic!("{read:.200}"));
    BASE64_STANDARD.decode(blob).unwrap()
}

#[tokio::test]
async fn images_audio_and_blobs_are_stored_decoded_while_they_arrive() {
    let (json, _json_server) = long_over_http(&[]).await;
    let (events, _events_server) = long_over_http(&["--events"]).await;
    for upstream in [long(&[]), json, events] {
        let target = format!("{:?}", upstream.target);
        let server = in_front_of(vec![upstream]).await;
        let client = Legacy::of(&server).await;
        for (media, mime_type, bytes, more) in [
            ("image", "image/png", 3_000_001, json!({ "late_id": true })),
            ("image", "image/png", 900_000, json!({ "copy": true, "piece": 999 })),
            ("image", "image/png", 900_000, json!({ "copy": true, "lines": true })),
            ("audio", "audio/wav", 800_002, json!({ "piece": 7_777 })),
            ("blob", "application/zip", 40_000, json!({ "late_id": true, "piece": 7 })),
            ("blob", "application/zip", 2_000_000, json!({ "lines": true })),
        ] {
            let before = stored(&client).await.len();
            let mut arguments = json!({ "media": media, "bytes": bytes });
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let result = client.call("long", arguments.clone()).await.result();
            let shown = text(&result);
            let what = format!("{target} {arguments}: {shown:.300}");
            assert!(shown.starts_with("PREVIEW ONLY"), "{what}");
            assert_eq!(stored(&client).await.len(), before + 1, "{what}: once");
            let uri = uri_in(shown);
            let entries = stored(&client).await;
            let entry = entries.iter().find(|entry| entry["uri"] == *uri).unwrap();
            assert_eq!((&entry["mimeType"], &entry["size"]), (&json!(mime_type), &json!(bytes)));
            assert!(blob(&client, &uri).await == bytes_of(bytes), "{what}");
        }
        // Within their budgets, they are sent as they are.
        for (media, bytes) in [("image", 700_000), ("blob", 20_000)] {
            let arguments = json!({ "media": media, "bytes": bytes, "late_id": true });
            let result = client.call("long", arguments).await.result();
            let block = &result["content"][1];
            let data = block["data"].as_str().or(block["resource"]["blob"].as_str()).unwrap();
            assert!(BASE64_STANDARD.decode(data).unwrap() == bytes_of(bytes));
        }
    }
}

#[tokio::test]
async fn long_data_that_is_not_base64_is_left_out_alone_and_nothing_stays() {
    let server = in_front_of(vec![long(&[])]).await;
    let client = Legacy::of(&server).await;
    let arguments = json!({ "media": "image", "bytes": 2_000_000, "broken": true });
    let result = client.call("long", arguments).await.result();
    let shown = result["content"].to_string();
    assert_ne!(result["isError"], true, "{shown:.300}");
    assert!(
        shown.contains("(Content block 2 is left out: its image is not base64.)"),
        "{shown:.300}"
    );
    assert!(stored(&client).await.is_empty());
    let result = client.call("long", json!({ "media": "image", "bytes": 2_000_000 })).await;
    assert!(text(&result.result()).starts_with("PREVIEW ONLY"));
}

#[tokio::test]
async fn structured_content_with_long_strings_is_stored_as_it_is() {
    let server = in_front_of(vec![long(&[])]).await;
    let client = Legacy::of(&server).await;
    let expected = text_of(1_000_000);
    let arguments = json!({ "bytes": 1_000_000, "copy": "other", "late_id": true, "piece": 777 });
    let result = client.call("long", arguments).await.result();
    let resources = result["structuredContent"]["spilled"]["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 2, "{result:.500}");
    let structured = resources.iter().find(|part| part["mime_type"] == "application/json");
    let uri = structured.unwrap()["uri"].as_str().unwrap();
    let read: Value = serde_json::from_str(&content(&client, uri).await).unwrap();
    assert_eq!(read, json!({ "id": 7, "log": [{ "text": format!("other {expected}") }] }));

    // Its JSON as text is a copy.
    let arguments = json!({ "bytes": 1_000_000, "copy": "json" });
    let result = client.call("long", arguments).await.result();
    let uri = uri_in(text(&result));
    let read: Value = serde_json::from_str(&content(&client, &uri).await).unwrap();
    assert_eq!(read, json!({ "content": expected }));
    assert_eq!(stored(&client).await.len(), 3);
}

#[tokio::test]
async fn a_copy_needs_no_room_of_its_own() {
    let server = with_quota(long(&[]), 8 << 20).await;
    let client = Legacy::of(&server).await;
    let arguments = json!({ "bytes": 6 << 20, "copy": "text", "late_id": true });
    let result = client.call("long", arguments).await.result();
    assert!(text(&result).starts_with("PREVIEW ONLY"), "{result:.300}");
    assert_eq!(stored(&client).await.len(), 1);
}

#[tokio::test]
async fn json_that_the_structured_content_repeats_is_stored_once() {
    let server = in_front_of(vec![long(&[])]).await;
    let client = Legacy::of(&server).await;
    for (number, copy) in ["compact", "pretty"].into_iter().enumerate() {
        let arguments = json!({ "rows": 5_000, "copy": copy, "late_id": true });
        let result = client.call("long", arguments).await.result();
        let shown = text(&result);
        assert!(shown.contains("Records: 5,000 at /rows; table t (id, name, rate)"), "{shown}");
        assert_eq!(stored(&client).await.len(), number + 1);
        let found = content(&client, &uri_in(shown)).await;
        assert!(found.lines().count() >= 5_000, "a record on each line");
        let read: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(read["rows"][4_999]["name"], "row \"4999\"");
    }
}

#[tokio::test]
async fn results_within_the_budget_are_sent_as_they_are() {
    let server = in_front_of(vec![long(&[])]).await;
    let client = Legacy::of(&server).await;
    let limit = 32_000;
    for (bytes, is_sent) in [(limit, true), (limit + 1, false)] {
        let arguments = json!({ "bytes": bytes, "late_id": true, "ascii": true });
        let result = client.call("long", arguments).await.result();
        assert_eq!(text(&result) == text_of(bytes), is_sent, "{bytes}");
    }
    assert_eq!(stored(&client).await.len(), 1);
    // Many small texts together are too large.
    let many = client.call("long", json!({ "bytes": 1_000, "texts": 200 })).await.result();
    assert!(text(&many).starts_with("PREVIEW ONLY"), "{many}");
}

#[tokio::test]
async fn many_long_texts_are_stored_like_those_that_are_held() {
    let server = in_front_of(vec![long(&[])]).await;
    let client = Legacy::of(&server).await;
    let many = client.call("long", json!({ "bytes": 40_000, "texts": 100 })).await.result();
    assert!(text(&many).contains("are stored:"), "{many:.500}");
    assert_eq!(stored(&client).await.len(), 1, "many texts are one list");

    let lines = content(&client, &uri_in(text(&many))).await;
    let read: Vec<String> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read.len(), 100);
    assert!(read.iter().all(|item| *item == text_of(40_000)), "{:.200}", read[0]);
}

#[tokio::test]
async fn nothing_stays_of_a_result_that_breaks_off() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("received");
    let server = with_quota(long(&[&format!("--record={}", record.display())]), 8 << 20).await;
    let client = Legacy::of(&server).await;
    let whole = json!({ "bytes": 6 << 20, "late_id": true });
    let stopped = |more: Value| {
        let mut arguments = json!({ "bytes": 6 << 20, "stop": 5 << 20, "late_id": true });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };

    // Killed, twice.
    let copied = stopped(json!({ "die": true, "copy": "text", "stop": 9 << 20 }));
    client.call("long", copied).await.result();
    let killed = client.call("long", stopped(json!({ "die": true }))).await.result();
    let expected = "long ended (signal 9) during long; whether it was done is unknown.";
    assert_eq!(text(&killed), expected);
    assert!(stored(&client).await.is_empty());

    // Cancelled. What was reserved is free again, so another one has room.
    let file = folder.path().join("go on");
    let waiting = stopped(json!({ "wait": file }));
    let calls = || lines(&record).iter().filter(|line| line.contains("tools/call")).count();
    let before = calls();
    let modern = Modern::of(&server);
    let call = tokio::spawn(async move { modern.call("long", waiting).await });
    eventually("the call", async || calls() > before).await;
    call.abort();
    eventually("the cancellation", async || {
        lines(&record).iter().any(|line| line.contains("notifications/cancelled"))
    })
    .await;
    std::fs::write(&file, "").unwrap();
    let next = client.call("long", whole.clone()).await.result();
    assert!(text(&next).starts_with("PREVIEW ONLY"), "{next:.300}");
    assert_eq!(stored(&client).await.len(), 1);

    // Too large for the quota: it says that the tool ran.
    let full = client.call("long", whole).await.result();
    let said = text(&full);
    assert!(full["isError"] == true && said.starts_with("long ran, but its result"), "{said}");
    assert!(said.contains("could not be stored"), "{said}");
    assert_eq!(stored(&client).await.len(), 1);
}

#[tokio::test]
async fn a_result_that_is_too_long_is_discarded_and_the_next_one_is_not() {
    let mut upstream = long(&[]);
    upstream.max_message = 4 << 20;
    let server = with_quota(upstream, 5 << 20).await;
    let client = Legacy::of(&server).await;
    let longer = json!({ "bytes": 5 << 20, "late_id": true });
    let refused = client.call("long", longer).await.result();
    let expected = "long sent more than 4 MiB (upstreams.max_message); nothing was kept.";
    assert_eq!(text(&refused), expected);
    assert!(stored(&client).await.is_empty());
    let fits = client.call("long", json!({ "bytes": 3 << 20, "late_id": true })).await.result();
    assert!(text(&fits).starts_with("PREVIEW ONLY"), "{fits:.300}");
}

#[tokio::test]
async fn calls_at_the_same_time_get_their_own_results() {
    let mut upstream = long(&[]);
    upstream.session = SessionPolicy::All;
    let server = super::for_ana_and_bob(vec![upstream]).await;
    let ana = Legacy::bearing(&server, "ana").await;
    let bob = Legacy::bearing(&server, "bob").await;
    let mut calls = Vec::new();
    for (number, client) in [&ana, &ana, &bob, &ana, &bob].into_iter().enumerate() {
        let (client, bytes) = (client.clone(), 500_000 + number);
        calls.push(tokio::spawn(async move {
            let tool = if number == 3 { "other" } else { "long" };
            let arguments = json!({ "bytes": bytes, "late_id": true });
            let result = client.call(tool, arguments).await.result();
            let uri = uri_in(text(&result));
            assert!(uri.starts_with(&format!("larder://r/{tool}/")), "{uri}");
            assert_eq!(content(&client, &uri).await, text_of(bytes));
        }));
    }
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!((stored(&ana).await.len(), stored(&bob).await.len()), (3, 2));
}

/// The memory of a process, now (`VmRSS:`) or at most (`VmHWM:`), in bytes.
pub(super) fn memory(process: &Process, line: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let found = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    found.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// The files of the store and the configuration, and the binary that uses them in front of an
/// upstream.
pub(super) async fn storing_in_files(upstream: &Settings) -> ((TempDir, TextFile), Process) {
    let folder = tempfile::tempdir().unwrap();
    let target = match &upstream.target {
        Target::Remote(remote) => format!("url = {}", json!(remote.url)),
        Target::Command(program) => format!("command = {}", json!(program.line)),
    };
    let config = TextFile::new(&format!("[[upstreams]]\nname = \"long\"\n{target}\n"));
    let mut command = larder(&["serve", "--config", config.path()]);
    command.arg("--store").arg(format!("file://{}", folder.path().display()));
    command.env("LARDER_OBJECTS__BYTES_PER_OWNER", "3000000000");
    let process = Process::start(command).await;
    ((folder, config), process)
}

#[tokio::test]
async fn a_long_result_takes_flat_memory() {
    let (json, _json_server) = long_over_http(&[]).await;
    let (events, _events_server) = long_over_http(&["--events"]).await;
    for upstream in [long(&[]), json, events] {
        let (_files, server) = storing_in_files(&upstream).await;
        let client = Legacy::at_url(&server.url).await;
        let mut grown = Vec::new();
        let text_of = |megabytes: usize, copy: &str| json!({ "bytes": megabytes << 20, "copy": copy, "late_id": true });
        let media_of = |media: &str, megabytes: usize, copies: bool| {
            let (bytes, copy) = (megabytes << 20, copies.then_some("blocks"));
            json!({ "media": media, "bytes": bytes, "copy": copy, "late_id": true })
        };
        for arguments in [
            text_of(10, "text"),
            media_of("image", 10, true),
            text_of(10, "text"),
            text_of(60, ""),
            text_of(30, "text"),
            media_of("image", 40, false),
            media_of("audio", 30, false),
            media_of("blob", 40, false),
        ] {
            // Resets the peak.
            std::fs::write(format!("/proc/{}/clear_refs", server.id()), "5").unwrap();
            let before = memory(&server, "VmRSS:");
            let result = client.call("long", arguments).await.result();
            assert!(text(&result).starts_with("PREVIEW ONLY"), "{result:.300}");
            grown.push(memory(&server, "VmHWM:").saturating_sub(before) >> 10);
        }
        // The first ones warm the server up. The others take a few blocks, and what the
        // allocator and buffers of HTTP hold back: mostly 4 MiB, more when other tests take the
        // cores. One that is held as a whole takes at least 30 MiB.
        assert!(grown[3..].iter().all(|grown| *grown < 16 << 10), "{grown:?}");
    }
}
