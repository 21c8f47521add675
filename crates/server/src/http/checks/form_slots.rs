//! [`FormSlots`]: how many forms of logins and registrations are read at the same time. Nobody is
//! known before a form is read, so no limit of a caller counts it.

use std::{collections::HashMap, net::IpAddr};

use larder_login::host_of;
use parking_lot::Mutex;

/// The most forms of one address. A proxy that is not trusted has the address of all its users, so
/// there are more than one person needs.
const PER_ADDRESS: usize = 64;
/// The most forms in all: 1,024 of 48 KiB.
const TOTAL: usize = 1_024;

/// The slots of one server. An address without a form has no entry.
#[derive(Debug, Default)]
pub struct FormSlots {
    used: Mutex<UsedSlots>,
}

#[derive(Debug, Default)]
struct UsedSlots {
    total: usize,
    addresses: HashMap<IpAddr, usize>,
}

/// A form that is read.
#[derive(Debug)]
pub(in crate::http) struct FormSlot<'a> {
    slots: &'a FormSlots,
    address: IpAddr,
}

impl FormSlots {
    /// A slot for a form from this address, if there is one.
    pub(in crate::http) fn take(&self, peer: Option<IpAddr>) -> Option<FormSlot<'_>> {
        let address = host_of(peer);
        let mut used = self.used.lock();

        let own = used.addresses.get(&address).copied().unwrap_or_default();
        if own >= PER_ADDRESS || used.total >= TOTAL {
            return None;
        }

        used.total += 1;
        used.addresses.insert(address, own + 1);
        Some(FormSlot { slots: self, address })
    }
}

impl Drop for FormSlot<'_> {
    fn drop(&mut self) {
        let mut used = self.slots.used.lock();
        used.total -= 1;
        if let Some(own) = used.addresses.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                used.addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_slots_for_all_others_until_all_are_taken() {
        let slots = FormSlots::default();
        let address = |host: usize| format!("2001:db8:0:{host:x}::1").parse().ok();

        let held: Vec<_> = (0..2 * TOTAL).filter_map(|_| slots.take(address(0))).collect();
        assert_eq!(held.len(), PER_ADDRESS);
        assert!(slots.take("2001:db8::2".parse().ok()).is_none(), "the same host");

        let others: Vec<_> = (1..2 * TOTAL).filter_map(|host| slots.take(address(host))).collect();
        assert_eq!(others.len(), TOTAL - PER_ADDRESS);

        drop((held, others));
        assert!(slots.used.lock().addresses.is_empty() && slots.used.lock().total == 0);
        assert!(slots.take(address(0)).is_some());
    }
}
