//! A server on a directory: what its files are to it, and what is not its own.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Child;

use crate::{
    process::serving_in,
    storage::objects::AT_ONCE,
    support::{Modern, patiently},
};

/// A folder, with the place somewhere in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn place(&self) -> PathBuf {
        self.0.path().join("not/yet")
    }

    async fn serving(&self) -> (Child, Modern) {
        let url = format!("file://{}", self.place().display());
        let environment = [AT_ONCE, ("LARDER_LIMITS__READ_BYTES", "100000000")];
        let (child, url) = serving_in(&["--store", &url], &environment).await;
        (child, Modern::at(&url))
    }
}

/// All files below a folder.
pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    // Folders go while they are looked at.
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let below = entries.flatten().flat_map(|entry| {
        let path = entry.path();
        if path.is_dir() { walk(&path) } else { vec![path] }
    });
    below.collect()
}

/// What no compression makes less.
fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    let mut words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{state:016x}")
    });
    words.by_ref().take(bytes / 16).collect()
}

#[tokio::test]
async fn whatever_it_is_called_it_lies_in_the_directory_or_nowhere() {
    let folder = Folder::new();
    let (_child, client) = folder.serving().await;
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
    // Those that are URIs of bearable length.
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
    let files = walk(folder.0.path());
    assert!(files.len() >= 2 * stored.len(), "{files:?}");
    for file in files {
        assert!(file.starts_with(folder.place()), "{}", file.display());
    }
}

#[tokio::test]
async fn damage_is_an_error_of_that_resource_and_no_other() {
    let folder = Folder::new();
    let (_child, client) = folder.serving().await;
    for name in ["entry", "content", "whole"] {
        client.create(json!({ "uri": format!("x:{name}"), "text": noise(1000) })).await;
    }
    for file in walk(&folder.place()) {
        let (path, kind) = (file.to_str().unwrap(), file.extension().unwrap());
        if path.contains("/_entry!/") && kind == "json" {
            std::fs::write(&file, "{").unwrap();
        } else if path.contains("/_content!/") && kind == "content" {
            std::fs::write(&file, &noise(1000)[..100]).unwrap();
        }
    }
    for uri in ["x:entry", "x:content"] {
        let error = client.send("resources/read", json!({ "uri": uri })).await.error();
        assert_eq!(error["code"], -32603, "{error}");
        let said = client.call("read_resource", json!({ "uri": uri })).await.failure();
        let place = folder.place().display().to_string();
        assert!(!said.contains(&place) && !error.to_string().contains(&place), "{said} {error}");
    }
    assert_eq!(client.read("x:whole").await["text"], noise(1000).as_str());
    let listed: Vec<Value> = client.list("resources/list", "resources").await;
    assert!(listed.iter().any(|one| one["uri"] == "x:whole"), "{listed:?}");
}

#[tokio::test]
async fn what_is_being_read_is_read_to_its_end_or_breaks_off() {
    // More than waits on its way to a client that does not read.
    let text = noise(24 << 20);
    for is_deleted in [true, false] {
        let folder = Folder::new();
        let (_child, client) = folder.serving().await;
        client.create(json!({ "uri": "x:large", "text": text })).await;
        let reading = client.request(1, "resources/read", json!({ "uri": "x:large" })).send();
        let mut reading = patiently("a response", reading).await.unwrap();
        let mut read = patiently("its beginning", reading.chunk()).await.unwrap().unwrap().to_vec();
        if is_deleted {
            client.call("delete_resource", json!({ "uri": "x:large" })).await.text();
        } else {
            std::fs::remove_dir_all(folder.place()).unwrap();
        }
        let rest = patiently("the rest", reading.bytes()).await;
        if is_deleted {
            read.extend_from_slice(&rest.unwrap());
            let read: Value = serde_json::from_slice(&read).unwrap();
            assert!(read["result"]["contents"][0]["text"] == text.as_str());
        } else {
            assert!(rest.is_err(), "it ends as if it were whole");
        }
    }
}
