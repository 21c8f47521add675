//! Encodes faults as JSON-RPC errors.

use bytes::Bytes;
use larder_protocol::{Fault, RequestId};
use serde_json::{Value, json};

use crate::era::Era;

/// Encodes the error response to a request. Without an id, the request could not be read.
pub fn encode_error(id: Option<&RequestId>, fault: &Fault, era: Era) -> Bytes {
    let mut message = json!({ "jsonrpc": "2.0", "error": error(fault, era) });
    // JSON-RPC 2.0 requires a null id here; MCP omits it.
    if let Some(id) = id {
        message["id"] = json!(id);
    }
    message.to_string().into()
}

pub(super) fn error(fault: &Fault, era: Era) -> Value {
    let mut error = json!({ "code": error_code(fault, era), "message": fault.to_string() });

    match fault {
        Fault::InvalidParams { data: Some(data), .. } => error["data"] = data.clone(),
        Fault::Relayed { data: Some(data), .. } => error["data"] = json!(data),
        Fault::ResourceNotFound { uri, .. } => error["data"] = json!({ "uri": uri }),
        Fault::InsufficientScope { required } => {
            error["data"] = json!({ "requiredScopes": required });
        }
        Fault::MissingCapability { required } => {
            error["data"] = json!({ "requiredCapabilities": required });
        }
        Fault::UnsupportedVersion { requested, supported } => {
            error["data"] = json!({ "supported": supported, "requested": requested });
        }
        _ => {}
    }

    error
}

/// The JSON-RPC error code of a fault (2026-07-28, basic: Error Codes).
pub fn error_code(fault: &Fault, era: Era) -> i32 {
    match fault {
        Fault::Parse(_) => -32700,
        Fault::InvalidRequest(_)
        | Fault::SessionNotFound
        | Fault::StreamNotFound(_)
        | Fault::InsufficientScope { .. }
        | Fault::TokenExpired
        | Fault::Limited { .. }
        | Fault::TooMany(_) => -32600,
        // A server behind this one may be of the other era.
        Fault::Relayed { code: -32002, .. } if era == Era::Modern => -32602,
        Fault::Relayed { code, .. } => *code,
        Fault::MethodNotFound(_) => -32601,
        Fault::ResourceNotFound { .. } if era == Era::Legacy => -32002,
        Fault::ResourceNotFound { .. } | Fault::InvalidParams { .. } | Fault::MissingMeta(_) => {
            -32602
        }
        Fault::Internal(_)
        | Fault::Unavailable(_)
        | Fault::SessionsUnavailable(_)
        | Fault::TimedOut { .. }
        | Fault::Busy { .. } => -32603,
        Fault::HeaderMismatch(_) => -32020,
        Fault::MissingCapability { .. } => -32021,
        Fault::UnsupportedVersion { .. } => -32022,
    }
}
