//! What is known of resources whose time is over, so that whoever asks for one
//! hears that it was there.

use std::collections::{HashMap, VecDeque};

use super::ResourceUri;
use crate::{auth::Owner, clock::Timestamp};

/// How many are remembered.
const REMEMBERED: usize = 4096;

type Name = (Owner, ResourceUri);

/// When what had those names expired; the latest of them.
#[derive(Debug, Default)]
pub(super) struct Expired {
    at: HashMap<Name, Timestamp>,
    in_order: VecDeque<(Name, Timestamp)>,
}

impl Expired {
    pub(super) fn remember(&mut self, owner: Owner, uri: ResourceUri, at: Timestamp) {
        let name = (owner, uri);
        self.at.insert(name.clone(), at);
        self.in_order.push_back((name, at));
        if self.in_order.len() > REMEMBERED
            && let Some((oldest, at)) = self.in_order.pop_front()
            // It may have come back since, and expired again.
            && self.at.get(&oldest) == Some(&at)
        {
            self.at.remove(&oldest);
        }
    }

    /// The name is in use again.
    pub(super) fn forget(&mut self, owner: &Owner, uri: &ResourceUri) {
        self.at.remove(&(owner.clone(), uri.clone()));
    }

    pub(super) fn at(&self, owner: &Owner, uri: &ResourceUri) -> Option<Timestamp> {
        self.at.get(&(owner.clone(), uri.clone())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_the_rest_takes_no_room() {
        let (mut expired, owner) = (Expired::default(), Owner::new("alice"));
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
        assert!(expired.at.len() <= REMEMBERED && expired.in_order.len() == REMEMBERED);
    }
}
