//! What processes that serve the same sessions tell each other.

use std::{pin::Pin, sync::Arc};

use futures_util::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::protocol::RequestId;

/// Concerns whatever runs in a session, wherever it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The client takes that request back (`notifications/cancelled`).
    Cancelled(RequestId),
    /// The client answers a question that a call asked.
    Answered {
        /// Which.
        question: RequestId,
        /// The result, or the message of the error.
        outcome: Result<Value, String>,
    },
    /// The session has ended.
    Ended,
}

/// A signal, and the id of the session that it concerns.
pub type Signalled = (Arc<str>, Signal);

/// Signals as they come. It may end where no process can signal any more.
pub type Signals = Pin<Box<dyn Stream<Item = Signalled> + Send>>;
