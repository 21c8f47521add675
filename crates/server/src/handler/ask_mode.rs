//! The way in which a call sends requests to its client.

use std::{fmt, sync::Arc};

use larder_protocol::RequestId;
use serde_json::Value;
use tokio::sync::oneshot;

use super::RoundTrips;

/// The way in which a call sends requests to its client.
#[derive(Clone)]
pub enum AskMode {
    /// The client cannot be asked; holds the reason.
    Unavailable(&'static str),
    /// On the call's stream. The response is routed back to the call.
    OnStream(Arc<dyn ResponseRouter>),
    /// Multi round-trip requests: the call ends with the requests, and the
    /// client retries it with the responses.
    RoundTrips(Arc<RoundTrips>),
}

impl fmt::Debug for AskMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable(_) => "Unavailable",
            Self::OnStream(_) => "OnStream",
            Self::RoundTrips(_) => "RoundTrips",
        })
    }
}

/// Routes the client's responses to the calls that wait for them.
pub trait ResponseRouter: Send + Sync {
    /// Registers a request; the receiver gets its result or error message.
    /// Dropping the receiver unregisters the request.
    fn expect(&self, request: &RequestId) -> oneshot::Receiver<Result<Value, String>>;
}
