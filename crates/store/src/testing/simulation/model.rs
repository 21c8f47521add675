//! [`Model`]: the expected state of the store, in 64 bytes for each owner and 16 bytes for each
//! expiry.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
};

use super::OwnerLimits;
use crate::store::ChangeKind;

/// The number of URIs of each owner.
pub(super) const SLOTS: usize = 4;

/// The number of an owner, and of one of the owner's URIs.
pub(super) type ResourceKey = (u32, u8);

/// A change that a subscriber of the owner receives.
pub(super) type Announced = (ChangeKind, u8);

/// An owner and a changed URI; `None` is the list of the owner's resources.
pub(super) type ChangedThing = (u32, Option<u8>);

/// A live resource. `current` is 0 if the resource does not exist.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ResourceSlot {
    /// The bytes that the current revision counts.
    current: u32,
    /// The bytes that the revision before counts; 0 if there is none.
    past: u32,
    /// The expiry, in milliseconds since the epoch.
    expires: u64,
}

/// The expected resources of all owners.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) limits: OwnerLimits,
    owners: Vec<[ResourceSlot; SLOTS]>,
    /// The expiries of resources, with expiries that were moved since.
    expiries: BinaryHeap<Reverse<(u64, u32, u8)>>,
    /// The changes since the consumer of coalesced changes was checked.
    pub(super) changed: HashSet<ChangedThing>,
    pub(super) resources: u64,
    pub(super) bytes: u64,
}

impl ResourceSlot {
    fn is_live(self) -> bool {
        self.current > 0
    }

    fn bytes(self) -> u64 {
        u64::from(self.current) + u64::from(self.past)
    }
}

impl Model {
    pub(super) fn new(owners: u32, limits: OwnerLimits) -> Self {
        let owners = vec![[ResourceSlot::default(); SLOTS]; owners as usize];
        Self {
            limits,
            owners,
            expiries: BinaryHeap::new(),
            changed: HashSet::new(),
            resources: 0,
            bytes: 0,
        }
    }

    /// The bytes of memory that the model takes.
    pub(super) fn memory(&self) -> u64 {
        let owners = self.owners.capacity() * size_of::<[ResourceSlot; SLOTS]>();
        let expiries = self.expiries.capacity() * size_of::<(u64, u32, u8)>();
        let changed = self.changed.capacity() * (size_of::<ChangedThing>() + 1);
        (owners + expiries + changed) as u64
    }

    pub(super) fn is_live(&self, (owner, slot): ResourceKey) -> bool {
        self.owners[owner as usize][usize::from(slot)].is_live()
    }

    /// The live URIs of an owner, in order.
    pub(super) fn live(&self, owner: u32) -> Vec<u8> {
        (0u8..).take(SLOTS).filter(|slot| self.is_live((owner, *slot))).collect()
    }

    /// The bytes that the owner's live resources count.
    pub(super) fn used(&self, owner: u32) -> u64 {
        self.owners[owner as usize].iter().map(|slot| slot.bytes()).sum()
    }

    /// Removes the expired resources of an owner. Returns the changes, in their order.
    pub(super) fn expire_owner(&mut self, owner: u32, now: u64) -> Vec<Announced> {
        let slots = &self.owners[owner as usize];
        let is_due = |slot: &ResourceSlot| slot.is_live() && slot.expires <= now;
        let mut due: Vec<(u64, u8)> =
            (0u8..).zip(slots).filter(|(_, s)| is_due(s)).map(|(n, s)| (s.expires, n)).collect();
        due.sort_unstable();

        let due = due.into_iter();
        due.map(|(_, slot)| self.remove((owner, slot), ChangeKind::Expired)).collect()
    }

    /// Removes the resource that expires next, if it has expired.
    pub(super) fn expire_next(&mut self, now: u64) -> Option<(u32, Announced)> {
        while let Some(Reverse((at, owner, slot))) = self.expiries.peek().copied()
            && at <= now
        {
            self.expiries.pop();

            let found = self.owners[owner as usize][usize::from(slot)];
            if found.is_live() && found.expires == at {
                return Some((owner, self.remove((owner, slot), ChangeKind::Expired)));
            }
        }
        None
    }

    pub(super) fn delete(&mut self, key: ResourceKey) -> Option<Announced> {
        self.is_live(key).then(|| self.remove(key, ChangeKind::Deleted))
    }

    /// Removes a resource, and announces that.
    fn remove(&mut self, key @ (owner, slot): ResourceKey, kind: ChangeKind) -> Announced {
        let removed = std::mem::take(&mut self.owners[owner as usize][usize::from(slot)]);
        self.resources -= 1;
        self.bytes -= removed.bytes();

        self.announce(key, kind)
    }

    /// Writes a resource, if the quota allows it. `expires` is `None` if the expiry stays.
    pub(super) fn write(
        &mut self,
        key: ResourceKey,
        size: u32,
        expires: Option<u64>,
    ) -> Option<Announced> {
        let (owner, slot) = key;
        let is_new = !self.is_live(key);

        // The store counts the content when it arrives and the metadata at the end, and may drop the
        // earlier revision each time.
        let fits = self.make_room(key, size)
            && (!is_new || (self.live(owner).len() as u64) < self.limits.quota.resources)
            && self.make_room(key, size + self.limits.metadata);

        if !fits {
            return None;
        }

        let written = &mut self.owners[owner as usize][usize::from(slot)];
        let dropped = std::mem::replace(&mut written.past, written.current);
        written.current = size + self.limits.metadata;
        self.bytes += u64::from(written.current);
        self.bytes -= u64::from(dropped);

        self.resources += u64::from(is_new);

        if let Some(at) = expires {
            written.expires = at;
            self.expiries.push(Reverse((at, owner, slot)));
        }

        Some(self.announce(key, if is_new { ChangeKind::Created } else { ChangeKind::Updated }))
    }

    /// The size of the content of a live resource.
    pub(super) fn size(&self, (owner, slot): ResourceKey) -> u32 {
        let counted = self.owners[owner as usize][usize::from(slot)].current;
        counted.saturating_sub(self.limits.metadata)
    }

    /// Whether an upload of `bytes` fits. Drops the earlier revision if that makes it fit.
    fn make_room(&mut self, (owner, slot): ResourceKey, bytes: u32) -> bool {
        let needed = self.used(owner) + u64::from(bytes);
        let missing = needed.saturating_sub(self.limits.quota.bytes);
        let past = &mut self.owners[owner as usize][usize::from(slot)].past;

        if missing > 0 && u64::from(*past) >= missing {
            self.bytes -= u64::from(std::mem::take(past));
            return true;
        }
        missing == 0
    }

    fn announce(&mut self, (owner, slot): ResourceKey, kind: ChangeKind) -> Announced {
        if kind != ChangeKind::Updated {
            self.changed.insert((owner, None));
        }
        if kind != ChangeKind::Created {
            self.changed.insert((owner, Some(slot)));
        }
        (kind, slot)
    }
}
