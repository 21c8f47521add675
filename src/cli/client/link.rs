//! One request, one answer.

use std::time::Duration;

use futures_util::Stream;
use reqwest::{Body, StatusCode};
use serde_json::{Value, json};

use super::{ClientError, HERE, ServerArgs};

/// The way to a server.
pub(in crate::cli) struct Link {
    client: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// What a tool answered.
pub(in crate::cli) struct Told {
    /// The first block of text, which the service's tools make for programs
    /// where there are several.
    pub(super) first: String,
    /// All blocks of text, a line break after each.
    pub(super) text: String,
    /// The whole result.
    pub(in crate::cli) result: Value,
}

impl Link {
    pub(in crate::cli) fn new(args: ServerArgs) -> Result<Self, ClientError> {
        let ServerArgs { server: url, token, ca } = args;
        // As with all variables, an empty one says nothing.
        let url = if url.is_empty() { HERE.to_owned() } else { url };
        let token = token.filter(|token| !token.is_empty());
        let usage = |problem: &dyn std::fmt::Display| ClientError::Usage(problem.to_string());
        let parsed = reqwest::Url::parse(&url).map_err(|e| usage(&format!("{url}: {e}")))?;
        let mut builder = reqwest::Client::builder().connect_timeout(Duration::from_secs(10));
        // Whatever the environment says of proxies, none leads to this machine.
        if matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            builder = builder.no_proxy();
        }
        if let Some(file) = ca {
            let name = file.display().to_string();
            let pem = std::fs::read(&file).map_err(|e| ClientError::local(&name, &e))?;
            let authority = reqwest::Certificate::from_pem(&pem).map_err(|e| usage(&e))?;
            builder = builder.tls_certs_merge([authority]);
        }
        let client = builder.build().map_err(|e| usage(&e))?;
        Ok(Self { client, url, token })
    }

    /// Calls a tool.
    pub(in crate::cli) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<Told, ClientError> {
        let params = json!({ "name": tool, "arguments": arguments });
        told(self.request("tools/call", &params).await?)
    }

    /// Calls a tool with a body that is made while it is sent.
    pub(super) async fn call_streaming(
        &self,
        body: impl Stream<Item = Result<bytes::Bytes, ClientError>> + Send + 'static,
    ) -> Result<Told, ClientError> {
        told(self.send(Body::wrap_stream(body)).await?)
    }

    /// The result of a request.
    pub(in crate::cli) async fn request(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Value, ClientError> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(request.to_string().into()).await
    }

    async fn send(&self, body: Body) -> Result<Value, ClientError> {
        let request = self.client.post(&self.url).body(body);
        let request = request.header("content-type", "application/json");
        let mut request = request.header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        let mut message: Value = serde_json::from_slice(&body).unwrap_or_default();
        if let Some(text) = message["error"]["message"].as_str() {
            let text = text.to_owned();
            return Err(match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ClientError::Denied(text),
                _ => ClientError::Failed(text),
            });
        }
        match message.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(ClientError::Unreachable(format!(
                "{} answers with {status}, and not as an MCP server does.",
                self.url
            ))),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        // The innermost cause says most: "connection refused", or what could
        // not be read of a file that was being sent.
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            if let Some(ClientError::Usage(problem)) = source.downcast_ref() {
                return ClientError::Usage(problem.clone());
            }
            cause = source;
        }
        ClientError::Unreachable(format!("{}: {cause}", self.url))
    }
}

fn told(result: Value) -> Result<Told, ClientError> {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let first = texts.first().copied().unwrap_or_default().to_owned();
    let text = texts.join("\n");
    if result["isError"] == true {
        return Err(ClientError::Failed(text));
    }
    Ok(Told { first, text, result })
}

/// The arguments of the call that an answer says goes on with it, if it is not
/// complete.
pub(super) fn next(head: &str, tool: &str) -> Option<Value> {
    let (_, rest) = head.split_once(&format!("next: {tool} "))?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}
