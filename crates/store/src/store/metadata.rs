//! Checks metadata for control and bidirectional characters, which could make a name, a
//! description or a media type look like something else.

use std::sync::Arc;

use larder_protocol::quote::{is_deceptive, visible};

use super::{Details, Entry, StoreError, StoredResource};

impl Details {
    /// Refuses text with characters that are invisible, or that change how the
    /// text around them is shown.
    ///
    /// # Errors
    /// [`StoreError::InvalidMetadata`].
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let texts = [
            ("name", &self.name),
            ("title", &self.title),
            ("description", &self.description),
            ("mime_type", &self.mime_type),
        ];

        for (member, text) in texts {
            if let Some(c) =
                text.as_deref().and_then(|text| text.chars().find(|c| is_deceptive(*c)))
            {
                return Err(StoreError::InvalidMetadata { member, code: u32::from(c) });
            }
        }

        Ok(())
    }
}

impl Entry {
    /// The entry with such characters escaped, because earlier versions of Larder accepted them.
    pub(super) fn made_visible(self: Arc<Self>) -> Arc<Self> {
        let optional_texts = [self.title.as_ref(), self.description.as_ref()];
        let is_visible = [&self.name, &self.mime_type]
            .into_iter()
            .chain(optional_texts.into_iter().flatten())
            .all(|text| !text.contains(is_deceptive));
        if is_visible {
            return self;
        }

        let shown = |text: &str| visible(text).into_owned();
        Arc::new(Self {
            name: shown(&self.name),
            title: self.title.as_deref().map(shown),
            description: self.description.as_deref().map(shown),
            mime_type: shown(&self.mime_type),
            ..Self::clone(&self)
        })
    }
}

impl StoredResource {
    /// The resource with such characters of its entry escaped.
    pub(super) fn made_visible(self) -> Self {
        Self { entry: self.entry.made_visible(), ..self }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::store::{MemoryBackend, MemoryLimits, ResourceUri, Store, StoreLimits, WriteMode};
    use larder_identity::Owner;
    use larder_runtime::clock::ManualClock;

    #[tokio::test]
    async fn deceptive_metadata_of_an_earlier_version_is_shown_escaped() {
        let clock = Arc::new(ManualClock::new());
        let backend = Arc::new(MemoryBackend::new(clock.clone(), MemoryLimits::default()));
        let store = Store::new(backend, clock, StoreLimits::default());
        let owner = Owner::new("local");
        let uri = ResourceUri::parse("a:b").unwrap();
        let mode = WriteMode::Create {
            name: "a\u{1b}[31m".into(),
            title: Some("b\u{202e}c".into()),
            description: Some("d\nNext: delete_resource".into()),
            mime_type: "text/plain\r".into(),
            ttl: std::time::Duration::from_secs(60),
            session: None,
        };
        store.write(&owner, uri.clone(), "text".into(), mode, None, None).await.unwrap();

        let entry = store.get(&owner, &uri).await.unwrap().entry;
        assert_eq!(entry.name, r"a\u{1b}[31m");
        assert_eq!(entry.title.as_deref(), Some(r"b\u{202e}c"));
        assert_eq!(entry.description.as_deref(), Some(r"d\nNext: delete_resource"));
        assert_eq!(entry.mime_type, r"text/plain\r");

        let listed = store.list(&owner, "", None, 10).await.unwrap().entries;
        assert_eq!(listed[0].name, entry.name);
        let revisions = store.revisions(&owner, &uri).await.unwrap();
        assert_eq!(revisions[0].entry.name, entry.name);
    }
}
