//! What the holder of an upload link takes of its maker's quota.

use std::time::Duration;

use larder::{config::Config, tools};
use reqwest::Method;
use serde_json::json;

use super::{get, request, resource};
use crate::support::{Answer, Modern, Raw, RedisServer, Server, eventually};

/// The quota of the maker of the links, in bytes.
const QUOTA: u64 = 4 << 20;

/// The size that the holders of links announce.
const ANNOUNCED: &str = "3900000";

/// A server with this quota, in each backend that can be opened here.
struct Place {
    server: Server,
    backend: &'static str,
    _folder: tempfile::TempDir,
    _redis: Option<RedisServer>,
}

async fn place(backend: &'static str) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let redis = if backend == "redis" { Some(RedisServer::start().await) } else { None };
    let url = match &redis {
        Some(redis) => redis.url(),
        None if backend == "files" => format!("file://{}", folder.path().display()),
        None => "memory:".to_owned(),
    };
    let quotas = |config: &mut Config| {
        config.store.url = url;
        config.redis.migrate = true;
        config.memory.bytes_per_owner = QUOTA;
        config.objects.bytes_per_owner = QUOTA;
        config.redis.bytes_per_owner = QUOTA;
    };
    let server = Server::configured(|setup| {
        quotas(&mut setup.config);
        setup.offer(|builder| builder.with(tools::writing()).with(tools::uploading()));
    })
    .await;
    Place { server, backend, _folder: folder, _redis: redis }
}

impl Place {
    async fn link(&self, uri: &str) -> String {
        self.link_and_id(uri).await.0
    }

    /// The URL of a link, and the ID for `check_upload`.
    async fn link_and_id(&self, uri: &str) -> (String, String) {
        let client = Modern::of(&self.server);
        let answer = client.call("upload_url", json!({ "uri": uri })).await;
        let link = &answer.result()["structuredContent"];
        let text = |text: &serde_json::Value| text.as_str().unwrap().to_owned();
        (text(&link["upload"]["url"]), text(&link["id"]))
    }

    async fn is_receiving(&self, id: &str) -> bool {
        let answer = Modern::of(&self.server).call("check_upload", json!({ "id": id })).await;
        answer.result()["structuredContent"]["state"] == "receiving"
    }

    /// Stores so much as the maker of the links; the status.
    async fn store(&self, uri: &str, bytes: usize) -> u16 {
        put(&resource(&self.server.url, uri), bytes).await
    }
}

async fn put(url: &str, bytes: usize) -> u16 {
    Answer::of(request(Method::PUT, url, &[]).body(vec![b'x'; bytes])).await.status
}

/// Begins an upload in parts of the announced size; its URL.
async fn begin(url: &str) -> Result<String, u16> {
    let headers = [("upload-complete", "?0"), ("upload-length", ANNOUNCED)];
    let begun = Answer::of(request(Method::POST, url, &headers)).await;
    let location = begun.header("location").ok_or(begun.status)?;
    Ok(reqwest::Url::parse(url).unwrap().join(location).unwrap().to_string())
}

async fn append(upload: &str, offset: usize, bytes: usize) -> u16 {
    let offset = offset.to_string();
    let headers = [
        ("content-type", "application/partial-upload"),
        ("upload-offset", &*offset),
        ("upload-complete", "?0"),
    ];
    Answer::of(request(Method::PATCH, upload, &headers).body(vec![b'x'; bytes])).await.status
}

async fn head(upload: &str) -> u16 {
    Answer::of(request(Method::HEAD, upload, &[])).await.status
}

#[tokio::test]
async fn an_announced_size_reserves_nothing_of_the_makers_quota() {
    for backend in ["memory", "files", "redis"] {
        let place = place(backend).await;
        let upload = begin(&place.link("x:1").await).await.expect("it begins");
        // What has arrived counts.
        assert_eq!(append(&upload, 0, 1 << 20).await, 204, "{backend}");
        assert_eq!(place.store("x:mine", 2 << 20).await, 201, "{backend}: the quota is free");
        assert_eq!(place.store("x:more", 1 << 20).await, 507, "{backend}: parts count");
        // So does what arrives after the quota is used.
        assert_eq!(append(&upload, 1 << 20, 2 << 20).await, 507, "{backend}");
    }
}

#[tokio::test]
async fn a_used_link_reserves_nothing() {
    for backend in ["memory", "files", "redis"] {
        let place = place(backend).await;
        let link = place.link("x:1").await;
        let upload = begin(&link).await.expect("it begins");
        assert_eq!(append(&upload, 0, 3 << 20).await, 204, "{backend}");
        assert_eq!(put(&link, 10).await, 201, "{backend}");
        assert_eq!(head(&upload).await, 404, "{backend}");
        // Backends may count for a while what was removed.
        eventually(&format!("room in {}", place.backend), async || {
            place.store("x:mine", 3 << 20).await == 201
        })
        .await;
        assert_eq!(get(&resource(&place.server.url, "x:1"), &[]).await.body.len(), 10);
    }
}

#[tokio::test]
async fn a_link_has_two_uploads_in_parts_at_most() {
    for backend in ["memory", "files", "redis"] {
        let place = place(backend).await;
        let link = place.link("x:1").await;
        let first = begin(&link).await.expect("it begins");
        assert_eq!(append(&first, 0, 1 << 20).await, 204, "{backend}");
        let mut uploads = Vec::new();
        for _ in 0..10 {
            // In memory, time passes for the tests only.
            place.server.clock.advance(Duration::from_millis(1));
            uploads.push(begin(&link).await.expect("it begins"));
        }
        assert_eq!(head(&first).await, 404, "{backend}: the oldest has ended");
        let mut open = 0;
        for upload in &uploads {
            open += usize::from(head(upload).await == 204);
        }
        assert_eq!(open, 2, "{backend}");
        assert_eq!(head(&uploads[9]).await, 204, "{backend}: the latest stays");
        // Another link has its own.
        let other = begin(&place.link("x:2").await).await.expect("it begins");
        assert_eq!((head(&other).await, head(&uploads[9]).await), (204, 204));
    }
}

#[tokio::test]
async fn a_slow_sender_reserves_what_has_arrived() {
    for backend in ["memory", "files", "redis"] {
        let place = place(backend).await;
        let (link, id) = place.link_and_id("x:1").await;
        let path = link.strip_prefix(&format!("http://{}", place.server.address)).unwrap();
        let mut slow = Raw::connect(&place.server).await;
        let host = place.server.address;
        let request = format!("PUT {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {ANNOUNCED}");
        slow.write(format!("{request}\r\n\r\n")).await;
        slow.write(vec![b'x'; 1000]).await;
        // The server notes that content arrives before it reads any.
        eventually("content to arrive", async || place.is_receiving(&id).await).await;
        assert_eq!(place.store("x:mine", 2 << 20).await, 201, "{backend}");
        drop(slow);
    }
}
