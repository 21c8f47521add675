//! A client of 2026-07-28, where each request stands by itself.

use std::fmt::Display;

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{Answer, Events, Server, bearing, http, patiently};

pub(crate) const VERSION: &str = "2026-07-28";

#[derive(Clone)]
pub(crate) struct Modern {
    url: String,
    token: Option<String>,
    capabilities: Value,
    /// Whether responses may come as a stream of events; see [`Answer::in_any_form`].
    any_form: bool,
}

impl Modern {
    pub(crate) fn of(server: &Server) -> Self {
        Self::able(server, json!({}))
    }

    /// A client with these capabilities.
    pub(crate) fn able(server: &Server, capabilities: Value) -> Self {
        Self { any_form: false, ..Self::at(&server.url).with(capabilities) }
    }

    /// The same client with these capabilities.
    pub(crate) fn with(self, capabilities: Value) -> Self {
        Self { capabilities, ..self }
    }

    /// A client with a bearer token.
    pub(crate) fn bearing(server: &Server, token: &str) -> Self {
        Self::of(server).with_token(token)
    }

    /// The same client with another token.
    pub(crate) fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    /// A client of the server at a URL, which may be another process.
    pub(crate) fn at(url: &str) -> Self {
        Self { url: url.to_owned(), token: None, capabilities: json!({}), any_form: true }
    }

    /// The metadata of each request.
    pub(crate) fn meta() -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    }

    /// The body of a request. The `_meta` of `params` is added to the usual metadata.
    pub(crate) fn body(id: &Value, method: &str, mut params: Value) -> Value {
        let mut meta = Self::meta();
        if let Some(more) = params.get("_meta").and_then(Value::as_object) {
            meta.as_object_mut().unwrap().extend(more.clone());
        }
        params["_meta"] = meta;
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// A POST of a body, without the headers that mirror it.
    pub(crate) fn bare(&self, body: impl Display) -> RequestBuilder {
        let request = bearing(self.token.as_deref(), http().post(&self.url));
        let request = request.header("content-type", "application/json");
        request.header("accept", "application/json, text/event-stream").body(body.to_string())
    }

    /// A request with the headers that mirror its body.
    pub(crate) fn request(
        &self,
        id: impl Into<Value>,
        method: &str,
        mut params: Value,
    ) -> RequestBuilder {
        let name = params.get("name").or(params.get("uri")).or(params.get("taskId"));
        let name = name.and_then(Value::as_str);
        let name = name.map(str::to_owned);
        if params["_meta"].is_null() {
            params["_meta"] = json!({});
        }
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        let request = self
            .bare(Self::body(&id.into(), method, params))
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    pub(crate) async fn send(&self, method: &str, params: Value) -> Answer {
        let answer = Answer::of(self.request(1, method, params)).await;
        if self.any_form { answer.in_any_form() } else { answer }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// A request that is answered by a stream of events.
    pub(crate) async fn stream(&self, id: impl Into<Value>, method: &str, params: Value) -> Events {
        let request = self.request(id, method, params).send();
        Events::of(patiently("a stream", request).await.unwrap())
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
        self.stream(id, "tools/call", params).await
    }

    /// A subscription, whose acknowledgement has been read.
    pub(crate) async fn listen(&self, id: impl Into<Value>, notifications: Value) -> Events {
        let params = json!({ "notifications": notifications });
        let mut events = self.stream(id, "subscriptions/listen", params).await;
        let first = events.message().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        events
    }

    pub(crate) async fn create(&self, arguments: Value) -> String {
        self.call("create_resource", arguments).await.text()
    }

    /// The content of a resource that exists.
    pub(crate) async fn read(&self, uri: &str) -> Value {
        let mut result = self.send("resources/read", json!({ "uri": uri })).await.result();
        result["contents"][0].take()
    }

    /// All items of all pages of a listing.
    pub(crate) async fn list(&self, method: &str, member: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            let mut result = self.send(method, params).await.result();
            items.append(result[member].as_array_mut().unwrap());
            cursor = result["nextCursor"].take();
            if cursor.is_null() {
                return items;
            }
        }
    }
}
