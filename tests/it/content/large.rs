//! Transfers of a gibibyte: the memory of the server does not grow with the content. They take
//! minutes, so only `make test-large` runs them.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use super::{
    generated::{Generated, memory, never, reset_peak},
    get, hex_of, request, resource,
};
use crate::support::{
    Answer, RedisServer, S3Server, dropping_proxy, free_port,
    process::{Process, larder},
};

const GIBIBYTE: u64 = 1 << 30;

/// How long a transfer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The memory that a PUT and a GET of any size may use.
const MAX_PUT: u64 = 96 << 20;
const MAX_GET: u64 = 64 << 20;

/// A server whose owners may store `quota` bytes.
async fn server(arguments: &[&str], environment: &[(&str, &str)], quota: u64) -> Process {
    server_at("127.0.0.1:0", arguments, environment, quota).await
}

async fn server_at(
    listen: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
    quota: u64,
) -> Process {
    let mut command = larder(&["serve"]);
    let quota = quota.to_string();
    for name in ["OBJECTS__BYTES", "REDIS__BYTES", "MEMORY__BYTES"] {
        command.env(format!("LARDER_{name}_PER_OWNER"), &quota);
    }
    command.env("LARDER_MEMORY__BYTES", &quota);
    command.args(arguments).envs(environment.iter().copied());
    Process::start_at(command, listen).await
}

/// Stores content, reads it back, and checks the peak memory of both. `held` is the memory that
/// the backend needs for the content itself.
async fn stored_and_read(server: &Process, content: &Generated, held: u64) {
    let (url, other) = (resource(&server.url, "x:big"), resource(&server.url, "x:other"));
    let digest = content.sha256();
    let put = async |url: &str, body| {
        let length = content.len().to_string();
        let content_digest = format!("sha-256=:{}:", BASE64_STANDARD.encode(unhex(&digest)));
        let headers = [("content-length", &*length), ("content-digest", &*content_digest)];
        let sent = request(Method::PUT, url, &headers).body(body).timeout(PATIENCE).send();
        let response = sent.await.unwrap();
        (response.status().as_u16(), response.bytes().await.unwrap())
    };
    // What the server allocates once is not counted.
    let small = vec![1_u8; 1 << 20];
    assert_eq!(Answer::of(request(Method::PUT, &other, &[]).body(small)).await.status, 201);
    assert_eq!(get(&other, &[]).await.status, 200);
    reset_peak(server);
    let before = memory(server, "VmRSS:");
    let (status, created) = put(&url, content.body()).await;
    let entry: Value = serde_json::from_slice(&created).unwrap();
    assert_eq!((status, &entry["sha256"]), (201, &Value::from(&*digest)), "{entry}");
    let grown = memory(server, "VmHWM:").saturating_sub(before);
    assert!(grown <= held + MAX_PUT, "memory grew by {grown} bytes");
    // As much again is refused before it arrives.
    assert_eq!(put(&other, never()).await.0, 507);
    reset_peak(server);
    let before = memory(server, "VmRSS:");
    let response = request(Method::GET, &url, &[]).timeout(PATIENCE).send().await.unwrap();
    let (mut pieces, mut hash) = (response.bytes_stream(), Sha256::new());
    while let Some(piece) = pieces.next().await {
        hash.update(piece.unwrap());
    }
    assert_eq!(hex_of(&hash.finalize()), digest);
    let grown = memory(server, "VmHWM:").saturating_sub(before);
    assert!(grown <= MAX_GET, "memory grew by {grown} bytes");
}

fn unhex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Room for the content once, not twice.
fn quota(content: &Generated) -> u64 {
    content.len() * 3 / 2
}

#[tokio::test]
#[ignore = "make test-large"]
async fn a_gibibyte_in_files() {
    let (content, folder) = (Generated::of(GIBIBYTE), tempfile::tempdir().unwrap());
    let url = format!("file://{}", folder.path().display());
    stored_and_read(&server(&["--store", &url], &[], quota(&content)).await, &content, 0).await;
}

#[tokio::test]
#[ignore = "make test-large"]
async fn a_gibibyte_in_memory() {
    let content = Generated::of(GIBIBYTE);
    let server = server(&[], &[], quota(&content)).await;
    stored_and_read(&server, &content, content.len()).await;
}

#[tokio::test]
#[ignore = "make test-large"]
async fn a_gibibyte_in_redis_with_blobs_in_files() {
    let (content, blobs) = (Generated::of(GIBIBYTE), tempfile::tempdir().unwrap());
    let (redis, blobs) = (RedisServer::start().await, format!("file://{}", blobs.path().display()));
    let (url, environment) = (redis.url(), [("LARDER_STORE__BLOBS", &*blobs)]);
    let server = server(&["--migrate", "--store", &url], &environment, quota(&content)).await;
    stored_and_read(&server, &content, 0).await;
}

#[tokio::test]
#[ignore = "make test-large"]
async fn a_gibibyte_in_redis() {
    let (content, redis) = (Generated::of(GIBIBYTE), RedisServer::start().await);
    let url = redis.url();
    let server = server(&["--migrate", "--store", &url], &[], quota(&content)).await;
    stored_and_read(&server, &content, 0).await;
}

/// The server of the tests holds its objects in memory.
#[tokio::test]
#[ignore = "make test-large"]
async fn a_quarter_of_a_gibibyte_in_s3() {
    let (content, s3) = (Generated::of(GIBIBYTE / 4), S3Server::shared().await);
    let environment = s3.environment();
    let environment: Vec<_> = environment.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let arguments = ["--store", &S3Server::url("test-large")];
    let server = server(&arguments, &environment, quota(&content)).await;
    stored_and_read(&server, &content, 0).await;
}

#[tokio::test]
#[ignore = "make test-large"]
async fn put_and_cat_of_a_gibibyte_continue_after_cuts_and_a_killed_server() {
    let (content, folder) = (Generated::of(GIBIBYTE), tempfile::tempdir().unwrap());
    let file = folder.path().join("large.bin");
    content.write_to(&file);
    let sha256 = content.sha256();
    let store = format!("file://{}/store", folder.path().display());
    let listen = format!("127.0.0.1:{}", free_port());
    let start = async || server_at(&listen, &["--store", &store], &[], quota(&content)).await;
    let mut first = start().await;
    let proxy = dropping_proxy(&listen, 2, 200_000_000).await;
    let url = format!("http://{proxy}/mcp");
    let put = larder(&["put", file.to_str().unwrap(), "--uri", "x:large", "--server", &url]);
    let putting = tokio::spawn(async move { { put }.output().await.unwrap() });
    let stored = folder.path().join("store");
    while size_of(&stored) < GIBIBYTE / 2 {
        assert!(!putting.is_finished(), "the upload has ended before the server is killed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.kill().await;
    let second = start().await;
    let output = tokio::time::timeout(PATIENCE, putting).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"x:large\n");
    let described = get(&resource(&second.url, "x:large"), &[("range", "bytes=0-0")]).await;
    let digest = BASE64_STANDARD.encode(unhex(&sha256));
    assert_eq!(described.header("repr-digest"), Some(&*format!("sha-256=:{digest}:")));
    let proxy = dropping_proxy(&listen, 3, 200_000_000).await;
    let mut cat = larder(&["cat", "x:large", "--server", &format!("http://{proxy}/mcp")]);
    let mut cat = cat.spawn().unwrap();
    let (mut read, mut hash, mut buffer) =
        (cat.stdout.take().unwrap(), Sha256::new(), vec![0; 1 << 18]);
    while let Ok(bytes @ 1..) = read.read(&mut buffer).await {
        hash.update(&buffer[..bytes]);
    }
    assert!(cat.wait().await.unwrap().success());
    assert_eq!(hex_of(&hash.finalize()), sha256);
}

/// The bytes of all files below a folder.
fn size_of(folder: &std::path::Path) -> u64 {
    let Ok(files) = std::fs::read_dir(folder) else { return 0 };
    let sizes = files.flatten().map(|file| match file.metadata() {
        Ok(found) if found.is_dir() => size_of(&file.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
