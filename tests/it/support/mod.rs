//! A server with tools to test it by, the clients that call it, and the
//! processes that tests start.

mod answer;
mod certificates;
mod dropping_proxy;
mod events;
mod fixtures;
mod legacy;
mod modern;
pub(crate) mod process;
pub(crate) mod proxy;
mod raw;
mod redis_access;
mod server;
pub(crate) mod terminal;
mod tool_control;
mod tools;
mod waiting;

use std::sync::LazyLock;

use serde_json::{Value, json};

pub(crate) use answer::Answer;
pub(crate) use certificates::{Certificates, TRUSTED};
pub(crate) use dropping_proxy::{Network, dropping_proxy};
pub(crate) use events::{Events, messages};
pub(crate) use fixtures::{TextFile, files_below, noise, numbered_lines, sha256, two_callers};
pub(crate) use larder::testing::{RedisServer, S3Server, free_port};
pub(crate) use legacy::Legacy;
pub(crate) use modern::Modern;
pub(crate) use raw::{Raw, RawAnswer, UnfinishedForm};
pub(crate) use redis_access::{LOGIN, admit, encrypted};
pub(crate) use server::{Server, Setup, patient_config};
pub(crate) use tool_control::{ToolControl, ToolState};
pub(crate) use tools::{Ctx, registry};
pub(crate) use waiting::{eventually, patiently, poll};

/// The HTTP client of all tests: to build one takes about 20 ms. It ignores the
/// proxies of the environment, and opens a connection for each request, since
/// each test has its own runtime.
pub(crate) fn http() -> &'static reqwest::Client {
    static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
        reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
    });
    &HTTP
}

/// A POST of a JSON message with no other header than its media type, as curl
/// sends it.
pub(crate) fn post(url: &str, body: &Value) -> reqwest::RequestBuilder {
    http().post(url).header("content-type", "application/json").body(body.to_string())
}

/// The body of a request outside of sessions, without metadata.
pub(crate) fn request(method: &str, params: Value) -> Value {
    let mut request = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    request["params"] = params;
    request
}

/// Sends such a request. It is always answered with one JSON message.
pub(crate) async fn ask(url: &str, method: &str, params: Value) -> Answer {
    Answer::of(post(url, &request(method, params))).await
}

/// Sets the `Accept` header of a request that has one.
pub(crate) fn accepting(
    media_type: &'static str,
    request: reqwest::RequestBuilder,
) -> reqwest::RequestBuilder {
    let (client, request) = request.build_split();
    let mut request = request.unwrap();
    request.headers_mut().insert("accept", media_type.parse().unwrap());
    reqwest::RequestBuilder::from_parts(client, request)
}

/// Adds a bearer token to a request.
fn bearing(token: Option<&str>, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}
