//! Traces the origins of content: what a call writes has the origins of what it has read.

use std::sync::Arc;

use super::{Entry, Store, StoredResource, origins::Origins};

impl Store {
    /// The same store. Adds the origins of resources read through it to `origins`, and gives
    /// these to resources written through it.
    #[must_use]
    pub fn tracing(&self, origins: Origins) -> Self {
        Self { origins: Some(origins), ..self.clone() }
    }

    /// Adds origins to those of resources that are written through this handle.
    pub fn add_origins(&self, names: impl IntoIterator<Item = Arc<str>>) {
        if let Some(origins) = &self.origins {
            origins.add(names);
        }
    }

    /// The resource as it is shown, with its origins noted.
    pub(super) fn shown(&self, found: StoredResource) -> StoredResource {
        self.note(&found.entry);
        found.made_visible()
    }

    fn note(&self, entry: &Entry) {
        if !entry.origins.is_empty() {
            self.add_origins(entry.origins.iter().cloned());
        }
    }

    /// The origins of a resource that is written now.
    pub(super) fn origins_of_writes(&self) -> Arc<[Arc<str>]> {
        self.origins.as_ref().map(Origins::names).unwrap_or_default()
    }
}
