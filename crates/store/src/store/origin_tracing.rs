//! Traces the origins of content: a call's writes get the origins of its reads.

use std::sync::Arc;

use super::{Entry, Store, StoredResource, origins::Origins};

impl Store {
    /// A clone that records the origins of what is read through it in `origins`, and adds them to
    /// what is written through it.
    #[must_use]
    pub fn tracing(&self, origins: Origins) -> Self {
        Self { origins: Some(origins), ..self.clone() }
    }

    /// Adds origins for the resources that are written through this handle.
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

    /// Notes the origins of a resource that was read.
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
