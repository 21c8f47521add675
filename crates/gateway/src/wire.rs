//! The messages that are sent to an upstream.

use bytes::Bytes;
use larder_protocol::{ProtocolVersion, RequestId};
use serde::Serialize;
use serde_json::{Value, json};

/// A message, without copies of its parts.
#[derive(Serialize)]
struct Envelope<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Default for Envelope<'_> {
    fn default() -> Self {
        Self { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None }
    }
}

impl Envelope<'_> {
    fn encode(&self) -> Bytes {
        // A value always serializes.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

/// A request.
pub(super) fn request(id: i64, method: &str, params: &Value) -> Bytes {
    let id = RequestId::Number(id);
    Envelope { id: Some(&id), method: Some(method), params: Some(params), ..Envelope::default() }
        .encode()
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> Bytes {
    Envelope { method: Some(method), params: Some(params), ..Envelope::default() }.encode()
}

/// An empty response, to a ping.
pub(super) fn empty_response(id: &RequestId) -> Bytes {
    Envelope { id: Some(id), result: Some(json!({})), ..Envelope::default() }.encode()
}

/// A response.
pub(super) fn response(id: &RequestId, result: Value) -> Bytes {
    Envelope { id: Some(id), result: Some(result), ..Envelope::default() }.encode()
}

/// An error response.
pub(super) fn error(id: &RequestId, message: &str) -> Bytes {
    let error = Some(json!({ "code": -32603, "message": message }));
    Envelope { id: Some(id), error, ..Envelope::default() }.encode()
}

/// The response to a request for which there is no handler.
pub(super) fn method_not_found(id: &RequestId) -> Bytes {
    let error = Some(json!({ "code": -32601, "message": "Method not found" }));
    Envelope { id: Some(id), error, ..Envelope::default() }.encode()
}

/// Larder's name and version, as a client.
pub(super) fn client_info() -> Value {
    json!({ "name": "larder", "version": env!("CARGO_PKG_VERSION") })
}

/// Adds to `params._meta` what the modern era requires of each request.
pub(super) fn declare_modern(params: &mut Value, capabilities: &Value) {
    let version = json!(ProtocolVersion::LATEST.as_str());
    add_meta(params, "io.modelcontextprotocol/protocolVersion", version);
    add_meta(params, "io.modelcontextprotocol/clientInfo", client_info());
    add_meta(params, "io.modelcontextprotocol/clientCapabilities", capabilities.clone());
}

/// Adds a member to `params._meta`.
pub(super) fn add_meta(params: &mut Value, name: &str, value: Value) {
    if let Value::Object(params) = params
        && let Value::Object(meta) = params.entry("_meta").or_insert_with(|| json!({}))
    {
        meta.insert(name.to_owned(), value);
    }
}

/// Adds a parameter.
pub(super) fn add_param(params: &mut Value, name: &str, value: Value) {
    if let Value::Object(params) = params {
        params.insert(name.to_owned(), value);
    }
}
