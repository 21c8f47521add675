//! PUT and POST of content: streamed, checked before it is visible, limited.

use std::{io, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::stream;
use larder::{testing::RedisServer, tools::ToolOptions};
use reqwest::{Body, Method};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_util::task::AbortOnDropHandle;

use super::{each_backend, get, hex, problem, request, resource};
use crate::support::{
    Answer, Modern, Server, TextFile, eventually, noise, numbered_lines,
    process::{Process, larder, serving},
    sha256,
};

async fn put(url: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
    Answer::of(request(Method::PUT, url, headers).body(body)).await
}

fn described(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// The value of a digest header.
fn digest(content: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64_STANDARD.encode(Sha256::digest(content)))
}

#[tokio::test]
async fn put_content_is_a_resource_in_every_backend() {
    let text = numbered_lines(20_000);
    for stored in each_backend().await {
        let (url, backend) = (&stored.server.url, stored.backend);
        let target = format!("{}&name=Lines&ttl=600", resource(url, "x:lines"));
        let headers = [("content-type", "text/csv"), ("content-digest", &*digest(text.as_bytes()))];
        let created = put(&target, &headers, text.clone()).await;
        assert_eq!(created.status, 201, "{backend} {created:?}");
        let entry = described(&created);
        assert_eq!((&entry["uri"], &entry["name"]), (&json!("x:lines"), &json!("Lines")));
        assert_eq!((&entry["size"], &entry["mimeType"]), (&json!(text.len()), &json!("text/csv")));
        assert_eq!(entry["sha256"], hex(text.as_bytes()), "{backend}");
        assert_eq!(created.header("location"), Some("resources?uri=x%3Alines"));
        let found = get(&resource(url, "x:lines"), &[]).await;
        assert!(found.body == text.as_bytes(), "{backend}");
        assert_eq!(found.header("etag"), created.header("etag"));
        let client = Modern::at(url);
        let row = client.call("read_resource", json!({ "uri": "x:lines", "limit": 1 })).await;
        assert!(row.text().contains("00000000 "), "{backend}: it is text");
        let replaced = put(&resource(url, "x:lines"), &[], "other").await;
        assert_eq!((replaced.status, described(&replaced)["revision"].as_u64()), (200, Some(2)));
    }
}

#[tokio::test]
async fn bytes_at_the_end_make_it_binary_and_a_post_gets_a_uri() {
    let server = Server::start().await;
    let base = server.url.replace("/mcp", "/resources");
    let mut content = numbered_lines(60_000).into_bytes();
    content.push(0xff);
    let created = Answer::of(request(Method::POST, &base, &[]).body(content.clone())).await;
    let entry = described(&created);
    assert_eq!((created.status, &entry["mimeType"]), (201, &json!("application/octet-stream")));
    let uri = entry["uri"].as_str().unwrap();
    assert!(uri.starts_with("larder://r/"), "{uri}");
    assert!(get(&resource(&server.url, uri), &[]).await.body == content);
    let kept = format!("{}&kind=binary", resource(&server.url, "x:b"));
    assert_eq!(described(&put(&kept, &[], "text").await)["mimeType"], "application/octet-stream");
}

#[tokio::test]
async fn what_is_not_as_announced_is_not_stored() {
    for stored in each_backend().await {
        let url = resource(&stored.server.url, "x:1");
        assert_eq!(put(&url, &[], "before").await.status, 201);
        let wrong = digest(b"something else");
        for header in ["content-digest", "repr-digest"] {
            let refused = put(&url, &[(header, &wrong)], "ten bytes.").await;
            let (status, detail) = problem(&refused);
            assert_eq!(status, 400, "{detail}");
            assert!(detail.ends_with("nothing was stored."), "{detail}");
        }
        let right = digest(b"ten bytes.");
        assert_eq!(get(&url, &[]).await.body, "before".as_bytes());
        assert_eq!(put(&url, &[("repr-digest", &right)], "ten bytes.").await.status, 200);
    }
}

#[tokio::test]
async fn preconditions_guard_what_is_there() {
    let server = Server::start().await;
    let url = resource(&server.url, "x:1");
    let only_new = [("if-none-match", "*")];
    assert_eq!(put(&url, &[("if-match", "*")], "no").await.status, 412);
    let created = put(&url, &only_new, "first").await;
    assert_eq!(created.status, 201);
    assert_eq!(problem(&put(&url, &only_new, "no").await).0, 412);
    let tag = created.header("etag").unwrap();
    assert_eq!(put(&url, &[("if-match", tag)], "second").await.status, 200);
    assert_eq!(put(&url, &[("if-match", tag)], "third").await.status, 412);
    assert_eq!(get(&url, &[]).await.body, "second".as_bytes());
}

/// A body that fails the test if it is read.
fn never() -> Body {
    let pieces = stream::once(async {
        std::future::pending::<()>().await;
        io::Result::Ok(Bytes::new())
    });
    Body::wrap_stream(pieces)
}

#[tokio::test]
async fn too_much_is_refused_before_it_is_sent() {
    let server = Server::configured(|setup| {
        setup.config.memory.bytes_per_owner = 3 << 20;
        setup.config.content.upload_bytes = 4 << 20;
    })
    .await;
    let url = resource(&server.url, "x:1");
    for (size, status, name) in
        [("5000000", 413, "content.upload_bytes"), ("4000000", 507, "Store less")]
    {
        let refused = put(&url, &[("content-length", size)], never()).await;
        let (found, detail) = problem(&refused);
        assert_eq!(found, status, "{detail}");
        assert!(detail.contains(name), "{detail}");
    }
    // Without a length it is refused on the way.
    let endless = stream::repeat_with(|| io::Result::Ok(Bytes::from(vec![7; 100_000])));
    let refused = request(Method::PUT, &url, &[]).body(Body::wrap_stream(endless)).send().await;
    assert!(refused.is_err() || matches!(refused.unwrap().status().as_u16(), 413 | 507));
    assert_eq!(get(&url, &[]).await.status, 404);
}

#[tokio::test]
async fn of_two_uploads_that_exceed_the_quota_together_one_is_refused_before_its_content() {
    for stored in each_backend().await {
        let (url, backend) = (&stored.server.url, stored.backend);
        // More than half of the quota.
        let size = if backend == "memory" { "150000000" } else { "300000000" };
        let announced = [("content-length", size)];
        let send = || {
            let sent = request(Method::PUT, &resource(url, "x:1"), &announced).body(never()).send();
            AbortOnDropHandle::new(tokio::spawn(async move { drop(sent.await) }))
        };
        let mut first = send();
        let parts = [("upload-complete", "?0"), ("upload-length", size)];
        let begin = async || {
            let target = resource(url, "x:2");
            let begun = Answer::of(request(Method::POST, &target, &parts)).await;
            if begun.status == 201 {
                let location = begun.header("location").unwrap();
                let upload = reqwest::Url::parse(&target).unwrap().join(location).unwrap();
                let removed = Answer::of(request(Method::DELETE, upload.as_str(), &[])).await;
                assert_eq!(removed.status, 204, "{backend} {removed:?}");
            }
            begun.status
        };
        // The first one may just be on its way, and be refused for what began meanwhile.
        eventually(&format!("the reservation in {backend}"), async || {
            if first.is_finished() {
                first = send();
            }
            begin().await == 507
        })
        .await;
        let (status, detail) = problem(&put(&resource(url, "x:3"), &announced, never()).await);
        assert_eq!(status, 507, "{backend}: {detail}");
        assert!(detail.contains("uploads in progress included"), "{backend}: {detail}");
        drop(first);
        eventually(&format!("the end of the reservation in {backend}"), async || {
            begin().await == 201
        })
        .await;
    }
}

#[tokio::test]
async fn an_upload_needs_the_scopes_of_the_tool_that_stores() {
    let config = TextFile::new(&format!(
        "[auth]\nmode = \"static\"\n\n[auth.scopes]\ncreate_resource = [\"larder:write\"]\n\n\
         [[auth.tokens]]\nname = \"reader\"\nsha256 = \"{}\"\nscopes = []\n\n\
         [[auth.tokens]]\nname = \"writer\"\nsha256 = \"{}\"\nscopes = [\"larder:write\"]\n",
        sha256("reads"),
        sha256("writes")
    ));
    let (server, url) = serving(&["--config", config.path()]).await;
    let url = resource(&url, "x:1");
    assert_eq!(put(&url, &[], "text").await.status, 401);
    let refused = put(&url, &[("authorization", "Bearer reads")], "text").await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.header("www-authenticate").unwrap().contains("larder:write"), "{refused:?}");
    let resumable = [("authorization", "Bearer reads"), ("upload-complete", "?0")];
    assert_eq!(put(&url, &resumable, "text").await.status, 403);
    assert_eq!(put(&url, &[("authorization", "Bearer writes")], "text").await.status, 201);
    assert!(!server.stderr().contains("Bearer"), "{}", server.stderr());
}

#[tokio::test]
async fn a_server_without_writing_tools_receives_nothing() {
    let server = Server::configured(|setup| {
        setup.offer(|builder| builder.with(larder::tools::reading(ToolOptions::default())));
    })
    .await;
    let url = resource(&server.url, "x:1");
    let (status, detail) = problem(&put(&url, &[], "text").await);
    assert_eq!((status, detail.contains("tools.write")), (403, true), "{detail}");
    let options = Answer::of(request(Method::OPTIONS, &url, &[])).await;
    assert_eq!((options.status, options.header("upload-limit")), (204, None));
}

/// Blocks that compression cannot make smaller, and the SHA-256 of that many.
struct Generated {
    block: Bytes,
    blocks: u64,
}

impl Generated {
    fn of(bytes: u64) -> Self {
        let block: Vec<u8> = noise(3).take(131_072).flat_map(u64::to_le_bytes).collect();
        Self { blocks: bytes / block.len() as u64, block: block.into() }
    }

    fn len(&self) -> u64 {
        self.blocks * self.block.len() as u64
    }

    fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        (0..self.blocks).for_each(|_| hash.update(&self.block));
        super::hex_of(&hash.finalize())
    }

    fn body(&self) -> Body {
        let block = self.block.clone();
        Body::wrap_stream(stream::iter(
            (0..self.blocks).map(move |_| io::Result::Ok(block.clone())),
        ))
    }
}

/// The resident memory of a process, now and at most, in bytes.
fn memory(process: &Process, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let found = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    found.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn a_large_upload_is_received_in_flat_memory() {
    let content = Arc::new(Generated::of(256 << 20));
    let sha256 = content.sha256();
    let (files, blobs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let redis = RedisServer::start().await;
    let files_url = format!("file://{}", files.path().display());
    let blobs_url = format!("file://{}", blobs.path().display());
    let redis_url = redis.url();
    let quota = "3000000000";
    for (arguments, environment) in [
        (vec!["--store", &*files_url], vec![("LARDER_OBJECTS__BYTES_PER_OWNER", quota)]),
        (
            vec!["--migrate", "--store", &*redis_url],
            vec![("LARDER_REDIS__BYTES_PER_OWNER", quota), ("LARDER_STORE__BLOBS", &*blobs_url)],
        ),
    ] {
        let mut command = larder(&["serve"]);
        command.args(arguments).envs(environment);
        let server = Process::start(command).await;
        let url = resource(&server.url, "x:big");
        assert_eq!(put(&resource(&server.url, "x:0"), &[], vec![1_u8; 1 << 20]).await.status, 201);
        let before = memory(&server, "VmRSS:");
        let length = content.len().to_string();
        let sent = request(Method::PUT, &url, &[("content-length", &length)]).body(content.body());
        let created = sent.timeout(Duration::from_secs(300)).send().await.unwrap();
        assert_eq!(created.status(), 201);
        let created: Value = serde_json::from_slice(&created.bytes().await.unwrap()).unwrap();
        assert_eq!(created["sha256"], sha256);
        let grown = memory(&server, "VmHWM:").saturating_sub(before);
        assert!(grown <= 96 << 20, "memory grew by {grown} bytes");
    }
}
