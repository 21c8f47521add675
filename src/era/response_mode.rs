//! The first decision about an answer: one message, or a stream.

use std::time::Duration;

use super::DetachableCall;
use crate::{
    dispatch::{Reply, Running, Step},
    protocol::{Fault, Outgoing},
};

/// Which kinds of answer a client takes. One of them at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// A single message.
    pub message: bool,
    /// A stream of them.
    pub stream: bool,
}

/// A call that gives steps.
pub(crate) trait Steps {
    /// The next step; nothing once it is over.
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

/// How an answer begins.
pub enum ResponseMode {
    /// It is over before it said anything: one message will do.
    Ready(Result<Reply, Fault>),
    /// It takes a stream; this message may have come already.
    Stream(Option<Outgoing>),
    /// It was cancelled.
    Cancelled,
}

impl ResponseMode {
    /// Waits for the outcome as long as a single message can still be the
    /// answer: until the call says something, or `promote` has passed. A
    /// client that takes no stream gets the outcome, and no messages.
    pub(crate) async fn of(call: &mut impl Steps, accepts: Accepts, promote: Duration) -> Self {
        if !accepts.message {
            return Self::Stream(None);
        }
        let promote = async {
            if accepts.stream {
                tokio::time::sleep(promote).await;
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
                Some(Step::Outcome(outcome)) => return Self::Ready(outcome),
                Some(Step::Message(message)) if accepts.stream => {
                    return Self::Stream(Some(message));
                }
                Some(Step::Message(_)) => {}
                None => return Self::Cancelled,
            }
        }
    }
}
