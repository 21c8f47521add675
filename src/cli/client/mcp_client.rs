//! Requests to a server, each answered by one JSON response.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures_util::Stream;
use larder_gateway::Settings;
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode, Url, header::HeaderMap};
use serde_json::{Value, json};

use super::{ClientError, ServerArgs, endpoint::Endpoint, logins::stored_token, look, person};

/// A client of one server. It needs no session.
pub(in crate::cli) struct McpClient {
    http: reqwest::Client,
    endpoint: Endpoint,
    token: Option<String>,
    /// Whether it trusts certificates of the command line.
    has_ca: bool,
    /// The most bytes of a response.
    max_body: usize,
}

/// A tool's result.
pub(in crate::cli) struct ToolOutput {
    /// The first block of text: the part for programs, in the results of
    /// Larder's tools that have several.
    pub(super) first: String,
    /// All blocks of text, joined by line feeds.
    pub(super) text: String,
    /// The complete result; `None` for one that the server has stored, of which only the text is
    /// known.
    result: Option<Value>,
    tool: String,
}

impl ToolOutput {
    /// The complete result.
    ///
    /// # Errors
    /// The server has stored it instead of sent.
    pub(in crate::cli) fn result(&self) -> Result<&Value, ClientError> {
        self.result.as_ref().ok_or_else(|| {
            let tool = &self.tool;
            ClientError::Failed(format!(
                "The server has stored the result of {tool}, and this command needs the result itself. The server's setting is tools.spill.{tool} = \"never\"."
            ))
        })
    }

    /// The structured content.
    ///
    /// # Errors
    /// As [`ToolOutput::result`].
    pub(in crate::cli) fn structured(&self) -> Result<&Value, ClientError> {
        Ok(&self.result()?["structuredContent"])
    }
}

/// The most bytes of a response.
const MAX_BODY: usize = 1 << 30;
/// The most bytes of a response that only shows what is wrong with a server.
const MAX_DIAGNOSIS: usize = 1 << 20;
/// How long such a response may take.
const DIAGNOSIS_PATIENCE: Duration = Duration::from_secs(10);

impl McpClient {
    /// A client with the token of the command line, or else that of this user's login.
    ///
    /// # Errors
    /// The URL or the file of certificates cannot be used.
    pub(in crate::cli) async fn new(args: ServerArgs) -> Result<Self, ClientError> {
        let endpoint = Endpoint::parse(&args.server).map_err(ClientError::Usage)?;
        Self::with(reqwest::Client::builder(), endpoint, &args).await
    }

    /// The problem of an MCP server that cannot be used, as a plain request shows it. `None` if it
    /// shows none.
    pub(in crate::cli) async fn diagnose(
        endpoint: &Endpoint,
        args: &ServerArgs,
        headers: &BTreeMap<String, String>,
    ) -> Option<ClientError> {
        let headers: HashMap<_, _> = headers.clone().into_iter().collect();
        let headers = HeaderMap::try_from(&headers).ok()?;
        let builder = reqwest::Client::builder().default_headers(headers);
        let mut client = Self::with(builder, endpoint.clone(), args).await.ok()?;
        client.max_body = MAX_DIAGNOSIS;

        let ping = json!({});
        let answered = client.request("ping", &ping);
        match tokio::time::timeout(DIAGNOSIS_PATIENCE, answered).await.ok()? {
            Err(error @ (ClientError::Unreachable(_) | ClientError::Denied(_))) => Some(error),
            Ok(_) | Err(_) => None,
        }
    }

    async fn with(
        builder: reqwest::ClientBuilder,
        endpoint: Endpoint,
        args: &ServerArgs,
    ) -> Result<Self, ClientError> {
        let token = match args.token() {
            Some(token) => Some(token.to_owned()),
            None => stored_token(&endpoint).await,
        };

        let mut builder = builder.connect_timeout(Duration::from_secs(10));
        // No proxy can reach this machine's own addresses.
        if endpoint.is_local() {
            builder = builder.no_proxy();
        }

        let tls = args.tls()?;
        let has_ca = tls.is_some();
        if let Some(tls) = tls {
            builder = builder.tls_backend_preconfigured(tls);
        }

        let http = builder.build().map_err(|error| ClientError::Usage(error.to_string()))?;
        Ok(Self { http, endpoint, token, has_ca, max_body: MAX_BODY })
    }

    /// Calls a tool.
    pub(in crate::cli) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolOutput, ClientError> {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.request("tools/call", &params).await?;
        match StoredResult::of(tool, &result) {
            Some(stored) => self.whole(stored, tool).await,
            None => tool_output(result, tool),
        }
    }

    /// Calls a tool of Larder. Its error is told to a person.
    pub(in crate::cli) async fn ask(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolOutput, ClientError> {
        self.call(tool, arguments).await.map_err(|error| match error {
            ClientError::Failed(text) => ClientError::Failed(person::told(&text)),
            other => other,
        })
    }

    /// A result that the server has stored instead of sent (tools.spill). The copy is of no use
    /// any more.
    async fn whole(
        &self,
        StoredResult { uri, size }: StoredResult<'_>,
        tool: &str,
    ) -> Result<ToolOutput, ClientError> {
        let params = json!({ "uri": uri });
        let read = self.request("resources/read", &params).await?;
        let text =
            read["contents"][0]["text"].as_str().ok_or_else(ClientError::unexpected_reply)?;

        // A server may return less at once. The copy is then all that there is.
        if size.is_some_and(|size| (text.len() as u64) < size) {
            return Err(ClientError::Failed(format!(
                "The server has stored the result of {tool} and returns only a part of it. Read it: larder cat {uri}"
            )));
        }

        let deletion = json!({ "name": "delete_resource", "arguments": params });
        // A server without tools that write keeps it until it expires.
        let _ = self.request("tools/call", &deletion).await;
        let first = text.to_owned();
        Ok(ToolOutput { first, text: text.to_owned(), result: None, tool: tool.to_owned() })
    }

    /// Sends a request to call `create_resource` whose body is made while it is sent.
    pub(super) async fn call_streaming(
        &self,
        body: impl Stream<Item = Result<bytes::Bytes, ClientError>> + Send + 'static,
    ) -> Result<ToolOutput, ClientError> {
        tool_output(self.send(Body::wrap_stream(body)).await?, "create_resource")
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
        let url = self.endpoint.url().join(reference);
        url.map_err(|error| ClientError::Usage(format!("{}: {error}", self.endpoint.shown())))
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

        let base = self.endpoint.url().as_str().trim_end_matches('/');
        let url = format!("{base}/upstreams/{upstream}/account");
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
        let request = self.http.post(self.endpoint.url().clone()).body(body);
        let request = request.header("content-type", "application/json");
        let (status, mut message) = self.exchange(request).await?;

        match message.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(ClientError::Unreachable(self.no_endpoint(status))),
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
        let body = self.body(response).await?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();

        if status == StatusCode::UNAUTHORIZED {
            return Err(ClientError::Denied(self.without_access(&message)));
        }
        if let Some(text) = message["error"]["message"].as_str() {
            let text = text.to_owned();
            return Err(match status {
                StatusCode::NOT_FOUND if text.starts_with("Not found. The MCP endpoint") => {
                    return Ok((status, message));
                }
                // An MCP endpoint accepts POST.
                StatusCode::METHOD_NOT_ALLOWED => return Ok((status, message)),
                StatusCode::FORBIDDEN => ClientError::Denied(text),
                _ => ClientError::Failed(text),
            });
        }

        Ok((status, message))
    }

    /// Reads the body of a response.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if body.len() + piece.len() > self.max_body {
                let most = look::bytes(self.max_body as u64);
                let url = self.endpoint.shown();
                return Err(ClientError::Unreachable(format!(
                    "{url} sends more than {most} in one answer."
                )));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The problem of a server that answers, but not as an MCP server.
    fn no_endpoint(&self, status: StatusCode) -> String {
        let url = self.endpoint.shown();
        match status {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                format!(
                    "{url} is not the endpoint of an MCP server ({status}). Larder's has the path /mcp."
                )
            }
            status => format!("{url} answers with {status}, but not as an MCP server does."),
        }
    }

    /// The advice for a person without access.
    pub(super) fn without_access(&self, message: &Value) -> String {
        let url = self.endpoint.shown();
        if self.token.is_none() {
            return person::no_login(&url);
        }

        let text = message["error"]["message"].as_str().or_else(|| message["detail"].as_str());
        let reason = text.and_then(|text| text.strip_prefix("The token is not accepted: "));
        if let Some(reason) = reason {
            return format!("{url} does not accept the token: {reason}");
        }
        format!("{url} does not accept the token. {}", text.unwrap_or_default())
            .trim_end()
            .to_owned()
    }

    pub(super) fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        person::unreachable(&self.endpoint, self.has_ca, error)
    }
}

/// The result of a tool that the server has stored instead of sent.
struct StoredResult<'a> {
    uri: &'a str,
    /// The size in bytes, if the server says it.
    size: Option<u64>,
}

impl<'a> StoredResult<'a> {
    /// The stored result, if it was stored. An error is never one.
    fn of(tool: &str, result: &'a Value) -> Option<Self> {
        let content = result["content"].as_array()?;
        let text = content.first()?["text"].as_str()?;
        let link = content.last().filter(|block| block["type"] == "resource_link")?;
        let uri = link["uri"].as_str()?;

        // The first line names the tool, and a line below it the URI.
        let names_tool = text.lines().next()?.contains(&format!("result of {tool}"));
        let is_stored = names_tool && text.contains(uri) && result["isError"] != true;
        is_stored.then(|| Self { uri, size: link["size"].as_u64() })
    }
}

fn tool_output(result: Value, tool: &str) -> Result<ToolOutput, ClientError> {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    let first = texts.first().copied().unwrap_or_default().to_owned();
    let text = texts.join("\n");
    if result["isError"] == true {
        return Err(ClientError::Failed(text));
    }
    Ok(ToolOutput { first, text, result: Some(result), tool: tool.to_owned() })
}

/// The arguments of the next call of that tool that an incomplete result names
/// in its head: `next: TOOL ARGUMENTS`.
pub(super) fn next_call(head: &str, tool: &str) -> Option<Value> {
    let (_, rest) = head.split_once(&format!("next: {tool} "))?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}
