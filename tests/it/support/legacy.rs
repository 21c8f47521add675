//! A client of 2025-03-26 to 2025-11-25, with a session.

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use super::{Answer, Events, Server, bearing, http, patiently};

#[derive(Clone)]
pub(crate) struct Legacy {
    url: String,
    token: Option<String>,
    pub(crate) session: String,
    pub(crate) version: String,
    /// The result of `initialize`.
    pub(crate) initialized: Value,
    /// Whether responses may come as a stream of events; see [`Answer::in_any_form`].
    any_form: bool,
}

impl Legacy {
    /// A session of 2025-11-25.
    pub(crate) async fn of(server: &Server) -> Self {
        Self::speaking(server, "2025-11-25").await
    }

    /// A session of the version that the server answers to this one.
    pub(crate) async fn speaking(server: &Server, version: &str) -> Self {
        Self::with(None, &server.url, &Self::initialize(version), false).await
    }

    /// A session with the server at a URL, which may be another process.
    pub(crate) async fn at_url(url: &str) -> Self {
        Self::begin(url, &Self::initialize("2025-11-25")).await
    }

    /// The same with another `initialize` request.
    pub(crate) async fn begin(url: &str, initialize: &Value) -> Self {
        Self::with(None, url, initialize, true).await
    }

    /// A session of a client with these capabilities.
    pub(crate) async fn able(server: &Server, capabilities: Value) -> Self {
        let mut body = Self::initialize("2025-11-25");
        body["params"]["capabilities"] = capabilities;
        Self::with(None, &server.url, &body, false).await
    }

    /// A session that begins with a bearer token.
    pub(crate) async fn bearing(server: &Server, token: &str) -> Self {
        let initialize = Self::initialize("2025-11-25");
        Self::with(Some(token.to_owned()), &server.url, &initialize, false).await
    }

    /// The same with the server at a URL, which may be another process.
    pub(crate) async fn bearing_at(url: &str, token: &str) -> Self {
        Self::with(Some(token.to_owned()), url, &Self::initialize("2025-11-25"), true).await
    }

    /// The same session with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    async fn with(token: Option<String>, url: &str, body: &Value, any_form: bool) -> Self {
        let request =
            bearing(token.as_deref(), http().post(url)).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let answer = Answer::of(request.body(body.to_string())).await;
        let answer = if any_form { answer.in_any_form() } else { answer };
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        let initialized = answer.result();
        let version = initialized["protocolVersion"].as_str().unwrap().to_owned();
        let url = url.to_owned();
        let client = Self { url, token, session, version, initialized, any_form };
        let taken = client.notify("notifications/initialized", json!({})).await;
        assert_eq!((taken.status, taken.body.len()), (202, 0));
        client
    }

    /// The same session at another URL.
    pub(crate) fn at(&self, url: &str) -> Self {
        Self { url: url.to_owned(), ..self.clone() }
    }

    pub(crate) fn initialize(version: &str) -> Value {
        json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": version, "capabilities": {},
                "clientInfo": { "name": "it", "version": "1" },
            },
        })
    }

    /// A POST in this session.
    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        let request = self.with_session(http().post(&self.url));
        let request = request.header("accept", "application/json, text/event-stream");
        request.header("content-type", "application/json").body(body.to_string())
    }

    fn with_session(&self, request: RequestBuilder) -> RequestBuilder {
        let request =
            bearing(self.token.as_deref(), request).header("mcp-session-id", &self.session);
        request.header("mcp-protocol-version", &self.version)
    }

    pub(crate) async fn send(&self, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = Answer::of(self.post(&body)).await;
        if self.any_form { answer.in_any_form() } else { answer }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        Answer::of(self.post(&body)).await
    }

    /// A tool call with a progress token, answered by a stream of events.
    pub(crate) async fn stream_call(
        &self,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
    ) -> Events {
        let params = json!({
            "name": tool, "arguments": arguments, "_meta": { "progressToken": "token" },
        });
        let id: Value = id.into();
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        Events::of(patiently("a stream", self.post(&body).send()).await.unwrap())
    }

    /// Responds to a request of the server's with `member`, which is `result` or `error`.
    pub(crate) async fn answer(&self, question: &Value, member: &str, outcome: Value) {
        let mut body = json!({ "jsonrpc": "2.0", "id": question["id"] });
        body[member] = outcome;
        let taken = Answer::of(self.post(&body)).await;
        assert_eq!((taken.status, taken.body.len()), (202, 0), "{taken:?}");
    }

    /// A GET in this session.
    pub(crate) async fn get(&self, last_event_id: Option<&str>) -> Response {
        let request =
            self.with_session(http().get(&self.url)).header("accept", "text/event-stream");
        let request = match last_event_id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        patiently("a response", request.send()).await.unwrap()
    }

    /// The session's own stream.
    pub(crate) async fn listen(&self) -> Events {
        Events::of(self.get(None).await)
    }

    /// A stream that is resumed after an event. Its priming event is read.
    pub(crate) async fn resume(&self, last_event_id: &str) -> Events {
        let mut events = Events::of(self.get(Some(last_event_id)).await);
        if self.version == "2025-11-25" {
            assert_eq!(events.next().await.unwrap().data, "", "a priming event");
        }
        events
    }

    pub(crate) async fn delete(&self) -> Answer {
        Answer::of(self.with_session(http().delete(&self.url))).await
    }

    pub(crate) async fn create(&self, arguments: Value) -> String {
        self.call("create_resource", arguments).await.text()
    }
}
