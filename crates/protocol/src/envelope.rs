//! The parser of one JSON-RPC 2.0 message. It does not copy the parameters.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use super::{Fault, Params, RequestId, params::describe, torn::request_id};
use crate::quote::parse_error;

/// A JSON-RPC message. Its parameters are not parsed yet.
#[derive(Debug, Clone)]
pub enum Message {
    /// A message that expects a response.
    Request(Request),
    /// A message that expects no response.
    Notification {
        /// The name of the method, such as `notifications/cancelled`.
        method: String,
        /// The parameters as they arrived.
        params: Params,
    },
    /// The peer's response to a request of this side.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The result, or the error.
        outcome: Result<Value, ErrorResponse>,
    },
}

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ErrorResponse {
    /// The JSON-RPC code; 0 if it is missing.
    #[serde(default)]
    pub code: i64,
    /// The reason, in words.
    pub message: String,
    /// Machine-readable details.
    #[serde(default)]
    pub data: Option<Value>,
}

/// A request. Its parameters are parsed once, when the method is known.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id that the client chose, for the response. The server uses it for nothing else.
    pub id: RequestId,
    /// The name of the method, such as `tools/call`.
    pub method: String,
    /// The parameters as they arrived.
    pub params: Params,
}

impl Message {
    /// The id of the request that a `notifications/cancelled` cancels.
    /// Malformed notifications are ignored (2025-11-25, utilities: Cancellation).
    pub fn cancelled(method: &str, params: &Params) -> Option<RequestId> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: RequestId,
        }

        let is_cancelled = method == "notifications/cancelled";
        is_cancelled.then(|| params.parse().ok().map(|c: Cancelled| c.request_id))?
    }
}

/// The members of a message as they are on the wire.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default, borrow, deserialize_with = "text")]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "text")]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Distinguishes an explicit `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

/// Borrows a text that has no escapes, which serde does not do within an option.
fn text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    Ok(Option::<Text<'de>>::deserialize(d)?.map(|Text(text)| text))
}

/// Parses one message.
///
/// # Errors
/// The fault, and the request's id where it could be read, for the error
/// response: [`Fault::Parse`] if the body is not JSON in UTF-8,
/// [`Fault::InvalidRequest`] if the JSON is not a JSON-RPC 2.0 message
/// (a batch, a null id, a wrong `jsonrpc`, parameters that are not an object).
pub fn parse(body: &Bytes) -> Result<Message, (Fault, Option<RequestId>)> {
    let text = std::str::from_utf8(body).map_err(|e| {
        let message = format!("The body is not UTF-8: byte {} is invalid.", e.valid_up_to());
        (Fault::Parse(message), request_id(body))
    })?;

    if text.trim_start().starts_with('[') {
        // Checked before parsing, so that an invalid array is refused for this reason, too.
        let message = "Batches are not supported: send one JSON-RPC message per request.";
        return Err((Fault::InvalidRequest(message.into()), None));
    }

    let wire: Wire<'_> = serde_json::from_str(text).map_err(|e| {
        let fault = if e.is_data() {
            Fault::InvalidRequest(format!("Not a JSON-RPC 2.0 message: {}.", describe(&e)))
        } else {
            Fault::Parse(format!("The body is not valid JSON: {}.", parse_error(&e.to_string())))
        };
        (fault, request_id(body))
    })?;

    let id = match wire.id.map(read_id).transpose() {
        Ok(id) => id,
        Err(fault) => return Err((fault, None)),
    };

    let invalid = |message: &str| (Fault::InvalidRequest(message.into()), id.clone());
    if wire.jsonrpc.as_deref() != Some("2.0") {
        return Err(invalid("The member \"jsonrpc\" must be \"2.0\"."));
    }
    if let Some(params) = wire.params
        && !params.get().starts_with('{')
    {
        return Err(invalid("The member \"params\" must be an object."));
    }

    let params = match wire.params.map(|p| Params::new(body.slice_ref(p.get().as_bytes()))) {
        None => Params::default(),
        Some(Ok(params)) => params,
        Some(Err(fault)) => return Err((fault, id)),
    };

    classify(wire, id, params)
}

/// Decides by its members whether a message is a request, a notification or a response.
fn classify(
    wire: Wire<'_>,
    id: Option<RequestId>,
    params: Params,
) -> Result<Message, (Fault, Option<RequestId>)> {
    match (wire.method, id) {
        (Some(_), _) if wire.result.is_some() || wire.error.is_some() => Err((
            Fault::InvalidRequest(
                "A message must not have both a \"method\" and a \"result\" or \"error\".".into(),
            ),
            None,
        )),
        (Some(method), Some(id)) => {
            Ok(Message::Request(Request { id, method: method.into_owned(), params }))
        }
        (Some(method), None) => Ok(Message::Notification { method: method.into_owned(), params }),
        (None, Some(id)) if wire.result.is_some() != wire.error.is_some() => {
            Ok(Message::Response { id, outcome: read_outcome(wire.result, wire.error) })
        }
        (None, id) => Err((
            Fault::InvalidRequest(
                "A message needs a \"method\", or an \"id\" with a \"result\" or an \"error\"."
                    .into(),
            ),
            id,
        )),
    }
}

/// The parameters of a `tools/call` request; `None` for other messages. Does not parse the
/// parameters, which may be large.
pub fn tool_call(body: &Bytes) -> Option<Params> {
    #[derive(Deserialize)]
    struct ToolCall<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: &'a RawValue,
    }

    let call: ToolCall<'_> = serde_json::from_slice(body).ok()?;
    let params = call.params.get();
    if call.method != "tools/call" || !params.starts_with('{') {
        return None;
    }

    Params::new(body.slice_ref(params.as_bytes())).ok()
}

fn read_outcome(
    result: Option<&RawValue>,
    error: Option<&RawValue>,
) -> Result<Value, ErrorResponse> {
    let unreadable = |message: String| ErrorResponse { code: 0, message, data: None };

    if let Some(error) = error {
        let error = serde_json::from_str(error.get());
        return Err(
            error.unwrap_or_else(|_| unreadable("The peer responded with an error.".into()))
        );
    }

    let result = result.map_or("null", RawValue::get);
    serde_json::from_str(result)
        .map_err(|e| unreadable(format!("The peer's response cannot be parsed: {}", describe(&e))))
}

/// Reads an id. In MCP, unlike JSON-RPC, an id is a string or an integer, never null
/// (2026-07-28, basic: Requests).
fn read_id(raw: &RawValue) -> Result<RequestId, Fault> {
    let text = raw.get();
    let id = match text.as_bytes().first() {
        Some(b'"') => {
            serde_json::from_str::<String>(text).ok().map(|s| RequestId::String(s.into()))
        }
        _ => serde_json::from_str::<i64>(text).ok().map(RequestId::Number),
    };
    id.ok_or_else(|| {
        Fault::InvalidRequest("The member \"id\" must be a string or an integer.".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &'static str) -> (Fault, Option<RequestId>) {
        parse(&Bytes::from_static(body.as_bytes())).expect_err("must be refused")
    }

    #[test]
    fn params_are_a_slice_of_the_body() {
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#);
        let Ok(Message::Request(request)) = parse(&body) else { panic!("a request") };
        assert_eq!(request.id, RequestId::Number(1));

        let offset = request.params.as_bytes().as_ptr() as usize - body.as_ptr() as usize;
        assert_eq!(&body[offset..offset + 7], br#"{"a":1}"#);
    }

    #[test]
    fn malformed_messages_name_their_fault() {
        assert!(matches!(fault("{"), (Fault::Parse(_), None)));
        assert!(matches!(fault(r#"[{"jsonrpc":"2.0"}]"#), (Fault::InvalidRequest(_), None)));
        assert!(matches!(fault("[]"), (Fault::InvalidRequest(_), None)));
        assert!(matches!(fault("7"), (Fault::InvalidRequest(_), None)));

        for id in ["null", "1.5", "true", "{}"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            assert!(matches!(parse(&body.into()), Err((Fault::InvalidRequest(_), None))), "{id}");
        }

        let (refused, id) = fault(r#"{"jsonrpc":"1.0","id":"x","method":"m"}"#);
        assert!(matches!(refused, Fault::InvalidRequest(_)));
        assert_eq!(id, Some(RequestId::String("x".into())));
        assert!(matches!(
            fault(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#),
            (Fault::InvalidRequest(_), Some(_))
        ));
    }

    #[test]
    fn bad_utf8_is_a_parse_error() {
        let body = Bytes::from_static(b"{\"jsonrpc\":\"\xff\"}");
        assert!(matches!(parse(&body), Err((Fault::Parse(_), None))));
    }

    #[test]
    fn a_depth_bomb_is_refused_or_skipped_without_recursion() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
            "[".repeat(200_000),
            "]".repeat(200_000)
        );

        let Ok(Message::Request(request)) = parse(&deep.into()) else { panic!("skipped") };
        assert!(matches!(
            request.params.parse::<serde_json::Value>(),
            Err(Fault::InvalidParams { .. })
        ));
    }
}
