//! Signals between processes that serve the same sessions.

use std::{pin::Pin, sync::Arc};

use futures_util::Stream;
use larder_protocol::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message for the process that runs a session's calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The client cancelled this request (`notifications/cancelled`).
    Cancelled(RequestId),
    /// The client answered a call's question.
    Answered {
        /// The id of the question's request.
        question: RequestId,
        /// The result, or the error message.
        outcome: Result<Value, String>,
    },
    /// The client's roots have changed (`notifications/roots/list_changed`).
    RootsChanged,
    /// The session has ended.
    Ended,
}

/// A session id and a signal for that session.
pub type SessionSignal = (Arc<str>, Signal);

/// The received signals. They may end when no process can send any.
pub type Signals = Pin<Box<dyn Stream<Item = SessionSignal> + Send>>;
