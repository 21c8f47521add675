//! The messages that are sent to an upstream.

use bytes::Bytes;
use larder_protocol::{ProtocolVersion, RequestId};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json, value::RawValue};

/// A message, without copies of its parts.
#[derive(Serialize)]
struct Envelope<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Params<'a>>,
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

/// The params of a message.
struct Params<'a> {
    members: &'a Value,
    /// The JSON of the arguments in place of their value.
    arguments: Option<&'a RawValue>,
}

impl<'a> From<&'a Value> for Params<'a> {
    fn from(members: &'a Value) -> Self {
        Self { members, arguments: None }
    }
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Some(arguments), Value::Object(members)) = (self.arguments, self.members) else {
            return self.members.serialize(serializer);
        };

        let mut map = serializer.serialize_map(Some(members.len()))?;
        for (name, value) in members {
            match name.as_str() {
                "arguments" => map.serialize_entry(name, arguments)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// A request. `arguments` is their JSON as it was sent, where the value in `params` does not keep
/// its numbers.
pub(super) fn request(id: i64, method: &str, params: &Value, arguments: Option<&Bytes>) -> Bytes {
    let id = RequestId::Number(id);
    let arguments = arguments.and_then(|json| serde_json::from_slice(json).ok());
    let params = Some(Params { members: params, arguments });
    Envelope { id: Some(&id), method: Some(method), params, ..Envelope::default() }.encode()
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> Bytes {
    Envelope { method: Some(method), params: Some(params.into()), ..Envelope::default() }.encode()
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
