//! A server with tools to test it by, and the clients that call it.

mod answer;
mod certificates;
mod events;
mod legacy;
mod modern;
mod raw;
mod redis_access;
mod server;
mod stage;
mod tools;

use std::time::Duration;

pub(crate) use answer::Answer;
pub(crate) use certificates::{Certificates, TRUSTED};
pub(crate) use events::{Events, messages};
pub(crate) use larder::testing::{RedisServer, S3Server, free_port};
pub(crate) use legacy::Legacy;
pub(crate) use modern::Modern;
pub(crate) use raw::{Raw, RawAnswer};
pub(crate) use redis_access::{LOGIN, admit, encrypted};
pub(crate) use server::Server;
pub(crate) use stage::{Beat, Stage};
pub(crate) use tools::{Ctx, numbered_lines, registry};

/// Waits, but not for ever: a test that would hang says for what.
pub(crate) async fn patiently<F: Future>(what: &str, wait: F) -> F::Output {
    let waited = tokio::time::timeout(Duration::from_secs(30), wait).await;
    waited.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// A client that goes straight to the server, whatever the environment says of proxies.
pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The same with a token on each request.
pub(crate) fn http_bearing(token: &str) -> reqwest::Client {
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").try_into().unwrap());
    reqwest::Client::builder().no_proxy().default_headers(headers).build().unwrap()
}
