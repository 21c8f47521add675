//! Requests to a server, each answered by one JSON response.

use std::time::Duration;

use futures_util::Stream;
use larder_gateway::Settings;
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::{Value, json};

use super::{ClientError, DEFAULT_URL, ServerArgs};

/// A client of one server. It needs no session.
pub(in crate::cli) struct McpClient {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// A tool's result.
pub(in crate::cli) struct ToolOutput {
    /// The first block of text: the part for programs, in the results of
    /// Larder's tools that have several.
    pub(super) first: String,
    /// All blocks of text, joined by line feeds.
    pub(super) text: String,
    /// The complete result.
    pub(in crate::cli) result: Value,
}

impl McpClient {
    pub(in crate::cli) fn new(args: ServerArgs) -> Result<Self, ClientError> {
        let ServerArgs { server: url, token, ca } = args;
        // An empty environment variable counts as unset.
        let url = if url.is_empty() { DEFAULT_URL.to_owned() } else { url };
        let token = token.filter(|token| !token.is_empty());

        let usage = |problem: &dyn std::fmt::Display| ClientError::Usage(problem.to_string());
        let parsed = reqwest::Url::parse(&url).map_err(|e| usage(&format!("{url}: {e}")))?;
        let mut builder = reqwest::Client::builder().connect_timeout(Duration::from_secs(10));
        // No proxy can reach this machine's own addresses.
        if matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            builder = builder.no_proxy();
        }

        if let Some(file) = ca {
            let name = file.display().to_string();
            let pem = std::fs::read(&file).map_err(|e| ClientError::local(&name, &e))?;
            let authority = reqwest::Certificate::from_pem(&pem).map_err(|e| usage(&e))?;
            builder = builder.tls_certs_merge([authority]);
        }

        let http = builder.build().map_err(|e| usage(&e))?;
        Ok(Self { http, url, token })
    }

    /// Calls a tool.
    pub(in crate::cli) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolOutput, ClientError> {
        let params = json!({ "name": tool, "arguments": arguments });
        tool_output(self.request("tools/call", &params).await?)
    }

    /// Sends a `tools/call` request whose body is made while it is sent.
    pub(super) async fn call_streaming(
        &self,
        body: impl Stream<Item = Result<bytes::Bytes, ClientError>> + Send + 'static,
    ) -> Result<ToolOutput, ClientError> {
        tool_output(self.send(Body::wrap_stream(body)).await?)
    }

    /// Sends a request and returns its result.
    pub(in crate::cli) async fn request(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Value, ClientError> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(request.to_string().into()).await
    }

    /// The URL of a path beside the endpoint's.
    pub(super) fn beside(&self, reference: &str) -> Result<Url, ClientError> {
        let url = Url::parse(&self.url).and_then(|url| url.join(reference));
        url.map_err(|error| ClientError::Usage(format!("{}: {error}", self.url)))
    }

    /// A request with the caller's token.
    pub(super) fn with_token(&self, verb: Method, url: Url) -> RequestBuilder {
        let request = self.http.request(verb, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request, whatever the status of the response.
    pub(super) async fn send_raw(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        request.send().await.map_err(|error| self.unreachable(&error))
    }

    /// The caller's login at an upstream: asks for it, begins or ends it.
    pub(super) async fn account(&self, upstream: &str, verb: Method) -> Result<Value, ClientError> {
        let unknown =
            || ClientError::Failed(format!("The server has no upstream {upstream} with a login."));

        // A name with other characters could change the path of the URL.
        if !Settings::is_name(upstream) {
            return Err(unknown());
        }

        let url = format!("{}/upstreams/{upstream}/account", self.url.trim_end_matches('/'));
        let (status, message) = self.exchange(self.http.request(verb, url)).await?;
        if status.is_success() {
            return Ok(message);
        }

        Err(match status {
            StatusCode::NOT_FOUND => unknown(),
            _ => ClientError::unexpected_reply(),
        })
    }

    async fn send(&self, body: Body) -> Result<Value, ClientError> {
        let request = self.http.post(&self.url).body(body);
        let request = request.header("content-type", "application/json");
        let (status, mut message) = self.exchange(request).await?;

        match message.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(ClientError::Unreachable(format!(
                "{} answers with {status}, but not as an MCP server does.",
                self.url
            ))),
        }
    }

    /// Sends a request with the caller's token, and reads the JSON of the response. An error
    /// of the server is an error.
    async fn exchange(&self, request: RequestBuilder) -> Result<(StatusCode, Value), ClientError> {
        let mut request = request.header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }

        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();

        if let Some(text) = message["error"]["message"].as_str() {
            let text = text.to_owned();
            return Err(match status {
                StatusCode::NOT_FOUND if text.starts_with("Not found. The MCP endpoint") => {
                    return Ok((status, message));
                }
                // An MCP endpoint accepts POST.
                StatusCode::METHOD_NOT_ALLOWED => return Ok((status, message)),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ClientError::Denied(text),
                _ => ClientError::Failed(text),
            });
        }

        Ok((status, message))
    }

    pub(super) fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        // The innermost cause is the most useful one: "connection refused", or
        // what failed while a local file was read and sent.
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

fn tool_output(result: Value) -> Result<ToolOutput, ClientError> {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let first = texts.first().copied().unwrap_or_default().to_owned();
    let text = texts.join("\n");
    if result["isError"] == true {
        return Err(ClientError::Failed(text));
    }
    Ok(ToolOutput { first, text, result })
}

/// The arguments of the next call of that tool that an incomplete result names
/// in its head: `next: TOOL ARGUMENTS`.
pub(super) fn next_call(head: &str, tool: &str) -> Option<Value> {
    let (_, rest) = head.split_once(&format!("next: {tool} "))?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}
