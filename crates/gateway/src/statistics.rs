//! [`Statistics`] of an upstream since it was configured.

use std::sync::atomic::{AtomicU64, Ordering};

use larder_runtime::metric::{self, Label};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::UpstreamError;

/// The counters and last events of an upstream.
#[derive(Default)]
pub(super) struct Statistics {
    failures: AtomicU64,
    kept_out: AtomicU64,
    last_error: Mutex<Option<StatedError>>,
}

/// An error of an upstream.
#[derive(Clone)]
pub(super) struct StatedError {
    pub(super) at: Instant,
    /// The class of the error, as in metrics.
    pub(super) kind: &'static str,
    pub(super) text: String,
}

impl Statistics {
    /// A process could not be started, or has ended by itself.
    pub(super) fn count_failure(&self, error: String) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.set_error("start", error);
    }

    /// A call has ended, after it began at `started`.
    pub(super) fn count_call(
        &self,
        upstream: Label,
        started: Instant,
        error: Option<&UpstreamError>,
    ) {
        let kind = Label::fixed(error.map_or("", UpstreamError::kind));
        metric::histogram(
            "larder_upstream_request_duration_seconds",
            [("upstream", upstream), ("error_type", kind)],
        )
        .record(started.elapsed());

        match error {
            // A refusal is the upstream's own answer, and a failed start has been counted already.
            None | Some(UpstreamError::Refused(_) | UpstreamError::Start(_)) => {}
            Some(error) if error.is_callers() => {}
            Some(error) => self.set_error(error.kind(), error.to_string()),
        }
    }

    pub(super) fn count_kept_out(&self, bytes: u64) {
        self.kept_out.fetch_add(bytes, Ordering::Relaxed);
    }

    fn set_error(&self, kind: &'static str, text: String) {
        *self.last_error.lock() = Some(StatedError { at: Instant::now(), kind, text });
    }

    /// How often a process could not be started or has ended by itself.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The bytes of results that were stored instead of sent.
    pub(super) fn kept_out(&self) -> u64 {
        self.kept_out.load(Ordering::Relaxed)
    }

    /// The last error.
    pub(super) fn last_error(&self) -> Option<StatedError> {
        self.last_error.lock().clone()
    }
}
