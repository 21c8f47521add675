//! `[limits]`: limits on requests and responses.

use std::time::Duration;

use larder_server::{
    admission::{AdmissionLimits, Maximums},
    dispatch::DispatchLimits,
    http::BodyLimits,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// The longest time of a limit.
const MAX_SECONDS: u64 = 365 * 24 * 3600;

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Seconds in which the next part of a request body has to arrive: `limits.body_rate` times
    /// this many bytes. A slower body gets a 408.
    pub body_timeout: u64,
    /// Minimum rate of a request body in bytes per second.
    pub body_rate: u32,
    /// JSON values in a request body, at every depth. Many small values use far more memory than
    /// their bytes. The json argument of `create_resource` and update_resource is stored as it is
    /// and does not count.
    pub body_values: usize,

    /// Bytes that resources/read returns at once.
    pub read_bytes: u64,
    /// Bytes that the references in the arguments of one call bring. See docs/gateway.md.
    pub ref_bytes: u64,
    /// Seconds that a call may take, waiting for answers of its client included; 0 for no limit.
    /// Progress does not extend it. A call that becomes a task may run until `tasks.ttl` instead.
    pub call_timeout: u64,

    /// Requests of one caller within `limits.window`; 0 for no limit.
    pub requests_per_window: u32,
    /// Length of the window in seconds.
    pub window: u64,
    /// Concurrent requests of one caller, from authentication to the head of the response; 0 for no
    /// limit. Without authentication all callers are one.
    pub concurrent_requests: usize,
    /// Concurrent calls of one caller; 0 for no limit.
    pub concurrent_calls: usize,
    /// Open streams of one caller that wait for notifications; 0 for no limit.
    pub open_streams: usize,
    /// Concurrent downloads and uploads of the content of one caller over HTTP; 0 for no limit.
    pub transfers: usize,
    /// Bytes of request bodies of one caller that are received or in use; 0 for no limit, otherwise
    /// at least `limits.body_bytes`.
    pub caller_body_bytes: usize,

    /// Concurrent requests of all callers together; 0 for no limit.
    pub total_requests: usize,
    /// Concurrent calls of all callers together; 0 for no limit.
    pub total_calls: usize,
    /// Open streams of all callers together that wait for notifications; 0 for no limit.
    pub total_streams: usize,
    /// Concurrent downloads and uploads of the content of all callers over HTTP; 0 for no limit. In
    /// S3 a download buffers up to 6 MiB, an upload up to 16 MiB.
    pub total_transfers: usize,
    /// Bytes of request bodies of all callers together; 0 for no limit, otherwise at least
    /// `limits.body_bytes`.
    pub total_body_bytes: usize,

    /// Bytes of all upstreams together, parsed values included: their lists, and messages that are
    /// received, in use or on the way to a client. A caller holds at most twice what is free, and
    /// at one upstream at most what is free. A message over this share waits for 10 seconds, then
    /// its call fails; where all callers share the upstream, its call fails at once.
    pub upstream_bytes: usize,

    /// Connections of all callers together. Connections over the limit get a 503.
    pub connections: usize,
    /// Connections from one address, or from one IPv6 network of 64 bits; 0 for no limit. Behind a
    /// proxy all connections come from its address.
    pub connections_per_address: usize,

    /// Seconds that the head of a request may take; for the first request of a connection with the
    /// TLS handshake. This and the two below need a restart.
    pub head_timeout: u64,
    /// Seconds that a connection may wait for another request. It must be longer than a proxy in
    /// front keeps idle connections to this server, or the proxy's request can meet the end of its
    /// connection (502).
    pub idle_timeout: u64,
    /// Seconds that a client may take none of the data that is sent to it, on a connection or on a
    /// stream of HTTP/2.
    pub write_timeout: u64,
}

impl LimitsConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let positive = [
            ("limits.body_bytes", self.body_bytes as u64),
            ("limits.body_timeout", self.body_timeout),
            ("limits.body_rate", self.body_rate.into()),
            ("limits.body_values", self.body_values as u64),
            ("limits.read_bytes", self.read_bytes),
            ("limits.ref_bytes", self.ref_bytes),
            ("limits.upstream_bytes", self.upstream_bytes as u64),
            ("limits.window", self.window),
            ("limits.connections", self.connections as u64),
            ("limits.head_timeout", self.head_timeout),
            ("limits.idle_timeout", self.idle_timeout),
            ("limits.write_timeout", self.write_timeout),
        ];

        positive
            .iter()
            .try_for_each(|(name, value)| ConfigError::require_positive(name, *value))?;

        // The clock cannot represent deadlines that are arbitrarily far away.
        for (setting, seconds) in [
            ("limits.body_timeout", self.body_timeout),
            ("limits.call_timeout", self.call_timeout),
            ("limits.window", self.window),
            ("limits.head_timeout", self.head_timeout),
            ("limits.idle_timeout", self.idle_timeout),
            ("limits.write_timeout", self.write_timeout),
        ] {
            if seconds > MAX_SECONDS {
                let problem = format!("{seconds} is more than {MAX_SECONDS} seconds (a year)");
                return Err(ConfigError::new(setting, problem));
            }
        }

        for (setting, bytes) in [
            ("limits.caller_body_bytes", self.caller_body_bytes),
            ("limits.total_body_bytes", self.total_body_bytes),
        ] {
            if bytes != 0 && bytes < self.body_bytes {
                let max = self.body_bytes;
                let problem = format!("{bytes} is less than limits.body_bytes ({max})");
                return Err(ConfigError::new(setting, problem));
            }
        }

        Ok(())
    }

    /// The limits of request bodies.
    pub fn body(&self) -> BodyLimits {
        BodyLimits {
            bytes: self.body_bytes,
            values: self.body_values,
            timeout: Duration::from_secs(self.body_timeout),
            rate: self.body_rate,
        }
    }

    /// The limits on a single call.
    pub fn per_call(&self) -> DispatchLimits {
        DispatchLimits {
            read_bytes: self.read_bytes,
            ref_bytes: self.ref_bytes,
            call_timeout: (self.call_timeout > 0).then(|| Duration::from_secs(self.call_timeout)),
        }
    }

    /// The limits of admission.
    pub fn admission(&self) -> AdmissionLimits {
        AdmissionLimits {
            requests_per_window: self.requests_per_window,
            window: Duration::from_secs(self.window),
            caller: Maximums {
                requests: self.concurrent_requests,
                calls: self.concurrent_calls,
                streams: self.open_streams,
                transfers: self.transfers,
                body_bytes: self.caller_body_bytes,
            },
            total: Maximums {
                requests: self.total_requests,
                calls: self.total_calls,
                streams: self.total_streams,
                transfers: self.total_transfers,
                body_bytes: self.total_body_bytes,
            },
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let AdmissionLimits { requests_per_window, window, caller, total } =
            AdmissionLimits::default();
        let DispatchLimits { read_bytes, ref_bytes, call_timeout } = DispatchLimits::default();
        let body = BodyLimits::default();

        Self {
            body_bytes: body.bytes,
            body_timeout: body.timeout.as_secs(),
            body_rate: body.rate,
            body_values: body.values,
            read_bytes,
            ref_bytes,
            call_timeout: call_timeout.map_or(0, |limit| limit.as_secs()),
            requests_per_window,
            window: window.as_secs(),
            concurrent_requests: caller.requests,
            concurrent_calls: caller.calls,
            open_streams: caller.streams,
            transfers: caller.transfers,
            caller_body_bytes: caller.body_bytes,
            total_requests: total.requests,
            total_calls: total.calls,
            total_streams: total.streams,
            total_transfers: total.transfers,
            total_body_bytes: total.body_bytes,
            upstream_bytes: 128 << 20,
            connections: 10_000,
            connections_per_address: 5_000,
            head_timeout: 30,
            idle_timeout: 150,
            write_timeout: 60,
        }
    }
}
