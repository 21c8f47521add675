//! A changed configuration, taken while the server runs.

use std::{fs, path::Path};

use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr},
};

use crate::{
    process::{larder, signal},
    support::{Answer, Modern, http, patiently},
};

struct Running {
    child: Child,
    url: String,
    log: Lines<BufReader<ChildStderr>>,
}

impl Running {
    async fn start(config: &Path) -> Self {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap()];
        let mut child = larder(&arguments).env_remove("RUST_LOG").spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = patiently("the first line", log.next_line()).await.unwrap().unwrap();
        let url = line.strip_prefix("larder listening on ").unwrap().to_owned();
        Self { child, url, log }
    }

    /// The next line of log that says that.
    async fn logs(&mut self, text: &str) -> String {
        loop {
            let line = patiently(text, self.log.next_line()).await.unwrap().expect(text);
            if line.contains(text) {
                return line;
            }
        }
    }

    async fn ping(&self, bytes: usize) -> u16 {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "pad": "x".repeat(bytes) } });
        let request = http().post(&self.url).header("content-type", "application/json");
        Answer::of(request.body(body.to_string())).await.status
    }
}

#[tokio::test]
async fn what_can_change_changes_and_a_bad_file_changes_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |text: &str| fs::write(file.path(), text).unwrap();
    write("[limits]\nbody_bytes = 1000\n[log]\nlevel = \"info\"");
    let mut server = Running::start(file.path()).await;
    assert_eq!((server.ping(10).await, server.ping(2000).await), (200, 413));

    write("[limits]\nbody_bytes = 5000\n[log]\nlevel = \"info\"\n[tools]\nwrite = false");
    signal(&server.child, "-HUP").await;
    let line = server.logs("read again").await;
    assert!(line.contains("limits.body_bytes"), "{line}");
    let line = server.logs("next start").await;
    assert!(line.contains("tools.write"), "{line}");
    assert_eq!((server.ping(2000).await, server.ping(6000).await), (200, 413));

    // Each of them would raise the bound, if half of it were taken.
    for bad in [
        "[limits]\nbody_bytes = 9000\nbody_byte = 1",
        "[limits]\nbody_bytes = 9000\nwindow = 0",
        "[limits",
    ] {
        write(bad);
        signal(&server.child, "-HUP").await;
        server.logs("stays as it was").await;
        assert_eq!((server.ping(2000).await, server.ping(6000).await), (200, 413));
    }

    // Without a signal, too.
    write("[limits]\nbody_bytes = 9000\nrequests_per_window = 1\n[log]\nlevel = \"info\"");
    server.logs("read again").await;
    assert_eq!((server.ping(6000).await, server.ping(1).await), (200, 429));
}

#[tokio::test]
async fn bounds_of_answers_and_the_log_level_change_and_who_listens_for_tools_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // Nothing is said of a change below this level: it changes, too.
    fs::write(file.path(), "[log]\nlevel = \"warn\"\n").unwrap();
    let write = |text: &str| {
        fs::write(file.path(), format!("[log]\nlevel = \"info\"\n{text}")).unwrap();
    };
    let mut server = Running::start(file.path()).await;
    let client = Modern::at(&server.url);
    client.create(json!({ "uri": "x:long", "text": "a line\n".repeat(3000) })).await;
    let read = async || {
        let answer = client.call("read_resource", json!({ "uri": "x:long", "limit": 3000 })).await;
        answer.text().len()
    };
    let is_stored =
        async || client.call("list_resources", json!({})).await.text().contains("is stored at");
    let before = read().await;
    assert!(before > 10_000 && !is_stored().await);

    let mut listening = client.listen(1, json!({ "toolsListChanged": true })).await;
    write("[tools]\noutput_bytes = 3000\nspill = { list_resources = \"always\" }");
    signal(&server.child, "-HUP").await;
    let line = server.logs("read again").await;
    for changed in ["log.level", "tools.output_bytes", "tools.spill"] {
        assert!(line.contains(changed), "{line}");
    }
    assert_eq!(listening.message().await["method"], "notifications/tools/list_changed");
    assert!(read().await < 3_100 && is_stored().await);

    // A rule for nothing is a mistake, and none of the file is taken then.
    write("[tools]\noutput_bytes = 9000\nspill = { no_such_tool = \"always\" }");
    signal(&server.child, "-HUP").await;
    let line = server.logs("stays as it was").await;
    assert!(line.contains("tools.spill") && line.contains("no_such_tool"), "{line}");
    assert!(read().await < 3_100 && is_stored().await);

    // A client's own bound, by the name that it gives itself.
    write("[tools]\nclients = { it = 2000 }");
    signal(&server.child, "-HUP").await;
    server.logs("read again").await;
    assert!(read().await < 2_100 && !is_stored().await);
}
