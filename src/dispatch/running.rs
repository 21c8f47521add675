//! A call under way.

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Reply;
use crate::protocol::{Fault, Outgoing};

/// A call under way: messages, then an outcome. It runs only while it is
/// polled; dropping it stops it.
pub struct Running {
    /// Gone once the outcome is known.
    future: Option<BoxFuture<'static, Result<Reply, Fault>>>,
    outcome: Option<Result<Reply, Fault>>,
    messages: mpsc::Receiver<Box<Outgoing>>,
    /// Tells what the handler has handed to others.
    cancel_on_drop: Option<DropGuard>,
}

/// What a running call gives next.
pub enum Step {
    /// A message about it.
    Message(Outgoing),
    /// Its end. Nothing comes after it.
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

    /// The next message, or the outcome once all messages that were sent
    /// before it are out; nothing after that. Can be cancelled and called again.
    pub async fn next(&mut self) -> Option<Step> {
        if self.outcome.is_none() {
            let future = self.future.as_mut()?;
            tokio::select! {
                biased;
                outcome = future => {
                    self.future = None;
                    if matches!(outcome, Ok(Reply::TaskCreated(_))) {
                        // The handler runs on; what it has handed to others, too.
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

    /// The outcome, without the messages.
    pub async fn outcome(mut self) -> Result<Reply, Fault> {
        loop {
            match self.next().await {
                Some(Step::Message(_)) => {}
                Some(Step::Outcome(outcome)) => return outcome,
                // Reached only by asking again after the outcome.
                None => return Err(Fault::Internal("The call has ended already.".into())),
            }
        }
    }
}
