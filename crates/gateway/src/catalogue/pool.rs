//! [`CataloguePool`]: the catalogues of one upstream. Sessions that are offered the same share it.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use rmcp::model;
use sha2::{Digest as _, Sha256};

use super::{Catalogue, Prompt, Tool};
use crate::budget::Charge;

/// The SHA-256 of a definition and of what Larder has made of its name.
pub(super) type Digest = [u8; 32];

/// An item and the memory that it takes.
pub(crate) struct Kept<T> {
    item: T,
    digest: Digest,
    _charge: Charge,
}

/// The catalogues of one upstream and their items, as long as a session uses them.
#[derive(Default)]
pub(crate) struct CataloguePool {
    pub(super) tools: SharedItems<Kept<Tool>>,
    pub(super) prompts: SharedItems<Kept<Prompt>>,
    pub(super) resources: SharedItems<Kept<model::Resource>>,
    pub(super) templates: SharedItems<Kept<model::ResourceTemplate>>,
    pub(super) catalogues: SharedItems<Catalogue>,
}

/// Values that are shared, by digest.
pub(super) struct SharedItems<T>(Mutex<HashMap<Digest, Weak<T>>>);

impl<T> Default for SharedItems<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> SharedItems<T> {
    pub(super) fn get(&self, digest: &Digest) -> Option<Arc<T>> {
        self.0.lock().get(digest)?.upgrade()
    }

    /// The value of that digest: an earlier one, if a session still uses it, or this.
    pub(super) fn share(&self, digest: Digest, value: T) -> Arc<T> {
        let mut values = self.0.lock();
        if let Some(earlier) = values.get(&digest).and_then(Weak::upgrade) {
            drop(values);
            // Dropped without the lock, because the value may be large.
            drop(value);
            return earlier;
        }
        let shared = Arc::new(value);
        values.insert(digest, Arc::downgrade(&shared));
        shared
    }

    /// Forgets values that nobody uses.
    fn sweep(&self) {
        self.0.lock().retain(|_, value| value.strong_count() > 0);
    }
}

impl CataloguePool {
    /// Forgets what no session uses.
    pub(super) fn sweep(&self) {
        self.tools.sweep();
        self.prompts.sweep();
        self.resources.sweep();
        self.templates.sweep();
        self.catalogues.sweep();
    }
}

impl<T> Kept<T> {
    pub(super) fn new(item: T, digest: Digest, charge: Charge) -> Self {
        Self { item, digest, _charge: charge }
    }

    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

/// The digest of parts, which are told apart.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_as_long_as_somebody_uses_them() {
        let table = SharedItems::default();
        let key = digest([&b"ab"[..], b"c"]);
        assert_ne!(key, digest([&b"a"[..], b"bc"]), "parts are told apart");
        let first = table.share(key, "value".to_owned());
        let second = table.share(key, "value".to_owned());
        assert!(Arc::ptr_eq(&first, &second));

        table.sweep();
        assert!(table.get(&key).is_some());
        drop((first, second));
        assert!(table.get(&key).is_none());
        table.sweep();
        assert!(table.0.lock().is_empty());
    }
}
