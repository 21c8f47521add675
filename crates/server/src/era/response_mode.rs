//! Decides whether a response is one message or a stream.

use std::time::Duration;

use larder_protocol::{Fault, Outgoing};

use super::DetachableCall;
use crate::dispatch::{HeldReply, Running, Step};

/// The kinds of response that a client accepts. At least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// A single message (`application/json`).
    pub message: bool,
    /// A stream of messages (`text/event-stream`).
    pub stream: bool,
}

/// A running call.
pub(crate) trait Steps {
    /// The next step. None once the call has ended.
    fn step(&mut self) -> impl Future<Output = Option<Step>> + Send;
}

impl Steps for Running {
    async fn step(&mut self) -> Option<Step> {
        self.next().await
    }
}

impl Steps for DetachableCall {
    async fn step(&mut self) -> Option<Step> {
        self.next().await
    }
}

/// The form of a response.
pub enum ResponseMode {
    /// One message: the call ended before it sent any message.
    Single(Result<HeldReply, Fault>),
    /// A stream, which begins with this message if there is one.
    Stream(Option<Outgoing>),
    /// No response: the call was cancelled.
    Cancelled,
}

impl ResponseMode {
    /// Decides the form of a response. Waits for the outcome until the call sends a message
    /// or `promote_after` has passed. A client that accepts no stream gets the outcome
    /// only.
    pub(crate) async fn decide(
        call: &mut impl Steps,
        accepts: Accepts,
        promote_after: Duration,
    ) -> Self {
        if !accepts.message {
            return Self::Stream(None);
        }

        let promote = async {
            if accepts.stream {
                tokio::time::sleep(promote_after).await;
            } else {
                std::future::pending::<()>().await;
            }
        };

        let mut promote = std::pin::pin!(promote);
        loop {
            let step = tokio::select! {
                biased;
                step = call.step() => step,
                () = &mut promote => return Self::Stream(None),
            };

            match step {
                Some(Step::Outcome(outcome)) => return Self::Single(outcome),
                Some(Step::Message(message)) if accepts.stream => {
                    return Self::Stream(Some(message));
                }
                Some(Step::Message(_)) => {}
                None => return Self::Cancelled,
            }
        }
    }
}
