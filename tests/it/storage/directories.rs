//! A server whose store is a directory: its files, and protection of all others.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::ONE_MESSAGE;
use crate::support::{
    Modern, files_below, noise, patiently,
    process::{Process, serving_in},
};

/// A temporary folder, with the directory of the store somewhere in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The directory of the store. The server creates it.
    fn store(&self) -> PathBuf {
        self.0.path().join("not/yet")
    }

    async fn serving(&self) -> (Process, Modern) {
        let url = format!("file://{}", self.store().display());
        let environment = [ONE_MESSAGE, ("LARDER_LIMITS__READ_BYTES", "100000000")];
        let (process, url) = serving_in(&["--store", &url], &environment).await;
        (process, Modern::at(&url))
    }
}

/// Text of so many bytes that does not compress.
fn incompressible(bytes: usize) -> String {
    let numbers = noise(0).take(bytes / 16).map(|number| format!("{number:016x}"));
    numbers.collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn resources_of_any_uri_are_stored_in_the_directory_or_refused() {
    let folder = Folder::new();
    let (_larder, client) = folder.serving().await;
    let outside = folder.0.path().join("outside");
    let outside = outside.display();
    let names = [
        "output://file.json".to_owned(),
        "results://file.json".to_owned(),
        "x://a".to_owned(),
        "x://a/b".to_owned(),
        "x://a.meta".to_owned(),
        "x://../../../outside".to_owned(),
        "../outside".to_owned(),
        "x:../../../../outside".to_owned(),
        "x://%2e%2e%2f%2e%2e%2foutside".to_owned(),
        "x://..%5c..%5coutside".to_owned(),
        "x://..\\..\\outside".to_owned(),
        format!("file://{outside}"),
        format!("x:{outside}"),
        outside.to_string(),
        "x://a%00b".to_owned(),
        "x://a\0b".to_owned(),
        format!("x://{}", "a".repeat(10 << 10)),
        format!("x://{}", "../".repeat(600)),
    ];
    let mut stored = Vec::new();
    for uri in &names {
        let made = client.call("create_resource", json!({ "uri": uri, "text": uri })).await;
        if made.result()["isError"] != true {
            stored.push(uri.as_str());
        }
    }
    // The names that are not URIs, or too long.
    let refused = names.iter().filter(|uri| !stored.contains(&uri.as_str()));
    assert_eq!(refused.count(), 5, "{stored:?}");
    let mut listed: Vec<Value> = client.list("resources/list", "resources").await;
    listed.retain(|one| one["size"].is_u64());
    let mut listed: Vec<&str> = listed.iter().map(|one| one["uri"].as_str().unwrap()).collect();
    listed.sort_unstable();
    stored.sort_unstable();
    assert_eq!(listed, stored);
    for uri in listed {
        assert_eq!(client.read(uri).await["text"], uri);
    }
    let files = files_below(folder.0.path());
    assert!(files.len() >= 2 * stored.len(), "{files:?}");
    for file in files {
        assert!(file.starts_with(folder.store()), "{}", file.display());
    }
}

#[tokio::test]
async fn a_damaged_file_is_an_error_of_its_resource_only() {
    let folder = Folder::new();
    let (_larder, client) = folder.serving().await;
    // Too large to be in an entry.
    let text = incompressible(16 << 10);
    for name in ["entry", "content", "whole"] {
        client.create(json!({ "uri": format!("x:{name}"), "text": text })).await;
    }
    for file in files_below(&folder.store()) {
        let (path, kind) = (file.to_str().unwrap(), file.extension().unwrap());
        if path.contains("/_entry!/") && kind == "json" {
            std::fs::write(&file, "{").unwrap();
        } else if path.contains("/_content!/") && kind == "content" {
            std::fs::write(&file, &text[..100]).unwrap();
        }
    }
    for uri in ["x:entry", "x:content"] {
        let error = client.send("resources/read", json!({ "uri": uri })).await.error();
        assert_eq!(error["code"], -32603, "{error}");
        let said = client.call("read_resource", json!({ "uri": uri })).await.failure();
        let path = folder.store().display().to_string();
        assert!(!said.contains(&path) && !error.to_string().contains(&path), "{said} {error}");
    }
    assert_eq!(client.read("x:whole").await["text"], text.as_str());
    let listed: Vec<Value> = client.list("resources/list", "resources").await;
    assert!(listed.iter().any(|one| one["uri"] == "x:whole"), "{listed:?}");
}

#[tokio::test]
async fn a_started_read_is_whole_or_fails() {
    // More than fits into the socket buffers while the client does not read.
    let text = incompressible(16 << 20);
    for is_deleted in [true, false] {
        let folder = Folder::new();
        let (_larder, client) = folder.serving().await;
        client.create(json!({ "uri": "x:large", "text": text })).await;
        let reading = client.request(1, "resources/read", json!({ "uri": "x:large" })).send();
        let mut reading = patiently("a response", reading).await.unwrap();
        let mut read = patiently("its beginning", reading.chunk()).await.unwrap().unwrap().to_vec();
        if is_deleted {
            client.call("delete_resource", json!({ "uri": "x:large" })).await.text();
        } else {
            std::fs::remove_dir_all(folder.store()).unwrap();
        }
        let rest = patiently("the rest", reading.bytes()).await;
        if is_deleted {
            read.extend_from_slice(&rest.unwrap());
            let read: Value = serde_json::from_slice(&read).unwrap();
            assert!(read["result"]["contents"][0]["text"] == text.as_str());
        } else {
            assert!(rest.is_err(), "a partial response looks complete");
        }
    }
}

#[tokio::test]
async fn an_expiry_does_not_depend_on_the_time_zone() {
    let folder = Folder::new();
    let url = format!("file://{}", folder.store().display());
    let mut expiries = Vec::new();
    // Fourteen hours ahead of UTC, and eleven behind it.
    for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago"] {
        let (_process, at) = serving_in(&["--store", &url], &[ONE_MESSAGE, ("TZ", zone)]).await;
        let client = Modern::at(&at);
        if expiries.is_empty() {
            client.create(json!({ "uri": "x:short", "text": "1", "ttl": 3600 })).await;
        }
        let described = client.call("describe_resource", json!({ "uri": "x:short" })).await.text();
        let (_, expires) = described.split_once("expires: ").unwrap();
        expiries.push(expires.lines().next().unwrap().to_owned());
    }
    assert_eq!(expiries[0], expiries[1]);
}

#[tokio::test]
async fn without_a_setting_resources_are_in_memory_and_end_with_the_process() {
    for expected in [true, false] {
        let (process, url) = serving_in(&[], &[ONE_MESSAGE]).await;
        let client = Modern::at(&url);
        if expected {
            client.create(json!({ "uri": "x:kept", "text": "1" })).await;
        }
        let read = client.send("resources/read", json!({ "uri": "x:kept" })).await;
        assert_eq!(read.json().get("result").is_some(), expected, "{read:?}");
        process.stop("-TERM").await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_user_can_enter_a_directory_that_the_server_creates() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let _serving = folder.serving().await;
    let mode = std::fs::metadata(folder.store()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
