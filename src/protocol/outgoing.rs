//! Messages that the server sends unasked: about a running call, or about a change.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LogLevel, ProgressToken, RequestId, SUBSCRIPTION_ID};

/// A message about a running call, on that call's own stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Outgoing {
    /// `notifications/progress`
    Progress {
        /// The client's own token.
        token: ProgressToken,
        /// Strictly rising within one call.
        progress: f64,
        /// What `progress` rises to, if known.
        total: Option<f64>,
        /// For people.
        message: Option<String>,
    },
    /// `notifications/message`
    Log {
        /// How severe.
        level: LogLevel,
        /// Which part of the server speaks.
        logger: Option<String>,
        /// Any JSON.
        data: Value,
    },
    /// A request of the server's (legacy era only).
    Ask {
        /// Names the question; the answer carries it.
        id: RequestId,
        /// Such as `elicitation/create`.
        method: &'static str,
        /// What is asked.
        params: Value,
    },
    /// Not a message: closes the connection, not the stream, where the stream
    /// can be resumed (2025-11-25, transports: a server may close the
    /// connection at any time). Without meaning elsewhere.
    Disconnect {
        /// When the client should come back.
        retry: Duration,
    },
}

impl Outgoing {
    /// The JSON-RPC message, or nothing for what is no message.
    pub fn encode(&self) -> Option<Bytes> {
        match self {
            Self::Progress { token, progress, total, message } => {
                let mut params = json!({ "progressToken": token, "progress": progress });
                if let Some(total) = total {
                    params["total"] = json!(total);
                }
                if let Some(message) = message {
                    params["message"] = json!(message);
                }
                Some(notification("notifications/progress", &params))
            }
            Self::Log { level, logger, data } => {
                let mut params = json!({ "level": level, "data": data });
                if let Some(logger) = logger {
                    params["logger"] = json!(logger);
                }
                Some(notification("notifications/message", &params))
            }
            Self::Ask { id, method, params } => {
                let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
                if params.as_object().is_none_or(|p| !p.is_empty()) {
                    message["params"] = params.clone();
                }
                Some(message.to_string().into())
            }
            Self::Disconnect { .. } => None,
        }
    }
}

/// Something changed that clients may have asked to hear of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Announcement {
    /// `notifications/tools/list_changed`
    ToolListChanged,
    /// `notifications/prompts/list_changed`
    PromptListChanged,
    /// `notifications/resources/list_changed`
    ResourceListChanged,
    /// `notifications/resources/updated`
    ResourceUpdated {
        /// Whose content changed.
        uri: String,
    },
}

impl Announcement {
    /// The JSON-RPC notification; `subscription` is the id of the
    /// `subscriptions/listen` request it answers to, in the modern era.
    pub fn encode(&self, subscription: Option<&RequestId>) -> Bytes {
        let (method, mut params) = match self {
            Self::ToolListChanged => ("notifications/tools/list_changed", json!({})),
            Self::PromptListChanged => ("notifications/prompts/list_changed", json!({})),
            Self::ResourceListChanged => ("notifications/resources/list_changed", json!({})),
            Self::ResourceUpdated { uri } => {
                ("notifications/resources/updated", json!({ "uri": uri }))
            }
        };
        if let Some(id) = subscription {
            params["_meta"] = json!({ SUBSCRIPTION_ID: id });
        }
        notification(method, &params)
    }
}

/// How [`Announcement::ResourceUpdated`] begins.
const UPDATED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/resources/updated""#;

/// Which resource a message says to be updated, if it was [encoded](Announcement::encode)
/// to say that.
pub fn updated_resource(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    // Most messages are something else, and may be large.
    let is_one = message.starts_with(UPDATED);
    is_one.then(|| serde_json::from_slice(message).ok()).flatten().map(|u: Updated| u.params.uri)
}

fn notification(method: &str, params: &Value) -> Bytes {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if params.as_object().is_none_or(|p| !p.is_empty()) {
        message["params"] = params.clone();
    }
    message.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_updated_is_read_back_and_nothing_else() {
        let uri = "x:\"ä\"".to_owned();
        let updated = Announcement::ResourceUpdated { uri: uri.clone() };
        assert_eq!(updated_resource(&updated.encode(None)), Some(uri.clone()));
        let id = RequestId::Number(1);
        assert_eq!(updated_resource(&updated.encode(Some(&id))), Some(uri));
        for other in [
            Announcement::ResourceListChanged.encode(None),
            Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"uri":"x:1"}}"#),
            Bytes::from_static(b""),
        ] {
            assert_eq!(updated_resource(&other), None);
        }
    }
}
