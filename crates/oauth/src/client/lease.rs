//! [`RefreshLease`]: of all requests on all instances, one uses a refresh token.

use std::time::Duration;

use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

/// The time until which one request may refresh tokens. Kept beside the tokens in a record that is
/// replaced by version, so that of several requests that take the lease, one stores it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RefreshLease(Option<Timestamp>);

impl RefreshLease {
    /// Takes the lease for a while. Returns `false` if another request has it.
    #[must_use]
    pub fn take(&mut self, now: Timestamp, duration: Duration) -> bool {
        let is_free = self.0.is_none_or(|until| until <= now);
        if is_free {
            self.0 = Some(now.saturating_add(duration));
        }
        is_free
    }

    /// Ends the lease.
    pub fn release(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn one_request_has_the_lease_until_it_releases_it_or_takes_too_long() {
        let second = Duration::from_secs(1);
        let start = Timestamp::from_millis(1_000);
        let mut lease = RefreshLease::default();

        assert!(lease.take(start, second));
        let taken = lease;
        assert!(!lease.take(start, second));
        assert!(!lease.take(Timestamp::from_millis(1_999), second));
        assert_eq!(lease, taken, "a refused request does not prolong it");

        assert!(lease.take(Timestamp::from_millis(2_000), second));
        lease.release();
        assert!(lease.take(Timestamp::from_millis(2_000), second));
    }

    #[test]
    fn a_stored_lease_is_a_time_or_nothing() {
        let stored = |lease: RefreshLease| serde_json::to_string(&lease).unwrap();
        assert_eq!(stored(RefreshLease::default()), "null");

        let mut lease = RefreshLease::default();
        assert!(lease.take(Timestamp::from_millis(1_000), Duration::from_secs(1)));
        assert_eq!(serde_json::from_str::<RefreshLease>(&stored(lease)).unwrap(), lease);
    }
}
