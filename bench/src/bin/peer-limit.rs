//! The limit: an axum handler that reads one struct and writes another. It checks
//! nothing and implements no protocol.

use axum::{Json, Router, routing::post};
use larder_bench::large;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Request {
    id: u64,
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Deserialize, Default)]
struct Params {
    #[serde(default)]
    arguments: Arguments,
}

#[derive(Deserialize, Default)]
struct Arguments {
    #[serde(default)]
    text: String,
}

#[derive(Serialize)]
struct Response {
    jsonrpc: &'static str,
    id: u64,
    result: Outcome,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    Tool { content: [Text; 1] },
    Resource { contents: [Contents; 1] },
}

#[derive(Serialize)]
struct Text {
    r#type: &'static str,
    text: String,
}

#[derive(Serialize)]
struct Contents {
    uri: &'static str,
    text: &'static str,
}

async fn respond(Json(request): Json<Request>) -> Json<Response> {
    let result = if request.method == "resources/read" {
        Outcome::Resource { contents: [Contents { uri: "bench://large", text: large() }] }
    } else {
        Outcome::Tool { content: [Text { r#type: "text", text: request.params.arguments.text }] }
    };
    Json(Response { jsonrpc: "2.0", id: request.id, result })
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = larder_bench::listen("limit").await?;
    let router = Router::new().route("/mcp", post(respond));
    axum::serve(listener, router).await
}
