//! A running call.

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Reply;
use crate::protocol::{Fault, Outgoing};

/// A running call. It yields messages and then an outcome. It runs only while it is polled;
/// dropping it stops it.
pub struct Running {
    /// None once the outcome is known.
    future: Option<BoxFuture<'static, Result<Reply, Fault>>>,
    outcome: Option<Result<Reply, Fault>>,
    messages: mpsc::Receiver<Box<Outgoing>>,
    /// Cancels the work that the handler has started elsewhere.
    cancel_on_drop: Option<DropGuard>,
}

/// The next output of a running call.
pub enum Step {
    /// A message of the call.
    Message(Outgoing),
    /// The end of the call.
    Outcome(Result<Reply, Fault>),
}

impl Running {
    pub(super) fn new(
        future: BoxFuture<'static, Result<Reply, Fault>>,
        messages: mpsc::Receiver<Box<Outgoing>>,
        cancellation: CancellationToken,
    ) -> Self {
        let cancel = cancellation.drop_guard();
        Self { future: Some(future), outcome: None, messages, cancel_on_drop: Some(cancel) }
    }

    /// The next message, or the outcome once all earlier messages are out; then None. Safe
    /// to cancel and to call again.
    pub async fn next(&mut self) -> Option<Step> {
        if self.outcome.is_none() {
            let future = self.future.as_mut()?;
            tokio::select! {
                biased;
                outcome = future => {
                    self.future = None;
                    if matches!(outcome, Ok(Reply::TaskCreated(_))) {
                        // The handler and the work it has started continue as a task.
                        self.cancel_on_drop.take().map(DropGuard::disarm);
                    }
                    self.outcome = Some(outcome);
                }
                Some(message) = self.messages.recv() => return Some(Step::Message(*message)),
            }
        }
        match self.messages.try_recv() {
            Ok(message) => Some(Step::Message(*message)),
            Err(_) => self.outcome.take().map(Step::Outcome),
        }
    }

    /// Waits for the outcome and discards the messages.
    pub async fn outcome(mut self) -> Result<Reply, Fault> {
        loop {
            match self.next().await {
                Some(Step::Message(_)) => {}
                Some(Step::Outcome(outcome)) => return outcome,
                // Only reached after the outcome.
                None => return Err(Fault::Internal("The call has ended already.".into())),
            }
        }
    }
}
