//! [`Rewrite`]: new content of a resource, made from its stored content.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use larder_identity::Owner;
use larder_records::{
    Layout, Pointer, Scanner, essence,
    preview::{HEAD_BYTES, TAIL_BYTES},
};

use super::{
    Content, Details, Entry, Expected, Kind, ResourceUri, Store, StoreError, StoredResource,
    Version, sharing,
};

/// How often a rewrite or a move starts again because another write came first.
pub(super) const MAX_ATTEMPTS: usize = 32;

/// New content of a resource: the content of one of its stored revisions, by default the current
/// revision, followed by further bytes.
#[derive(Debug, Clone, Default)]
pub struct Rewrite {
    /// The number of the revision whose content and media type are used; the current one
    /// if `None`.
    pub revision: Option<u64>,
    /// The bytes that follow the content; in text, UTF-8.
    pub appended: Bytes,
    /// Whether `appended` is text that begins a line. A line break comes before it if the content
    /// is text without one at its end. JSON that is not complete is continued as it is, because it
    /// may end within a string.
    pub on_new_line: bool,
}

impl Rewrite {
    /// The new content, checked for the size and the digest that result from the source.
    pub(super) async fn content(&self, source: &StoredResource) -> Result<Content, StoreError> {
        let entry = &source.entry;
        let line_break = self.line_break(source).await?;
        let appended = self.appended.clone();
        let is_unchanged = line_break.is_empty() && appended.is_empty();
        let expected = Expected {
            size: Some(entry.size + (line_break.len() + appended.len()) as u64),
            sha256: is_unchanged.then(|| entry.sha256.clone()),
        };

        let added = stream::iter([Ok(Bytes::from_static(line_break)), Ok(appended)]);
        let pieces = source.stream().map_err(io::Error::other).chain(added);
        let content = match entry.kind {
            Kind::Text => Content::text_stream(pieces),
            Kind::Binary => Content::byte_stream(pieces),
        };
        let content = content.expecting(expected);
        Ok(if is_unchanged { content.copied_from(source) } else { content })
    }

    /// The line break between the content and the appended text.
    async fn line_break(&self, source: &StoredResource) -> Result<&'static [u8], StoreError> {
        let entry = &source.entry;
        let has_own = self.appended.first().is_none_or(|byte| is_line_break(*byte));
        if !self.on_new_line || has_own || entry.kind == Kind::Binary || entry.size == 0 {
            return Ok(b"");
        }

        let (head, tail) = source.head_and_tail(HEAD_BYTES as u64, TAIL_BYTES as u64).await?;
        if tail.last().is_some_and(|byte| is_line_break(*byte)) {
            return Ok(b"");
        }

        let essence = essence(&entry.mime_type);
        let is_json = essence == "application/json" || essence.ends_with("+json");
        if is_json || source.layout().await? == Some(Layout::Json) {
            let is_whole = head.len() as u64 == entry.size;
            let is_complete = entry.records.is_some() || (is_whole && is_complete_json(&head));
            if !is_complete {
                return Ok(b"");
            }
        }

        Ok(if memchr::memmem::find(&tail, b"\r\n").is_some() { b"\r\n" } else { b"\n" })
    }
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn is_complete_json(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(Layout::Json, Pointer::default());
    scanner.feed(text, |_| {}).and_then(|()| scanner.finish(|_| {})).is_ok()
}

impl Store {
    /// Writes a resource from its own content, in flat memory, as a new revision. Metadata in
    /// `details` replaces the metadata of the resource; the rest stays, and so do the session and,
    /// without a new `ttl`, the expiry. No concurrent write is lost.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Expired`] or [`StoreError::NoRevision`];
    /// the errors of [`Store::create`]; and [`StoreError::Contended`].
    pub async fn rewrite(
        &self,
        owner: &Owner,
        uri: ResourceUri,
        rewrite: Rewrite,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        if sharing::is_link(&uri) {
            return Err(StoreError::ReadOnly { uri });
        }

        // The new content has the origins of the stored content.
        let store = self.tracing(self.origins.clone().unwrap_or_default());

        let mut failures = Failures::default();
        for _ in 0..MAX_ATTEMPTS {
            let current = store.get(owner, &uri).await?;
            let version = Version::from(&*current.entry);
            let has_failed = failures.of(version);

            let mut details = details.clone();
            let source = if rewrite.revision.is_some() {
                let source = store.revision(owner, &uri, rewrite.revision).await?;
                details.mime_type.get_or_insert_with(|| source.entry.mime_type.clone());
                source
            } else {
                current.clone()
            };

            // The backend cannot take over the content, although nobody has written.
            let content = rewrite.content(&source).await?;
            let content = if has_failed { content.into_read() } else { content };

            let written = store.update_version(owner, uri.clone(), content, details, Some(version));
            match written.await.map_err(read_error) {
                Err(error) if error.is_not_found() => failures.add(version, error)?,
                written => return written,
            }
        }

        Err(StoreError::Contended { uri })
    }
}

/// The attempts at a write that did not find the resource, or its content. Another write explains a
/// failure only if the version is another one at the next attempt.
#[derive(Default)]
pub(super) struct Failures {
    version: Option<Version>,
    count: usize,
}

impl Failures {
    /// How often a version may fail: its content is taken over, then read.
    const MAX: usize = 2;

    /// Whether the last attempt had this version, too.
    pub(super) fn of(&self, version: Version) -> bool {
        self.version == Some(version)
    }

    /// Adds a failure.
    ///
    /// # Errors
    /// The error itself, if the resource keeps this version and fails each time.
    pub(super) fn add(&mut self, version: Version, error: StoreError) -> Result<(), StoreError> {
        if self.version.replace(version) != Some(version) {
            self.count = 0;
        }

        self.count += 1;
        if self.count > Self::MAX { Err(error) } else { Ok(()) }
    }
}

/// The error of a write whose content is stored content: why that could not be read, if it could not.
pub(super) fn read_error(error: StoreError) -> StoreError {
    match error {
        StoreError::Input(error) => error.downcast().unwrap_or_else(StoreError::Input),
        error => error,
    }
}
