//! Messages that the server initiates: about a running call or about a change.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{LogLevel, ProgressToken, RequestId, SUBSCRIPTION_ID};

/// A message about a running call, sent on the stream of the call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outgoing {
    /// `notifications/progress`
    Progress {
        /// The token that the client chose.
        token: ProgressToken,
        /// Increases with each message of a call.
        progress: f64,
        /// The final value of `progress`, if known.
        total: Option<f64>,
        /// A text for the user.
        message: Option<String>,
    },
    /// `notifications/message`
    Log {
        /// The severity.
        level: LogLevel,
        /// The component of the server that logs.
        logger: Option<String>,
        /// The data of the message: any JSON.
        data: Value,
    },
    /// A request to the client (legacy era only).
    Ask {
        /// The id that the client's response carries.
        id: RequestId,
        /// The method, such as `elicitation/create`.
        method: &'static str,
        /// The parameters of the method.
        params: Value,
    },
    /// `notifications/elicitation/complete` (legacy era only)
    ElicitationComplete {
        /// The ID of the visit of a URL that the client was asked for.
        id: String,
    },
    /// Closes the connection but not the stream, if the stream is resumable
    /// (2025-11-25, transports: a server may close the connection at any time).
    /// Has no effect otherwise.
    Disconnect {
        /// The delay before the client reconnects.
        retry: Duration,
    },
}

impl Outgoing {
    /// The JSON-RPC message; `None` for [`Self::Disconnect`].
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
            Self::ElicitationComplete { id } => {
                let params = json!({ "elicitationId": id });
                Some(notification("notifications/elicitation/complete", &params))
            }
            Self::Disconnect { .. } => None,
        }
    }
}

/// A change that clients can subscribe to.
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
        /// The changed resource.
        uri: String,
    },
}

impl Announcement {
    /// The JSON-RPC notification. In the modern era, `subscription` is the id of
    /// the `subscriptions/listen` request.
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

/// The start of an encoded [`Announcement::ResourceUpdated`].
const UPDATED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/resources/updated""#;

/// The URI in a message that [`Announcement::encode`] wrote for
/// [`Announcement::ResourceUpdated`]; `None` for other messages.
pub fn updated_resource(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        params: SentParams,
    }
    #[derive(Deserialize)]
    struct SentParams {
        uri: String,
    }

    // Other messages may be large and are not parsed.
    let is_updated = message.starts_with(UPDATED);
    is_updated
        .then(|| serde_json::from_slice(message).ok())
        .flatten()
        .map(|u: Updated| u.params.uri)
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
    fn the_uri_of_an_updated_resource_is_read_back_and_nothing_else() {
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
