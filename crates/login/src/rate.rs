//! [`RateLimit`]: how often an address may do what needs no login.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use larder_network::machine_network;
use larder_runtime::clock::Clock;
use larder_runtime::rate::Bucket;
use parking_lot::Mutex;
use quick_cache::sync::Cache;

use super::Problem;

const WINDOW: Duration = Duration::from_secs(60);
/// The most addresses that are counted at once. A further one replaces one that was not seen for a
/// long time: a network with so many addresses gains nothing by it, and nobody else is refused.
const MAX_ADDRESSES: usize = 10_000;

/// Limits requests per address and minute.
#[derive(Debug)]
pub struct RateLimit {
    per_minute: u32,
    clock: Arc<dyn Clock>,
    addresses: Cache<IpAddr, Arc<Mutex<Bucket>>>,
}

impl RateLimit {
    /// Allows `per_minute` attempts in a minute to each address.
    pub fn new(per_minute: u32, clock: Arc<dyn Clock>) -> Self {
        Self { per_minute, clock, addresses: Cache::new(MAX_ADDRESSES) }
    }

    /// Counts a request of this address.
    pub fn check(&self, peer: Option<IpAddr>) -> Result<(), Problem> {
        let now = self.clock.now();
        let full = || Ok::<_, Infallible>(Arc::new(Mutex::new(Bucket::full(self.per_minute, now))));
        let Ok(bucket) = self.addresses.get_or_insert_with(&host_of(peer), full);
        bucket.lock().take(self.per_minute, WINDOW, now).map_err(Problem::Limited)
    }
}

/// The address that stands for a host: one host of IPv6 has at least the addresses of a /64.
pub fn host_of(peer: Option<IpAddr>) -> IpAddr {
    peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), machine_network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_runtime::clock::ManualClock;

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

    #[test]
    fn many_addresses_take_the_place_of_nobody_else() {
        let clock = ManualClock::new();
        let limit = RateLimit::new(1, Arc::new(clock));

        for n in 0..3 * u32::try_from(MAX_ADDRESSES).expect("it is small") {
            let [high, low] = [n >> 16, n & 0xffff].map(|n| u16::try_from(n).expect("16 bits"));
            let address = Ipv6Addr::new(0x2001, 0xdb8, high, low, 0, 0, 0, 1);
            assert!(limit.check(Some(address.into())).is_ok());
        }

        assert!(limit.addresses.len() <= MAX_ADDRESSES);
        let other = "10.0.0.1".parse().ok();
        assert!(limit.check(other).is_ok() && limit.check(other).is_err());
    }
}
