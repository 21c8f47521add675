//! Servers on a directory and on S3, and what is left when they are killed.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::process::Child;

use crate::{
    process::{refused, serving_in, signal},
    support::{Modern, S3Server, patiently},
};

/// A kind of place, by its URL and what has to be in the environment.
struct Place {
    url: String,
    environment: Vec<(&'static str, String)>,
    _folder: tempfile::TempDir,
    _s3: Option<Arc<S3Server>>,
}

impl Place {
    async fn each() -> [Self; 2] {
        let folder = tempfile::tempdir().unwrap();
        let directory = format!("file://{}/not/yet", folder.path().display());
        let s3 = S3Server::shared().await;
        let own = tempfile::tempdir().unwrap();
        let prefix = own.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        [
            Self { url: directory, environment: Vec::new(), _folder: folder, _s3: None },
            Self {
                url: S3Server::url(prefix),
                environment: s3.environment().into(),
                _folder: own,
                _s3: Some(s3),
            },
        ]
    }

    async fn serving(&self) -> (Child, Modern) {
        let environment: Vec<_> = self.environment.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let (child, url) = serving_in(&["--store", &self.url], &environment).await;
        (child, Modern::at(&url))
    }
}

#[tokio::test]
async fn what_is_created_on_one_is_read_on_another_and_after_a_restart() {
    for place in Place::each().await {
        let ((mut a, client_a), (_b, client_b)) = (place.serving().await, place.serving().await);
        client_a.create(json!({ "uri": "x:1", "text": "one", "title": "One" })).await;
        assert_eq!(client_b.read("x:1").await["text"], "one");
        client_b.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
        assert_eq!(client_a.read("x:1").await["text"], "two");
        signal(&a, "-TERM").await;
        patiently("the end", a.wait()).await.unwrap();
        let (_c, client_c) = place.serving().await;
        assert_eq!(client_c.read("x:1").await["text"], "two");
        let listed: Vec<Value> = client_c.list("resources/list", "resources").await;
        assert!(
            listed.iter().any(|one| one["uri"] == "x:1" && one["title"] == "One"),
            "{listed:?}"
        );
    }
}

#[tokio::test]
async fn killed_in_the_middle_of_writing_it_leaves_the_old_or_the_new() {
    let [place, _] = Place::each().await;
    let text = |n: usize| format!("{n} {}", "0123456789abcdef".repeat(40_000 + n));
    for round in 0..5 {
        let (mut child, client) = place.serving().await;
        client.create(json!({ "uri": "x:1", "text": text(0) })).await;
        let mut written = 0;
        let writing = async {
            loop {
                let text = text(written + 1);
                let made = client.request(
                    1,
                    "tools/call",
                    json!({
                        "name": "create_resource", "arguments": { "uri": "x:1", "text": text }
                    }),
                );
                if made.send().await.is_err() {
                    return;
                }
                written += 1;
            }
        };
        let killing = async {
            // At another moment each time.
            tokio::time::sleep(std::time::Duration::from_millis(300 + 37 * round)).await;
            child.start_kill().unwrap();
            child.wait().await.unwrap();
        };
        patiently("the end", async { tokio::join!(writing, killing) }).await;
        let (_child, client) = place.serving().await;
        let read = client.read("x:1").await["text"].as_str().unwrap().to_owned();
        let n: usize = read.split(' ').next().unwrap().parse().unwrap();
        assert!(read == text(n), "what is read is nobody's");
        assert!(n == written || n == written + 1, "{n} after {written}");
        // And it goes on.
        client.create(json!({ "uri": "x:2", "text": "more" })).await;
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_used_names_the_setting() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = format!("file://{}/below", file.path().display());
    let nowhere = [("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_ACCESS_KEY_ID", "k")];
    let nowhere =
        [&nowhere[..], &[("AWS_SECRET_ACCESS_KEY", "hidden"), ("AWS_REGION", "x")]].concat();
    for (store, environment, code) in [
        ("file://relative", &[][..], 2),
        ("s3://", &[], 2),
        ("gopher://x", &[], 2),
        (&below, &[], 1),
        ("s3://bucket/prefix", &nowhere, 1),
    ] {
        let (found, said) =
            refused(&["serve", "--listen", "127.0.0.1:0", "--store", store], environment).await;
        assert_eq!(found, Some(code), "{said}");
        assert!(said.contains("store.url") && !said.contains("hidden"), "{said}");
    }
}
