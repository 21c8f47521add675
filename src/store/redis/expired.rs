//! What is known of resources whose time is over, so that whoever asks for one
//! hears that it was there. Nothing of it lies in Redis: each replica remembers
//! what it heard.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{auth::Owner, clock::Timestamp, store::ResourceUri};

/// How many are remembered.
const REMEMBERED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Expired(Mutex<Remembered>);

type Name = (Owner, ResourceUri);

#[derive(Debug, Default)]
struct Remembered {
    at: HashMap<Name, Timestamp>,
    in_order: VecDeque<(Name, Timestamp)>,
}

impl Expired {
    pub(super) fn remember(&self, owner: Owner, uri: ResourceUri, at: Timestamp) {
        let name = (owner, uri);
        let mut remembered = self.lock();
        remembered.at.insert(name.clone(), at);
        remembered.in_order.push_back((name, at));
        if remembered.in_order.len() > REMEMBERED
            && let Some((oldest, at)) = remembered.in_order.pop_front()
            // It may have come back since, and expired again.
            && remembered.at.get(&oldest) == Some(&at)
        {
            remembered.at.remove(&oldest);
        }
    }

    /// The name is in use again.
    pub(super) fn forget(&self, owner: &Owner, uri: &ResourceUri) {
        self.lock().at.remove(&(owner.clone(), uri.clone()));
    }

    pub(super) fn at(&self, owner: &Owner, uri: &ResourceUri) -> Option<Timestamp> {
        self.lock().at.get(&(owner.clone(), uri.clone())).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_the_rest_takes_no_room() {
        let (expired, owner) = (Expired::default(), Owner::new("alice"));
        let uri = |n: usize| ResourceUri::parse(&format!("x:{n}")).expect("it is a URI");
        let at = |n: usize| Timestamp::from_millis(n as u64);
        for n in 0..=REMEMBERED {
            expired.remember(owner.clone(), uri(n), at(n));
            assert_eq!(expired.at(&owner, &uri(n)), Some(at(n)));
        }
        assert_eq!(expired.at(&owner, &uri(0)), None);
        assert_eq!(expired.at(&owner, &uri(1)), Some(at(1)));
        assert_eq!(expired.at(&Owner::new("bob"), &uri(1)), None);
        expired.forget(&owner, &uri(1));
        assert_eq!(expired.at(&owner, &uri(1)), None);
        expired.remember(owner.clone(), uri(1), at(9));
        // The older record of it goes, and it stays.
        expired.remember(owner.clone(), uri(0), at(9));
        assert_eq!(expired.at(&owner, &uri(1)), Some(at(9)));
        let remembered = expired.lock();
        assert!(remembered.at.len() <= REMEMBERED && remembered.in_order.len() == REMEMBERED);
    }
}
