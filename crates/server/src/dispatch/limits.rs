//! [`DispatchLimits`]: what a single call may take.

use std::time::Duration;

/// Limits on a single call.
#[derive(Debug, Clone)]
pub struct DispatchLimits {
    /// The maximum content of one `resources/read` response, in bytes.
    pub read_bytes: u64,
    /// The maximum content that the references in one call's arguments bring, in bytes.
    pub ref_bytes: u64,
    /// How long a call may take, unless it becomes a task.
    pub call_timeout: Option<Duration>,
}

impl Default for DispatchLimits {
    /// 16 MiB, 8 MiB for references, and ten minutes.
    fn default() -> Self {
        let call_timeout = Some(Duration::from_secs(600));
        Self { read_bytes: 16 << 20, ref_bytes: 8 << 20, call_timeout }
    }
}
