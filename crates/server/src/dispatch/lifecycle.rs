//! The life of a call, from its admission to its end. One value holds the permit, the metrics
//! and the deadline; ending it is the only way to give them back.

use std::time::Duration;

use larder_oauth::Validity;
use larder_protocol::Fault;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{End, Reader, Reply, instrument::CallMetrics};
use crate::{admission::Permit, handler::Cancellation};

/// The most time that a call of many steps keeps for its answer.
const TIME_TO_ANSWER: Duration = Duration::from_secs(10);

/// The time and the events that interrupt a call.
#[derive(Debug, Clone)]
pub(super) struct Deadline {
    /// Notices when the caller's token is no longer valid, if that ends the call.
    pub(super) validity: Option<Validity>,
    /// When the call has taken as long as it may.
    time_out: Option<TimeOut>,
}

/// A limit on the duration of a call, and when it is reached.
#[derive(Debug, Clone, Copy)]
struct TimeOut {
    limit: Duration,
    at: Instant,
}

impl Deadline {
    /// The deadline of a call that starts now.
    pub(super) fn new(validity: Option<Validity>, limit: Option<Duration>) -> Self {
        // A limit beyond the range of the clock never passes.
        let time_out = limit.and_then(|limit| {
            let at = Instant::now().checked_add(limit)?;
            Some(TimeOut { limit, at })
        });
        Self { validity, time_out }
    }

    /// When a call of many steps must have ended them, so that it has time to store and answer.
    pub(super) fn steps_end(&self) -> Option<Instant> {
        let TimeOut { limit, at } = self.time_out?;
        at.checked_sub((limit / 4).min(TIME_TO_ANSWER))
    }

    /// Waits until the call must end; the reason, and the last message. `stopping` is cancelled
    /// when the time that calls have after a stop of the server is over.
    pub(super) async fn passed(&self, stopping: &CancellationToken) -> (End, Fault) {
        let expired = async {
            match &self.validity {
                Some(validity) => validity.ended().await,
                None => std::future::pending().await,
            }
        };

        let timed_out = async {
            match self.time_out {
                Some(TimeOut { limit, at }) => {
                    sleep_until(at).await;
                    Fault::TimedOut { limit }
                }
                None => std::future::pending().await,
            }
        };

        tokio::select! {
            biased;
            () = expired => (End::Expired, Fault::TokenExpired),
            fault = timed_out => (End::TimedOut, fault),
            () = stopping.cancelled() => (End::Stopped, stopped()),
        }
    }

    fn detach(&mut self) {
        (self.validity, self.time_out) = (None, None);
    }
}

/// The error for a call that a stop interrupts. It does not say whether the call did its
/// work.
fn stopped() -> Fault {
    Fault::Unavailable("The server is stopping. Send the request again.".into())
}

/// A running call. Dropping it, in the span of the call, ends the call: the client cancelled it,
/// or has gone.
pub(super) struct Lifecycle {
    metrics: CallMetrics,
    deadline: Deadline,
    cancellation: Cancellation,
    _permit: Option<Permit>,
    end: Option<End>,
}

impl Lifecycle {
    pub(super) fn new(
        metrics: CallMetrics,
        deadline: Deadline,
        cancellation: Cancellation,
        permit: Option<Permit>,
    ) -> Self {
        Self { metrics, deadline, cancellation, _permit: permit, end: None }
    }

    pub(super) fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// The reader of the result.
    pub(super) fn reader(&self) -> Reader {
        self.metrics.reader()
    }

    /// The deadline of a task: it does not depend on the token of the request that began it,
    /// and a task may run until it expires.
    pub(super) fn detach(&mut self) {
        self.deadline.detach();
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
            Span::current().record("error.type", error_type);
        }

        self.metrics.record(end);
        // Cancels the work that the handler has started elsewhere.
        self.cancellation.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_may_take_as_long_as_its_limit_and_a_task_longer() {
        let limit = Duration::from_secs(600);
        let mut deadline = Deadline::new(None, Some(limit));
        let stopping = CancellationToken::new();

        let begun = Instant::now();
        assert_eq!(deadline.passed(&stopping).await, (End::TimedOut, Fault::TimedOut { limit }));
        assert_eq!(begun.elapsed(), limit);

        let unlimited = Deadline::new(None, None);
        deadline.detach();
        for deadline in [deadline, unlimited] {
            let passed = tokio::time::timeout(1_000 * limit, deadline.passed(&stopping)).await;
            passed.expect_err("it never passes");
        }
    }
}
