//! A client of 2025-03-26 to 2025-11-25: a session.

use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use super::{Answer, Events, Server, http, http_bearing, patiently};

#[derive(Clone)]
pub(crate) struct Legacy {
    http: Client,
    url: String,
    pub(crate) session: String,
    pub(crate) version: String,
    /// What `initialize` answered.
    pub(crate) initialized: Value,
}

impl Legacy {
    /// A session of 2025-11-25.
    pub(crate) async fn of(server: &Server) -> Self {
        Self::speaking(server, "2025-11-25").await
    }

    /// A session for which that version was asked.
    pub(crate) async fn speaking(server: &Server, version: &str) -> Self {
        Self::with(http(), &server.url, &Self::initialize(version)).await
    }

    /// A session that begins at that address with that message.
    pub(crate) async fn begin(url: &str, body: &Value) -> Self {
        Self::with(http(), url, body).await
    }

    /// A session of a client that can do that.
    pub(crate) async fn able(server: &Server, capabilities: Value) -> Self {
        let mut body = Self::initialize("2025-11-25");
        body["params"]["capabilities"] = capabilities;
        Self::with(http(), &server.url, &body).await
    }

    /// A session begun with that token.
    pub(crate) async fn bearing(server: &Server, token: &str) -> Self {
        Self::with(http_bearing(token), &server.url, &Self::initialize("2025-11-25")).await
    }

    /// The same session, with that token from here on.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { http: http_bearing(token), ..self.clone() }
    }

    async fn with(http: Client, url: &str, body: &Value) -> Self {
        let url = url.to_owned();
        let request = http.post(&url).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let answer = Answer::of(request.body(body.to_string())).await;
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        let initialized = answer.result();
        let version = initialized["protocolVersion"].as_str().unwrap().to_owned();
        let client = Self { http, url, session, version, initialized };
        let taken = client.notify("notifications/initialized", json!({})).await;
        assert_eq!((taken.status, taken.body.len()), (202, 0));
        client
    }

    /// The same session at another address.
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

    /// A POST of that body in this session.
    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        let request = self.dressed(self.http.post(&self.url));
        let request = request.header("accept", "application/json, text/event-stream");
        request.header("content-type", "application/json").body(body.to_string())
    }

    fn dressed(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.header("mcp-session-id", &self.session);
        request.header("mcp-protocol-version", &self.version)
    }

    pub(crate) async fn send(&self, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Answer::of(self.post(&body)).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        Answer::of(self.post(&body)).await
    }

    /// A call of a tool that is answered by a stream, with its progress.
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

    /// Answers a question of the server's; `outcome` is a result or an error.
    pub(crate) async fn answer(&self, question: &Value, member: &str, outcome: Value) {
        let mut body = json!({ "jsonrpc": "2.0", "id": question["id"] });
        body[member] = outcome;
        let taken = Answer::of(self.post(&body)).await;
        assert_eq!((taken.status, taken.body.len()), (202, 0), "{taken:?}");
    }

    /// A GET in this session.
    pub(crate) async fn get(&self, last_event_id: Option<&str>) -> Response {
        let request = self.dressed(self.http.get(&self.url)).header("accept", "text/event-stream");
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

    /// A stream from after that event on.
    pub(crate) async fn resume(&self, last_event_id: &str) -> Events {
        Events::of(self.get(Some(last_event_id)).await)
    }

    pub(crate) async fn delete(&self) -> Answer {
        Answer::of(self.dressed(self.http.delete(&self.url))).await
    }

    pub(crate) async fn create(&self, arguments: Value) -> String {
        self.call("create_resource", arguments).await.text()
    }
}
