//! The life of a call, from its admission to its end. One value holds the permit, the span,
//! the metrics and the deadline; ending it is the only way to give them back.

use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Span;

use super::{End, Reply, instrument::CallMetrics};
use crate::{admission::Permit, auth::Validity, protocol::Fault};

/// What interrupts a call.
#[derive(Debug, Clone)]
pub(super) struct Deadline {
    /// What notices that the caller's token is no longer valid, if that ends the call.
    pub(super) validity: Option<Validity>,
    /// Cancelled when the time that calls have after a stop of the server is over.
    pub(super) stopping: CancellationToken,
}

impl Deadline {
    /// Waits until the call must end; the reason, and the last message.
    pub(super) async fn passed(&self) -> (End, Fault) {
        let expired = async {
            match &self.validity {
                Some(validity) => validity.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = expired => (End::Expired, Fault::TokenExpired),
            () = self.stopping.cancelled() => (End::Stopped, stopped()),
        }
    }
}

/// The error for a call that a stop interrupts. It does not say whether the call did its
/// work.
fn stopped() -> Fault {
    Fault::Unavailable("The server is stopping. Send the request again.".into())
}

/// A running call. Dropping it ends the call: the client cancelled it, or has gone.
pub(super) struct Lifecycle {
    span: Span,
    metrics: CallMetrics,
    deadline: Deadline,
    cancellation: CancellationToken,
    /// Cancels the work that the handler has started elsewhere.
    _cancel: DropGuard,
    _permit: Option<Permit>,
    end: Option<End>,
}

impl Lifecycle {
    pub(super) fn new(
        span: Span,
        metrics: CallMetrics,
        deadline: Deadline,
        cancellation: CancellationToken,
        permit: Option<Permit>,
    ) -> Self {
        let cancel = cancellation.clone().drop_guard();
        Self { span, metrics, deadline, cancellation, _cancel: cancel, _permit: permit, end: None }
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// The deadline of a task: it does not depend on the token of the request that began it.
    pub(super) fn detach(&mut self) {
        self.deadline.validity = None;
    }

    /// Ends the call with its outcome.
    pub(super) fn finish(mut self, outcome: &Result<Reply, Fault>) {
        self.metrics.measure(outcome);
        self.end = Some(End::of(outcome));
    }

    /// Ends the call by an interruption.
    pub(super) fn interrupt(mut self, end: End) {
        self.end = Some(end);
    }
}

impl Drop for Lifecycle {
    fn drop(&mut self) {
        let end = self.end.unwrap_or_else(|| {
            if self.cancellation.is_cancelled() { End::Cancelled } else { End::ClientGone }
        });
        let error_type = end.error_type();
        if !error_type.is_empty() {
            self.span.record("error.type", error_type);
        }
        self.metrics.record(end);
    }
}
