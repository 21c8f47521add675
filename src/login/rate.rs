//! [`RateLimit`]: how often an address may do what needs no login.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::Problem;
use crate::{
    admission::Bucket,
    clock::{Clock, Timestamp},
};

const WINDOW: Duration = Duration::from_secs(60);
/// The most addresses that are counted at once. Others wait until some are idle.
const MAX_ADDRESSES: usize = 10_000;

/// Limits requests per address and minute.
#[derive(Debug)]
pub(super) struct RateLimit {
    per_minute: u32,
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    addresses: HashMap<IpAddr, Bucket>,
    last_sweep: Option<Timestamp>,
}

impl RateLimit {
    pub(super) fn new(per_minute: u32, clock: Arc<dyn Clock>) -> Self {
        Self { per_minute, clock, table: Mutex::default() }
    }

    /// Counts a request of this address.
    pub(super) fn check(&self, peer: Option<IpAddr>) -> Result<(), Problem> {
        let (now, key) = (self.clock.now(), key(peer));
        let mut table = self.table.lock();
        if !table.addresses.contains_key(&key) && table.addresses.len() >= MAX_ADDRESSES {
            // At most once a second, so that a request does not look at all of them.
            if table.last_sweep.is_none_or(|last| now.since(last) >= Duration::from_secs(1)) {
                table.last_sweep = Some(now);
                table.addresses.retain(|_, bucket| !bucket.is_idle(WINDOW, now));
            }
            if table.addresses.len() >= MAX_ADDRESSES {
                return Err(Problem::Limited(WINDOW));
            }
        }
        let bucket =
            table.addresses.entry(key).or_insert_with(|| Bucket::full(self.per_minute, now));
        bucket.take(self.per_minute, WINDOW, now).map_err(Problem::Limited)
    }
}

/// One host of IPv6 has at least the addresses of a /64.
fn key(peer: Option<IpAddr>) -> IpAddr {
    match peer.map(|peer| peer.to_canonical()) {
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        Some(address) => address,
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn each_address_has_its_own_limit() {
        let clock = ManualClock::new();
        let limit = RateLimit::new(2, Arc::new(clock.clone()));
        let [one, other] = ["2001:db8::1", "10.0.0.1"].map(|ip| ip.parse::<IpAddr>().ok());
        let neighbour = "2001:db8::2".parse().ok();
        assert!(limit.check(one).is_ok() && limit.check(neighbour).is_ok());
        let refused = limit.check(one);
        assert!(matches!(refused, Err(Problem::Limited(after)) if after <= WINDOW));
        assert!(limit.check(other).is_ok());
        clock.advance(WINDOW / 2);
        assert!(limit.check(one).is_ok() && limit.check(one).is_err());
    }
}
