//! [`KeyRing`]: secret keys that rotate. The current one seals, and each of them opens.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

/// A secret key.
/// A secret key of at least 32 random bytes.
pub type SecretKey = Arc<[u8]>;

/// The keys that are valid now. Cheap to clone; all clones see a rotation at once.
#[derive(Clone)]
pub struct KeyRing(Arc<ArcSwap<Ring>>);

struct Ring {
    current: SecretKey,
    /// Keys that other instances seal with, or sealed with recently.
    others: Vec<SecretKey>,
}

impl KeyRing {
    /// A ring of one key.
    pub fn new(key: impl Into<SecretKey>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Ring { current: key.into(), others: Vec::new() })))
    }

    /// Replaces the keys: `current` seals from now on, and `others` still open.
    pub fn rotate(&self, current: SecretKey, others: Vec<SecretKey>) {
        self.0.store(Arc::new(Ring { current, others }));
    }

    /// The key that seals.
    pub fn current(&self) -> SecretKey {
        Arc::clone(&self.0.load().current)
    }

    /// Whether any of the keys satisfies the predicate. The current key comes first.
    pub fn any(&self, mut opens: impl FnMut(&[u8]) -> bool) -> bool {
        let ring = self.0.load();
        opens(&ring.current) || ring.others.iter().any(|key| opens(key))
    }
}

/// Shows no key.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRing")
    }
}
