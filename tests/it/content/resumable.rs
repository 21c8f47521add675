//! Uploads that continue after a lost connection, a crash, or on another instance.

use std::{path::Path, time::Duration};

use larder::testing::RedisServer;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, process::Command};

use super::{each_backend, get, hex, problem, request, resource};
use crate::support::{
    Answer, Modern, Server, dropping_proxy, eventually, noise, patiently,
    process::{Process, larder},
};

/// Bytes that compression cannot make smaller.
fn bytes(len: usize) -> Vec<u8> {
    noise(11).take(len / 8).flat_map(u64::to_le_bytes).collect()
}

/// Begins an upload of the IETF draft; its URL.
async fn begin(url: &str, size: usize) -> String {
    let size = size.to_string();
    let headers = [("upload-complete", "?0"), ("upload-length", &*size)];
    let begun = Answer::of(request(Method::POST, url, &headers)).await;
    assert_eq!((begun.status, begun.header("upload-offset")), (201, Some("0")), "{begun:?}");
    assert!(begun.header("upload-limit").unwrap().starts_with("max-size="), "{begun:?}");
    location(url, &begun)
}

fn location(url: &str, answer: &Answer) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    url.join(answer.header("location").unwrap()).unwrap().to_string()
}

async fn append(upload: &str, offset: usize, complete: &str, part: &[u8]) -> Answer {
    let offset = offset.to_string();
    let headers = [
        ("content-type", "application/partial-upload"),
        ("upload-offset", &*offset),
        ("upload-complete", complete),
    ];
    Answer::of(request(Method::PATCH, upload, &headers).body(part.to_vec())).await
}

async fn offset(upload: &str) -> Option<usize> {
    let head = Answer::of(request(Method::HEAD, upload, &[])).await;
    head.header("upload-offset")?.parse().ok()
}

#[tokio::test]
async fn an_upload_in_parts_is_a_resource_in_every_backend() {
    let content = bytes(20_000_000);
    let (first, rest) = content.split_at(9_000_000);
    for stored in each_backend().await {
        let url = format!("{}&name=Big", resource(&stored.server.url, "x:big"));
        let upload = begin(&url, content.len()).await;
        let appended = append(&upload, 0, "?0", first).await;
        assert_eq!(appended.status, 204, "{} {appended:?}", stored.backend);
        assert_eq!(appended.header("upload-complete"), Some("?0"));
        assert_eq!(offset(&upload).await, Some(first.len()));
        // Nobody sees the parts.
        let listed = Modern::at(&stored.server.url).call("list_resources", json!({})).await;
        assert!(!listed.text().contains("upload:") && !listed.text().contains("x:big"));
        let wrong = append(&upload, 7, "?0", b"x").await;
        let document: Value = serde_json::from_slice(&wrong.body).unwrap();
        assert_eq!(wrong.status, 409);
        let kind = "https://iana.org/assignments/http-problem-types#mismatching-upload-offset";
        assert_eq!(document["type"], kind);
        assert_eq!(document["expected-offset"], first.len());
        let created = append(&upload, first.len(), "?1", rest).await;
        assert_eq!((created.status, created.header("upload-complete")), (201, Some("?1")));
        let entry: Value = serde_json::from_slice(&created.body).unwrap();
        assert_eq!((&entry["sha256"], &entry["name"]), (&json!(hex(&content)), &json!("Big")));
        assert_eq!(location(&upload, &created), resource(&stored.server.url, "x:big"));
        assert!(get(&resource(&stored.server.url, "x:big"), &[]).await.body == content);
        // Asked again, it is still complete; more is refused.
        assert_eq!(append(&upload, content.len(), "?1", b"").await.status, 201);
        assert_eq!(append(&upload, content.len(), "?1", b"more").await.status, 400);
        assert_eq!(Answer::of(request(Method::DELETE, &upload, &[])).await.status, 204);
        assert_eq!(Answer::of(request(Method::HEAD, &upload, &[])).await.status, 404);
        assert_eq!(get(&resource(&stored.server.url, "x:big"), &[]).await.status, 200);
    }
}

/// Sends a part of a PATCH and breaks the connection.
async fn send_part(address: &str, upload: &str, size: usize, part: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let path = reqwest::Url::parse(upload).unwrap().path().to_owned();
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/partial-upload\r\n\
         upload-offset: 0\r\nupload-complete: ?1\r\ncontent-length: {size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(part).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

/// Starts a server on a fixed store.
async fn server(arguments: &[&str]) -> Process {
    let mut command = larder(&["serve"]);
    command.args(arguments);
    Process::start(command).await
}

#[tokio::test]
async fn an_upload_continues_after_the_server_was_killed() {
    let content = bytes(40_000_000);
    let sent = content.len() * 2 / 5;
    let (redis, files) = (RedisServer::start().await, tempfile::tempdir().unwrap());
    let files = format!("file://{}", files.path().display());
    let redis = redis.url();
    for arguments in [&["--store", &*files][..], &["--migrate", "--store", &redis]] {
        let mut first = server(arguments).await;
        let upload = begin(&resource(&first.url, "x:big"), content.len()).await;
        let address = first.address().to_owned();
        let _connection = send_part(&address, &upload, content.len(), &content[..sent]).await;
        // A whole part is stored when a crash comes.
        eventually("a part is stored", async || offset(&upload).await.is_some_and(|n| n > 0)).await;
        first.kill().await;
        let other = server(arguments).await;
        let upload = upload.replace(&address, other.address());
        let found = offset(&upload).await.unwrap();
        assert!(found > 0 && found <= sent, "{found}");
        let created = append(&upload, found, "?1", &content[found..]).await;
        let entry: Value = serde_json::from_slice(&created.body).unwrap();
        assert_eq!(entry["sha256"], hex(&content), "{created:?}");
    }
}

#[tokio::test]
async fn another_instance_continues_what_a_cut_connection_left() {
    let content = bytes(3_000_000);
    let redis = RedisServer::start().await;
    let url = redis.url();
    let (one, other) =
        (server(&["--migrate", "--store", &url]).await, server(&["--store", &url]).await);
    let upload = begin(&resource(&one.url, "x:big"), content.len()).await;
    let sent = &content[..1_000_000];
    drop(send_part(one.address(), &upload, content.len(), sent).await);
    let there = upload.replace(one.address(), other.address());
    // What came before the cut is kept, less than a part.
    let is_kept = async || offset(&there).await == Some(sent.len());
    eventually("what was sent to be kept", is_kept).await;
    let created = append(&there, sent.len(), "?1", &content[sent.len()..]).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert!(get(&resource(&one.url, "x:big"), &[]).await.body == content);
}

#[tokio::test]
async fn abandoned_uploads_vanish() {
    let server = Server::configured(|setup| setup.config.content.upload_ttl = 60).await;
    let upload = begin(&resource(&server.url, "x:big"), 100).await;
    assert_eq!(append(&upload, 0, "?0", b"a part").await.status, 204);
    server.clock.advance(Duration::from_secs(59));
    assert_eq!(offset(&upload).await, Some(6));
    server.clock.advance(Duration::from_secs(1));
    let (status, detail) = problem(&append(&upload, 6, "?1", b"rest").await);
    assert_eq!((status, detail.contains("begin it again")), (404, true), "{detail}");
}

#[tokio::test]
async fn what_does_not_match_is_refused() {
    let server = Server::start().await;
    let upload = begin(&resource(&server.url, "x:1"), 10).await;
    let headers = [("upload-offset", "0"), ("upload-complete", "?1"), ("content-type", "text/csv")];
    let wrong_type = Answer::of(request(Method::PATCH, &upload, &headers).body("x")).await;
    assert_eq!(problem(&wrong_type).0, 415);
    for (complete, part) in [("?1", "nine byte"), ("?1", "eleven byte"), ("?0", "eleven byte")] {
        let refused = append(&upload, 0, complete, part.as_bytes()).await;
        let document: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!(refused.status, 400, "{document}");
        assert!(document["type"].as_str().unwrap().ends_with("#inconsistent-upload-length"));
    }
    for path in ["7%2Fx", "..", "unknown", "a%20b"] {
        let other = format!("{}/{path}", server.url.replace("/mcp", "/resources/uploads"));
        assert_eq!(Answer::of(request(Method::HEAD, &other, &[])).await.status, 404, "{path}");
    }
    assert_eq!(append(&upload, 0, "?1", b"ten bytes.").await.status, 201);
}

#[tokio::test]
async fn tus_js_client_finishes_over_a_network_that_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let (file, content) = (folder.path().join("large.bin"), bytes(20_000_000));
    std::fs::write(&file, &content).unwrap();
    let server = server(&[]).await;
    let proxy = dropping_proxy(server.address(), 3, 2_000_000).await;
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/content");
    assert!(package.join("node_modules").exists(), "run make test, or npm ci in {package:?}");
    let mut command = Command::new("node");
    command.arg(package.join("upload.mjs")).arg(format!("http://{proxy}/resources"));
    command.arg(&file).arg("x:tus").kill_on_drop(true);
    let output = patiently("tus-js-client", command.output()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(get(&resource(&server.url, "x:tus"), &[]).await.body == content);
}

#[tokio::test]
async fn tus_is_a_dialect() {
    let server = Server::start().await;
    let base = server.url.replace("/mcp", "/resources");
    let options = Answer::of(request(Method::OPTIONS, &base, &[])).await;
    assert_eq!((options.status, options.header("tus-version")), (204, Some("1.0.0")));
    let tus = ("tus-resumable", "1.0.0");
    // `x:tus`, `Größe.csv`, `text/csv`.
    let metadata = "uri eDp0dXM=,filename R3LDtsOfZS5jc3Y=,filetype dGV4dC9jc3Y=";
    let headers = [tus, ("upload-length", "8"), ("upload-metadata", metadata)];
    let begun = Answer::of(request(Method::POST, &base, &headers)).await;
    assert_eq!((begun.status, begun.header("tus-resumable")), (201, Some("1.0.0")), "{begun:?}");
    assert!(begun.header("upload-expires").unwrap().ends_with(" GMT"));
    let upload = location(&base, &begun);
    for (offset, part, after) in [("0", "a,b\n", "4"), ("4", "1,2\n", "8")] {
        let part_type = ("content-type", "application/offset+octet-stream");
        let headers = [tus, part_type, ("upload-offset", offset)];
        let appended = Answer::of(request(Method::PATCH, &upload, &headers).body(part)).await;
        assert_eq!((appended.status, appended.header("upload-offset")), (204, Some(after)));
    }
    let head = Answer::of(request(Method::HEAD, &upload, &[tus])).await;
    assert_eq!((head.status, head.header("upload-length")), (200, Some("8")));
    let found = get(&resource(&server.url, "x:tus"), &[]).await;
    assert_eq!(found.body, "a,b\n1,2\n".as_bytes());
    assert_eq!(found.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(found.header("content-disposition").unwrap().contains("Gr%C3%B6%C3%9Fe.csv"));
    let other = Answer::of(request(Method::HEAD, &upload, &[("tus-resumable", "0.2")])).await;
    assert_eq!(other.status, 412);
}
