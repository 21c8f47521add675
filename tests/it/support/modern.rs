//! A client of 2026-07-28: each request by itself.

use std::fmt::Display;

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::{Answer, Events, Server, http, http_bearing, patiently};

pub(crate) const VERSION: &str = "2026-07-28";

#[derive(Clone)]
pub(crate) struct Modern {
    http: Client,
    url: String,
    capabilities: Value,
}

impl Modern {
    pub(crate) fn of(server: &Server) -> Self {
        Self::able(server, json!({}))
    }

    /// A client that can do that.
    pub(crate) fn able(server: &Server, capabilities: Value) -> Self {
        Self::at(&server.url).with(capabilities)
    }

    /// The same client, able to do that.
    pub(crate) fn with(self, capabilities: Value) -> Self {
        Self { capabilities, ..self }
    }

    /// A client with a token.
    pub(crate) fn bearing(server: &Server, token: &str) -> Self {
        Self::of(server).with_token(token)
    }

    /// The same client with that token.
    pub(crate) fn with_token(self, token: &str) -> Self {
        Self { http: http_bearing(token), ..self }
    }

    /// A client of whatever answers there.
    pub(crate) fn at(url: &str) -> Self {
        Self { http: http(), url: url.to_owned(), capabilities: json!({}) }
    }

    /// The metadata that each request carries.
    pub(crate) fn meta() -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    }

    /// A request's body; what `params` says in `_meta` comes on top.
    pub(crate) fn body(id: &Value, method: &str, mut params: Value) -> Value {
        let mut meta = Self::meta();
        if let Some(more) = params.get("_meta").and_then(Value::as_object) {
            meta.as_object_mut().unwrap().extend(more.clone());
        }
        params["_meta"] = meta;
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// A POST of that body, without the headers that mirror it.
    pub(crate) fn bare(&self, body: impl Display) -> RequestBuilder {
        let request = self.http.post(&self.url).header("content-type", "application/json");
        request.header("accept", "application/json, text/event-stream").body(body.to_string())
    }

    /// A request as it should be.
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
        Answer::of(self.request(1, method, params)).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// A request that is answered by a stream.
    pub(crate) async fn stream(&self, id: impl Into<Value>, method: &str, params: Value) -> Events {
        let request = self.request(id, method, params).send();
        Events::of(patiently("a stream", request).await.unwrap())
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
        self.stream(id, "tools/call", params).await
    }

    /// A subscription, acknowledged.
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

    /// Reads a resource that is there.
    pub(crate) async fn read(&self, uri: &str) -> Value {
        let mut result = self.send("resources/read", json!({ "uri": uri })).await.result();
        result["contents"][0].take()
    }

    /// All items of a listing, page by page.
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
