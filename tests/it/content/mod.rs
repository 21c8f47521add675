//! Stored content over HTTP, without MCP.

mod browser;
mod downloads;
#[cfg(target_os = "linux")]
mod generated;
mod interrupted;
#[cfg(target_os = "linux")]
mod large;
mod link_quota;
mod once;
mod resources;
mod resumable;
mod upload_links;
mod uploads;

use std::{fmt::Write, sync::Arc};

use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{Answer, RedisServer, S3Server, http, process::Process, process::serving_in};

/// A server in a process of its own, and what it stores its resources in.
pub(crate) struct Stored {
    pub(crate) server: Process,
    pub(crate) backend: &'static str,
    _folder: tempfile::TempDir,
    /// What runs as long as the server uses it.
    _service: Service,
}

enum Service {
    None,
    Redis { _server: RedisServer },
    S3 { _server: Arc<S3Server> },
}

/// A server for each backend.
pub(crate) async fn each_backend() -> [Stored; 4] {
    let folder = || tempfile::tempdir().unwrap();
    let stored = async |backend, store: &[&str], environment: &[(&str, &str)], folder, service| {
        let (server, _) = serving_in(store, environment).await;
        Stored { server, backend, _folder: folder, _service: service }
    };
    let memory = stored("memory", &[], &[], folder(), Service::None).await;
    let files = folder();
    let url = format!("file://{}", files.path().display());
    let files = stored("files", &["--store", &url], &[], files, Service::None).await;
    let redis = RedisServer::start().await;
    let url = redis.url();
    let service = Service::Redis { _server: redis };
    let redis = stored("redis", &["--migrate", "--store", &url], &[], folder(), service).await;
    let (s3, unique) = (S3Server::shared().await, folder());
    // The name of a temporary folder is a unique prefix.
    let prefix = unique.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
    let environment = s3.environment();
    let environment: Vec<_> = environment.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let url = S3Server::url(prefix);
    let service = Service::S3 { _server: Arc::clone(&s3) };
    let s3 = stored("s3", &["--store", &url], &environment, unique, service).await;
    [memory, files, redis, s3]
}

/// The URL of a resource, from that of the MCP endpoint.
pub(crate) fn resource(endpoint: &str, uri: &str) -> String {
    let base = endpoint.strip_suffix("/mcp").unwrap();
    let mut url = reqwest::Url::parse(&format!("{base}/resources")).unwrap();
    url.query_pairs_mut().append_pair("uri", uri);
    url.to_string()
}

pub(crate) fn request(method: Method, url: &str, headers: &[(&str, &str)]) -> RequestBuilder {
    headers
        .iter()
        .fold(http().request(method, url), |request, (name, value)| request.header(*name, *value))
}

pub(crate) async fn get(url: &str, headers: &[(&str, &str)]) -> Answer {
    Answer::of(request(Method::GET, url, headers)).await
}

/// The status of a problem document, and its text.
#[track_caller]
pub(crate) fn problem(answer: &Answer) -> (u16, String) {
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(problem["status"], answer.status, "{problem}");
    assert_eq!(problem["type"], "about:blank");
    (answer.status, problem["detail"].as_str().unwrap().to_owned())
}

/// The SHA-256 of content.
pub(crate) fn hex(content: &[u8]) -> String {
    hex_of(&Sha256::digest(content))
}

fn hex_of(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}
