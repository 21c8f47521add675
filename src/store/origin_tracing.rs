//! Tracing where content comes from, through the handle of one call.

use std::sync::Arc;

use super::{Entry, Store, StoredResource, origins::Origins};

impl Store {
    /// The same store; the origins of what is read through it are collected in `origins`, and
    /// what is written through it has them.
    #[must_use]
    pub fn tracing(&self, origins: Origins) -> Self {
        Self { origins: Some(origins), ..self.clone() }
    }

    /// Adds to the origins of what is written through this handle.
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

    /// The origins of what is written now.
    pub(super) fn origins_of_writes(&self) -> Arc<[Arc<str>]> {
        self.origins.as_ref().map(Origins::names).unwrap_or_default()
    }
}
