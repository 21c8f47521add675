//! A running call.

use std::{pin::Pin, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Reply;
use crate::{
    handler::{AskMode, Control, Suspended},
    protocol::{Fault, Outgoing},
};

/// The handler of a call, which can be polled again after it was suspended.
pub(super) struct Handler {
    pub(super) run: Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send>>,
    pub(super) asking: AskMode,
    pub(super) control: Arc<Control>,
}

impl Handler {
    /// Polls the handler until it returns, fails or is suspended. Safe to cancel.
    pub(super) async fn poll(&mut self) -> Result<Result<Result<Reply, Fault>, Suspended>, Fault> {
        self.control.run(&self.asking, self.run.as_mut()).await
    }
}

/// A running call. It yields messages and then an outcome. It runs only while it is polled;
/// dropping it stops it.
pub struct Running {
    /// None once the outcome is known.
    future: Option<BoxFuture<'static, Result<Reply, Fault>>>,
    outcome: Option<Result<Reply, Fault>>,
    messages: mpsc::Receiver<Box<Outgoing>>,
    cancellation: CancellationToken,
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
        Self { future: Some(future), outcome: None, messages, cancellation }
    }

    /// Ends the call because its client cancelled it.
    pub fn cancel(self) {
        // Otherwise it has ended, or continues as a task, which is cancelled as such.
        if self.future.is_some() {
            self.cancellation.cancel();
        }
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
