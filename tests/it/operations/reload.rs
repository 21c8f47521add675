//! A changed configuration, applied while the server runs.

use serde_json::json;

use crate::support::{
    Answer, Modern, TextFile, post,
    process::{Process, larder},
    request,
};

/// A server with a configuration file.
async fn started(file: &TextFile) -> Process {
    Process::start(larder(&["serve", "--config", file.path()])).await
}

/// The status of a ping of at least so many bytes.
async fn ping(server: &Process, bytes: usize) -> u16 {
    let body = request("ping", json!({ "pad": "x".repeat(bytes) }));
    Answer::of(post(&server.url, &body)).await.status
}

#[tokio::test]
async fn valid_changes_are_applied_and_an_invalid_file_changes_nothing() {
    let file = TextFile::new("[limits]\nbody_bytes = 1000\n[log]\nlevel = \"info\"");
    let mut server = started(&file).await;
    assert_eq!((ping(&server, 10).await, ping(&server, 2000).await), (200, 413));

    file.write("[limits]\nbody_bytes = 5000\n[log]\nlevel = \"info\"\n[tools]\nwrite = false");
    server.signal("-HUP").await;
    let line = server.logs("read again").await;
    assert!(line.contains("limits.body_bytes"), "{line}");
    let line = server.logs("next start").await;
    assert!(line.contains("tools.write"), "{line}");
    assert_eq!((ping(&server, 2000).await, ping(&server, 6000).await), (200, 413));

    // Each of these files has one valid setting, which would raise the limit.
    for bad in [
        "[limits]\nbody_bytes = 9000\nbody_byte = 1",
        "[limits]\nbody_bytes = 9000\nwindow = 0",
        "[limits",
    ] {
        file.write(bad);
        server.signal("-HUP").await;
        server.logs("stays as it was").await;
        assert_eq!((ping(&server, 2000).await, ping(&server, 6000).await), (200, 413));
    }

    // The file is watched, so that no signal is needed.
    file.write("[limits]\nbody_bytes = 9000\nrequests_per_window = 1\n[log]\nlevel = \"info\"");
    server.logs("read again").await;
    assert_eq!((ping(&server, 6000).await, ping(&server, 1).await), (200, 429));
}

#[tokio::test]
async fn limits_of_answers_and_the_log_level_change_and_subscribers_are_notified() {
    let file = TextFile::new("[log]\nlevel = \"warn\"\n");
    // The line about a reload is of level `info`, so it also shows that the level has changed.
    let write = |text: &str| file.write(&format!("[log]\nlevel = \"info\"\n{text}"));
    let mut server = started(&file).await;
    let client = Modern::at(&server.url);
    client.create(json!({ "uri": "x:long", "text": "a line\n".repeat(3000) })).await;
    let read = async || {
        let answer = client.call("read_resource", json!({ "uri": "x:long", "limit": 3000 })).await;
        answer.text().len()
    };
    let is_stored =
        async || client.call("list_resources", json!({})).await.text().contains("PREVIEW ONLY");
    let before = read().await;
    assert!(before > 10_000 && !is_stored().await);

    let mut listening = client.listen(1, json!({ "toolsListChanged": true })).await;
    write("[tools]\noutput_bytes = 3000\nspill = { list_resources = \"always\" }");
    server.signal("-HUP").await;
    let line = server.logs("read again").await;
    for changed in ["log.level", "tools.output_bytes", "tools.spill"] {
        assert!(line.contains(changed), "{line}");
    }
    assert_eq!(listening.message().await["method"], "notifications/tools/list_changed");
    assert!(read().await < 3_100 && is_stored().await);

    // A rule for an unknown tool makes the whole file invalid.
    write("[tools]\noutput_bytes = 9000\nspill = { no_such_tool = \"always\" }");
    server.signal("-HUP").await;
    let line = server.logs("stays as it was").await;
    assert!(line.contains("tools.spill") && line.contains("no_such_tool"), "{line}");
    assert!(read().await < 3_100 && is_stored().await);

    // The limit of one client, by the name in its `clientInfo`.
    write("[tools]\nclients = { it = 2000 }");
    server.signal("-HUP").await;
    server.logs("read again").await;
    assert!(read().await < 2_100 && !is_stored().await);
}
