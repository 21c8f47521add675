//! Counts open connections, in all and by address.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use larder_network::machine_network;
use parking_lot::Mutex;

/// A limit on connections: its setting and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionLimit {
    pub(super) setting: &'static str,
    pub(super) max: usize,
}

/// The number of open connections.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionCount(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A counted connection, until dropped.
pub(super) struct ConnectionSlot {
    count: ConnectionCount,
    address: IpAddr,
}

impl ConnectionCount {
    /// Counts a connection, unless there are `max` or `max_per_address` (0 for no limit).
    ///
    /// # Errors
    /// The reached limit.
    pub(super) fn try_acquire(
        &self,
        address: IpAddr,
        max: usize,
        max_per_address: usize,
    ) -> Result<ConnectionSlot, ConnectionLimit> {
        let address = machine_network(address);
        let mut counts = self.0.lock();

        if counts.total >= max {
            return Err(ConnectionLimit { setting: "limits.connections", max });
        }

        let of_address = counts.by_address.entry(address).or_default();
        if max_per_address != 0 && *of_address >= max_per_address {
            let setting = "limits.connections_per_address";
            return Err(ConnectionLimit { setting, max: max_per_address });
        }

        *of_address += 1;
        counts.total += 1;
        Ok(ConnectionSlot { count: self.clone(), address })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.count.0.lock();
        counts.total -= 1;
        if let Entry::Occupied(mut of_address) = counts.by_address.entry(self.address) {
            *of_address.get_mut() -= 1;
            if *of_address.get() == 0 {
                of_address.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn connections_are_limited_by_address_and_in_all() {
        let count = ConnectionCount::default();
        let acquire = |address: &str| count.try_acquire(address.parse().unwrap(), 3, 2);
        let held = [acquire("10.0.0.1").ok(), acquire("::ffff:10.0.0.1").ok()];

        let refused = acquire("10.0.0.1").err().unwrap();
        assert_eq!((refused.setting, refused.max), ("limits.connections_per_address", 2));

        let third = acquire("10.0.0.2").ok().unwrap();
        let refused = acquire("10.0.0.3").err().unwrap();
        assert_eq!((refused.setting, refused.max), ("limits.connections", 3));

        drop(held);
        let _held =
            [acquire("2001:db8::1").ok().unwrap(), acquire("2001:db8::ffff:1").ok().unwrap()];
        drop(third);
        assert_eq!(acquire("2001:db8::2").err().unwrap().setting, "limits.connections_per_address");

        drop(acquire("2001:db8:0:1::1").ok().unwrap());
        // Only addresses with connections take memory.
        assert_eq!(count.0.lock().by_address.len(), 1);
    }
}
