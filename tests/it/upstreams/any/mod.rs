//! Upstreams that send anything: over stdio (`tests/upstreams/any.mjs`), and over HTTP as one JSON
//! message or as a stream of events.

mod anything;
mod errors;
mod noise;
mod shapes;
mod sizes;
mod steps;

use std::convert::Infallible;

use axum::{
    Router,
    body::{Body, Bytes},
    http::StatusCode,
    response::Response,
    routing,
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{FOLDER, http::remote, in_front_of};
use crate::support::{Answer, Legacy, Server};

/// How the answers of an upstream travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    Json,
    Events,
}

const WAYS: [Way; 3] = [Way::Stdio, Way::Json, Way::Events];

/// The answers that a test has chosen for whole methods.
type Chosen = Vec<(&'static str, Vec<u8>)>;

/// A server in front of an upstream that answers with any bytes, and a client of it.
struct Any {
    client: Legacy,
    _server: Server,
}

impl Any {
    async fn by(way: Way) -> Self {
        Self::choosing(way, Vec::new()).await
    }

    async fn choosing(way: Way, chosen: Chosen) -> Self {
        let server = in_front_of(vec![upstream(way, chosen).await]).await;
        Self { client: Legacy::of(&server).await, _server: server }
    }

    /// The answer to a call at which the upstream sends these bytes.
    async fn call(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let bytes = BASE64_STANDARD.encode(bytes);
        self.client.call("say", json!({ "bytes": bytes })).await
    }

    async fn read(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let uri = format!("any://{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
        self.client.send("resources/read", json!({ "uri": uri })).await
    }

    async fn prompt(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let arguments = json!({ "bytes": BASE64_STANDARD.encode(bytes) });
        self.client.send("prompts/get", json!({ "name": "say", "arguments": arguments })).await
    }

    async fn complete(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let argument = json!({ "name": "bytes", "value": BASE64_STANDARD.encode(bytes) });
        let reference = json!({ "type": "ref/prompt", "name": "say" });
        let params = json!({ "ref": reference, "argument": argument });
        self.client.send("completion/complete", params).await
    }
}

async fn upstream(way: Way, chosen: Chosen) -> Settings {
    if way != Way::Stdio {
        return remote("any", &listening(way, chosen).await);
    }
    let mut line = vec!["node".to_owned(), format!("{FOLDER}/any.mjs")];
    line.extend(
        chosen
            .iter()
            .map(|(method, bytes)| format!("--{method}={}", BASE64_STANDARD.encode(bytes))),
    );
    Settings::new("any", line)
}

/// The URL of an upstream over HTTP that does what `any.mjs` does.
async fn listening(way: Way, chosen: Chosen) -> String {
    let answer = move |body: Bytes| {
        let answered = answered(way, &chosen, &body);
        async move { Ok::<_, Infallible>(answered) }
    };
    let router = Router::new().route("/mcp", routing::post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

fn answered(way: Way, chosen: &Chosen, body: &[u8]) -> Response {
    let request: Value = serde_json::from_slice(body).unwrap();
    let (Some(id), Some(method)) = (request.get("id"), request["method"].as_str()) else {
        return status(202, Vec::new());
    };
    let bytes = chosen.iter().find(|(name, _)| *name == method).map(|(_, bytes)| bytes.clone());
    let bytes = match bytes.or_else(|| brought(method, &request["params"])) {
        Some(bytes) => with_id(&bytes, &id.to_string()),
        None => usual(method, id).to_string().into_bytes(),
    };
    framed(way, bytes)
}

/// The response over HTTP with these messages, one a line.
fn framed(way: Way, bytes: Vec<u8>) -> Response {
    match way {
        Way::Events => {
            let mut stream = Vec::new();
            for line in bytes.split(|byte| *byte == b'\n') {
                stream.extend_from_slice(&[b"data: ", line, b"\n\n"].concat());
            }
            let response = Response::builder().header("content-type", "text/event-stream");
            response.body(Body::from(stream)).unwrap()
        }
        Way::Stdio | Way::Json => {
            let response = Response::builder().header("content-type", "application/json");
            response.body(Body::from(bytes)).unwrap()
        }
    }
}

fn status(code: u16, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// The bytes that a request brings for its answer.
fn brought(method: &str, params: &Value) -> Option<Vec<u8>> {
    let text = match method {
        "tools/call" | "prompts/get" => params["arguments"]["bytes"].as_str(),
        "completion/complete" => params["argument"]["value"].as_str(),
        "resources/read" => {
            let bytes = params["uri"].as_str()?.strip_prefix("any://")?;
            return BASE64_URL_SAFE_NO_PAD.decode(bytes).ok();
        }
        _ => None,
    };
    BASE64_STANDARD.decode(text?).ok()
}

fn usual(method: &str, id: &Value) -> Value {
    let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {} });
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": { "name": "any", "version": "1" },
        }),
        "ping" => json!({}),
        "tools/list" => {
            json!({ "tools": [{ "name": "say", "inputSchema": { "type": "object" } }] })
        }
        "prompts/list" => {
            json!({ "prompts": [{ "name": "say", "arguments": [{ "name": "bytes" }] }] })
        }
        "resources/list" => json!({ "resources": [{ "uri": "any://none", "name": "none" }] }),
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": "any://{bytes}", "name": "any" }] })
        }
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return json!({ "jsonrpc": "2.0", "id": id, "error": error });
        }
    };
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The bytes with the id of the request for each `$ID`.
fn with_id(bytes: &[u8], id: &str) -> Vec<u8> {
    let mut filled = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(3).position(|part| part == b"$ID") {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(id.as_bytes());
        rest = &rest[at + 3..];
    }
    filled.extend_from_slice(rest);
    filled
}

/// A response with this member, which is JSON.
fn response(member: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$ID,{member}}}"#)
}

/// A response with this result.
fn result(result: &str) -> String {
    response(&format!(r#""result":{result}"#))
}
