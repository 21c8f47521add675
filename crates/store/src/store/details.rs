//! The metadata that a caller gives to a resource, and its bounds.

use std::{sync::Arc, time::Duration};

use super::{ResourceUri, StoreError};

/// The maximum length of a name or a title, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The maximum length of a description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4096;

/// The maximum length of a media type, in bytes.
const MAX_MIME_TYPE_BYTES: usize = 255;

/// Optional metadata of a resource. Listings return it, so it is bounded: names,
/// titles and media types to 256 bytes, descriptions to 4 KiB.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Short name; by default the last segment of the URI.
    pub name: Option<String>,
    /// Title for display.
    pub title: Option<String>,
    /// Description of the content.
    pub description: Option<String>,
    /// Media type; by default the type of the content.
    pub mime_type: Option<String>,
    /// Time to live; by default
    /// [`StoreLimits::default_ttl`](super::StoreLimits::default_ttl).
    pub ttl: Option<Duration>,
    /// Session at whose end the resource is deleted, if any.
    pub session: Option<Arc<str>>,
}

impl Details {
    /// The texts with their names and maximum lengths.
    fn texts(&mut self) -> [(&'static str, usize, &mut Option<String>); 4] {
        [
            ("name", MAX_NAME_BYTES, &mut self.name),
            ("title", MAX_NAME_BYTES, &mut self.title),
            ("description", MAX_DESCRIPTION_BYTES, &mut self.description),
            ("mime_type", MAX_MIME_TYPE_BYTES, &mut self.mime_type),
        ]
    }

    /// Cuts texts off at their maximum lengths, for metadata that Larder derives itself.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        for (_, max, text) in self.texts() {
            if let Some(text) = text {
                text.truncate(text.floor_char_boundary(max));
            }
        }
        self
    }

    /// Refuses texts that are too long, or have characters that are invisible or misleading.
    ///
    /// # Errors
    /// [`StoreError::InvalidDetails`] or [`StoreError::InvalidMetadata`].
    pub(super) fn checked(mut self) -> Result<Self, StoreError> {
        self.check()?;

        for (name, max, text) in self.texts() {
            let len = text.as_ref().map_or(0, String::len);
            if len > max {
                return Err(StoreError::InvalidDetails(format!(
                    "{name} has {len} bytes; at most {max} are allowed. Put long text into the content."
                )));
            }
        }

        Ok(self)
    }
}

/// The default name: the last segment of the path, or the whole URI if there is none.
pub(super) fn default_name(uri: &ResourceUri) -> String {
    let path = uri.as_str().split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit(['/', ':']).find(|part| !part.is_empty());
    let mut name = last.unwrap_or(uri.as_str()).to_owned();

    // A URI is ASCII, so any byte is a boundary.
    name.truncate(MAX_NAME_BYTES);
    name
}
