//! [`FetchSlots`]: how many client metadata documents are fetched at the same time.

use std::{collections::HashMap, hash::Hash, net::IpAddr, time::Duration};

use parking_lot::Mutex;

use super::{FetchLimit, Problem, rate::host_of};

/// The most documents that are fetched for clients of one address.
const PER_ADDRESS: usize = 8;
/// The most documents that are fetched from one host. Twice as many as for one address, so that no
/// single address keeps others from a host.
const PER_HOST: usize = 2 * PER_ADDRESS;
/// The most documents that are fetched in all.
const TOTAL: usize = 256;
const RETRY: Duration = Duration::from_secs(1);

/// The slots of one server. An address that nobody fetches for, and a host that nobody fetches
/// from, has no entry.
#[derive(Debug, Default)]
pub(super) struct FetchSlots {
    used: Mutex<UsedSlots>,
}

#[derive(Debug, Default)]
struct UsedSlots {
    total: usize,
    addresses: HashMap<IpAddr, usize>,
    hosts: HashMap<String, usize>,
}

/// One document that is being fetched.
#[derive(Debug)]
pub(super) struct FetchSlot<'a> {
    slots: &'a FetchSlots,
    address: IpAddr,
    host: String,
}

impl FetchSlots {
    /// A slot for a client of this address, whose document is at this host.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(super) fn take(&self, peer: Option<IpAddr>, host: &str) -> Result<FetchSlot<'_>, Problem> {
        let address = host_of(peer);
        let mut used = self.used.lock();

        let limit = if used.addresses.get(&address).is_some_and(|number| *number >= PER_ADDRESS) {
            Some(FetchLimit::Address)
        } else if used.hosts.get(host).is_some_and(|number| *number >= PER_HOST) {
            Some(FetchLimit::Host(host.to_owned()))
        } else if used.total >= TOTAL {
            Some(FetchLimit::Total)
        } else {
            None
        };
        if let Some(limit) = limit {
            return Err(Problem::Busy(limit, RETRY));
        }

        used.total += 1;
        *used.addresses.entry(address).or_default() += 1;
        *used.hosts.entry(host.to_owned()).or_default() += 1;
        Ok(FetchSlot { slots: self, address, host: host.to_owned() })
    }
}

impl Drop for FetchSlot<'_> {
    fn drop(&mut self) {
        let mut used = self.slots.used.lock();
        used.total -= 1;
        release(&mut used.addresses, &self.address);
        release(&mut used.hosts, &self.host);
    }
}

fn release<K: Hash + Eq>(used: &mut HashMap<K, usize>, key: &K) {
    if let Some(number) = used.get_mut(key) {
        *number -= 1;
        if *number == 0 {
            used.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The limit that a client of this address reaches with a document at this host.
    fn refusal(slots: &FetchSlots, address: &str, host: &str) -> Option<String> {
        let taken = slots.take(address.parse().ok(), host);
        taken.err().map(|problem| problem.to_string())
    }

    #[test]
    fn the_sixteen_slow_documents_of_one_address_leave_slots_for_all_others() {
        let slots = FetchSlots::default();
        let stranger = "2001:db8::1".parse().ok();
        let slow: Vec<_> = (0..16).filter_map(|_| slots.take(stranger, "a.example").ok()).collect();
        assert_eq!(slow.len(), PER_ADDRESS);

        let said = refusal(&slots, "2001:db8::2", "b.example").unwrap();
        assert!(said.contains("for clients of this address. Try again"), "{said}");

        for number in 0..40 {
            let address = format!("203.0.113.{number}");
            assert_eq!(refusal(&slots, &address, "a.example"), None, "{address}");
        }

        drop(slow);
        assert!(slots.used.lock().addresses.is_empty() && slots.used.lock().hosts.is_empty());
        assert_eq!(refusal(&slots, "2001:db8::2", "b.example"), None);
    }

    #[test]
    fn a_host_and_all_hosts_have_limits_that_are_named() {
        let slots = FetchSlots::default();
        let mut taken: Vec<_> = (0..PER_HOST)
            .map(|number| {
                let address = format!("203.0.113.{}", number % 2).parse().ok();
                slots.take(address, "a.example").unwrap()
            })
            .collect();

        let said = refusal(&slots, "203.0.113.9", "a.example").unwrap();
        assert!(said.contains("from a.example. Try again"), "{said}");
        assert_eq!(refusal(&slots, "203.0.113.9", "b.example"), None);

        for number in PER_HOST..TOTAL {
            let address = format!("2001:db8:0:{number:x}::1").parse().ok();
            taken.push(slots.take(address, &format!("{number}.example")).unwrap());
        }

        let said = refusal(&slots, "203.0.113.9", "b.example").unwrap();
        assert!(said.contains("are being fetched. Try again"), "{said}");
    }
}
