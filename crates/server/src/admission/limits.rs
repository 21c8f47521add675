//! The limits, and the error of a reached one.

use std::time::Duration;

use larder_runtime::metric::{self, Label};

/// The use that a permit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermitKind {
    Requests,
    Calls,
    Streams,
    Transfers,
    BodyBytes,
}

/// The level at which usage is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitLevel {
    /// One caller's.
    Caller,
    /// That of all callers together.
    Total,
}

/// The most that may be in use at the same time. Zero means unlimited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maximums {
    /// Requests, from authentication to the head of the response.
    pub requests: usize,
    /// Calls.
    pub calls: usize,
    /// Open streams for change notifications.
    pub streams: usize,
    /// Contents that are sent or received over HTTP.
    pub transfers: usize,
    /// Bytes of request bodies that are received or in use.
    pub body_bytes: usize,
}

impl Maximums {
    pub(super) fn of(&self, kind: PermitKind) -> usize {
        match kind {
            PermitKind::Requests => self.requests,
            PermitKind::Calls => self.calls,
            PermitKind::Streams => self.streams,
            PermitKind::Transfers => self.transfers,
            PermitKind::BodyBytes => self.body_bytes,
        }
    }
}

/// All limits of admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Requests of one caller per window. They may come in a burst. Zero means unlimited.
    pub requests_per_window: u32,
    /// The length of the window.
    pub window: Duration,
    /// The limits of one caller.
    pub caller: Maximums,
    /// The limits of all callers together.
    pub total: Maximums,
}

impl Default for AdmissionLimits {
    /// For a server with 1 GiB of memory and two cores.
    fn default() -> Self {
        Self {
            requests_per_window: 60_000,
            window: Duration::from_secs(60),
            caller: Maximums {
                requests: 512,
                calls: 256,
                streams: 1_000,
                transfers: 16,
                body_bytes: 64 << 20,
            },
            total: Maximums {
                requests: 4_096,
                calls: 2_048,
                streams: 10_000,
                transfers: 64,
                body_bytes: 256 << 20,
            },
        }
    }
}

/// A limit is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LimitReached {
    /// Names the limit and its setting.
    pub message: String,
    /// The delay before a retry.
    pub retry_after: Duration,
    /// The level of the limit.
    pub level: LimitLevel,
}

/// Counts a refusal by the setting of its limit.
fn reached(setting: &'static str) {
    metric::counter("larder_limits_reached_total", [("setting", Label::fixed(setting))])
        .increment(1);
}

impl LimitReached {
    pub(super) fn new(kind: PermitKind, level: LimitLevel, max: usize) -> Self {
        let what = match kind {
            PermitKind::Requests => "requests",
            PermitKind::Calls => "calls",
            PermitKind::Streams => "open streams",
            PermitKind::Transfers => "transfers of content",
            PermitKind::BodyBytes => "bytes of request bodies",
        };

        let setting = match (level, kind) {
            (LimitLevel::Caller, PermitKind::Requests) => "limits.concurrent_requests",
            (LimitLevel::Caller, PermitKind::Calls) => "limits.concurrent_calls",
            (LimitLevel::Caller, PermitKind::Streams) => "limits.open_streams",
            (LimitLevel::Caller, PermitKind::Transfers) => "limits.transfers",
            (LimitLevel::Caller, PermitKind::BodyBytes) => "limits.caller_body_bytes",
            (LimitLevel::Total, PermitKind::Requests) => "limits.total_requests",
            (LimitLevel::Total, PermitKind::Calls) => "limits.total_calls",
            (LimitLevel::Total, PermitKind::Streams) => "limits.total_streams",
            (LimitLevel::Total, PermitKind::Transfers) => "limits.total_transfers",
            (LimitLevel::Total, PermitKind::BodyBytes) => "limits.total_body_bytes",
        };

        reached(setting);
        let message = match (level, kind) {
            (LimitLevel::Caller, PermitKind::Streams) => {
                format!("One caller may have at most {max} {what} ({setting}). Close one.")
            }
            (LimitLevel::Caller, _) => format!(
                "One caller may have at most {max} {what} at the same time ({setting}). Wait for one to end."
            ),
            (LimitLevel::Total, _) => format!(
                "This server accepts at most {max} {what} at the same time ({setting}). Try again shortly."
            ),
        };

        Self { message, retry_after: Duration::from_secs(1), level }
    }

    /// The caller sent too many requests within the window.
    pub(super) fn rate(requests: u32, window: Duration, retry_after: Duration) -> Self {
        reached("limits.requests_per_window");
        let message = format!(
            "At most {requests} requests in {} seconds are accepted from one caller (limits.requests_per_window).",
            window.as_secs_f64()
        );
        Self { message, retry_after, level: LimitLevel::Caller }
    }
}
