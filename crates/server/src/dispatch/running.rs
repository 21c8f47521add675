//! A running call.

use std::{future::poll_fn, panic::AssertUnwindSafe, pin::Pin, sync::Arc, task::Poll};

use futures_util::FutureExt;
use larder_protocol::{Fault, Outgoing};
use larder_runtime::{in_span::InSpan, panics::PanicSite};

use super::{HeldReply, Reply};
use crate::handler::{AskMode, Cancellation, Control, OutboxReader, Polled};

/// The handler of a call, which can be polled again after it was suspended.
pub(super) struct Handler {
    pub(super) run: Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send>>,
    pub(super) asking: AskMode,
    pub(super) control: Arc<Control>,
}

impl Handler {
    /// Polls the handler until it returns, fails or is suspended. Safe to cancel.
    /// A panic outside of a handler of the server's author is an error of the call.
    pub(super) async fn poll(&mut self) -> Polled<Result<Reply, Fault>> {
        let run = self.control.run(&self.asking, self.run.as_mut());

        // A panicked call is not used again, so its state may be inconsistent.
        AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_| {
            PanicSite::Call.count();
            tracing::error!("a call panicked");
            let message = "Internal error. Other requests are not affected.";
            Polled::Failed(Fault::Internal(message.into()))
        })
    }
}

/// The future of a call's outcome.
pub(super) type Outcome = dyn Future<Output = Result<HeldReply, Fault>> + Send;

/// A running call. It yields messages and then an outcome. It runs only while it is polled;
/// dropping it stops it.
pub struct Running {
    /// None once the outcome is known.
    future: Option<InSpan<Outcome>>,
    outcome: Option<Result<HeldReply, Fault>>,
    messages: OutboxReader,
    cancellation: Cancellation,
}

/// The next output of a running call.
pub enum Step {
    /// A message of the call.
    Message(Outgoing),
    /// The end of the call.
    Outcome(Result<HeldReply, Fault>),
}

impl Running {
    pub(super) fn new(
        future: InSpan<Outcome>,
        messages: OutboxReader,
        cancellation: Cancellation,
    ) -> Self {
        Self { future: Some(future), outcome: None, messages, cancellation }
    }

    /// Ends the call because its client cancelled it.
    pub fn cancel(self) {
        // A call without its future has ended, or continues as a task.
        if self.future.is_some() {
            self.cancellation.cancel();
        }
    }

    /// The next message, or the outcome once all earlier messages are out; then None. Safe
    /// to cancel and to call again.
    pub async fn next(&mut self) -> Option<Step> {
        if self.outcome.is_none() {
            let future = self.future.as_mut()?;
            let messages = &mut self.messages;
            let step = poll_fn(|cx| match Pin::new(&mut *future).poll(cx) {
                Poll::Ready(outcome) => Poll::Ready(Step::Outcome(outcome)),
                Poll::Pending => messages.poll_next(cx).map(Step::Message),
            });

            match step.await {
                Step::Outcome(outcome) => {
                    self.future = None;
                    self.outcome = Some(outcome);
                }
                message @ Step::Message(_) => return Some(message),
            }
        }

        match self.messages.try_next() {
            Some(message) => Some(Step::Message(message)),
            None => self.outcome.take().map(Step::Outcome),
        }
    }

    /// Waits for the outcome and discards the messages.
    pub async fn outcome(mut self) -> Result<HeldReply, Fault> {
        loop {
            match self.next().await {
                Some(Step::Message(_)) => {}
                Some(Step::Outcome(outcome)) => return outcome,
                // `next` ends only after the outcome.
                None => return Err(Fault::Internal("The call has ended already.".into())),
            }
        }
    }
}
