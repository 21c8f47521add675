//! Uploads in parts, which survive a lost connection, a crash and another instance.
//!
//! Each part, and the record of the upload, is an ordinary resource of a hidden owner, which
//! belongs to the owner of the upload. So they are stored, shared between instances, limited and
//! removed like all content, but nobody lists them. The record is replaced only by a
//! request that has read its latest version, which makes each append atomic. The last step writes the parts as one
//! resource.

use std::{io, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{Content, ContentStream, Details, Entry, Expected, ResourceUri, Store, StoreError};
use crate::{auth::Owner, clock::Timestamp, random::Random};

/// The maximum number of parts of one upload, which bounds its record.
const MAX_PARTS: usize = 4096;

/// How many parts are removed at a time.
const REMOVALS: usize = 8;

/// The resource that an upload becomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UploadTarget {
    /// The URI of the resource.
    pub uri: ResourceUri,
    /// Its name, if given.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its time to live.
    pub ttl: Option<Duration>,
    /// Whether the content is stored as text if it is UTF-8; otherwise it is stored as bytes.
    pub may_be_text: bool,
    /// The announced digest, in hexadecimal.
    pub sha256: Option<String>,
}

/// The content of the record of an upload.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    target: UploadTarget,
    /// The announced size.
    size: Option<u64>,
    parts: Vec<Part>,
    state: State,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Part {
    id: String,
    size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// Parts can be appended.
    Open,
    /// All parts have arrived, and are being stored as a resource.
    Complete,
    /// The resource is stored, and the parts are removed.
    Stored {
        /// The size of the content.
        size: u64,
    },
}

/// Why a part is not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another request has appended meanwhile, or has removed the upload.
    #[error("Another request has changed the upload meanwhile: ask for its offset.")]
    Changed,
    /// The store refuses it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An upload in parts, as of one lookup.
#[derive(Debug, Clone)]
pub struct PartialUpload {
    store: Store,
    owner: Owner,
    entry: Arc<Entry>,
    record: Record,
}

/// The owner of the parts. Nobody authenticates as this owner, so that nobody lists them.
fn hidden(owner: &Owner) -> Owner {
    Owner::new(format!("{owner} uploads"))
}

fn record_uri(id: &str) -> Result<ResourceUri, StoreError> {
    Ok(ResourceUri::parse(&format!("upload:{id}"))?)
}

impl Store {
    /// Begins an upload in parts. It expires after `ttl`, complete or not.
    ///
    /// # Errors
    /// [`StoreError::Full`] if content of that size does not fit.
    pub async fn begin_upload(
        &self,
        owner: &Owner,
        id: &str,
        target: UploadTarget,
        size: Option<u64>,
        ttl: Duration,
    ) -> Result<PartialUpload, StoreError> {
        if let Some(size) = size {
            for (owner, uri) in [(owner, &target.uri), (&hidden(owner), &record_uri(id)?)] {
                self.backend.begin(owner, uri).await?.check_room(size).await?;
            }
        }
        let record = Record { target, size, parts: Vec::new(), state: State::Open };
        let details = Details { ttl: Some(ttl), ..Details::default() };
        let entry = self.create(&hidden(owner), record_uri(id)?, record.content(), details).await?;
        Ok(PartialUpload { store: self.clone(), owner: owner.clone(), entry, record })
    }

    /// Finds an upload of the owner.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] or [`StoreError::Expired`].
    pub async fn upload_in_parts(
        &self,
        owner: &Owner,
        id: &str,
    ) -> Result<PartialUpload, StoreError> {
        let uri = record_uri(id)?;
        let found = self.get(&hidden(owner), &uri).await?;
        let record = serde_json::from_slice(&found.bytes().await?)
            .map_err(|error| StoreError::Corrupt { uri, source: error.into() })?;
        Ok(PartialUpload { store: self.clone(), owner: owner.clone(), entry: found.entry, record })
    }
}

impl Record {
    fn content(&self) -> Content {
        // Never fails for strings, numbers and lists.
        Content::from(serde_json::to_vec(self).unwrap_or_default())
    }
}

impl PartialUpload {
    /// How many bytes are stored.
    pub fn offset(&self) -> u64 {
        match self.record.state {
            State::Stored { size } => size,
            State::Open | State::Complete => self.record.parts.iter().map(|part| part.size).sum(),
        }
    }

    /// The size of the whole content, if it is known.
    pub fn size(&self) -> Option<u64> {
        if self.record.state == State::Open { self.record.size } else { Some(self.offset()) }
    }

    /// Whether the resource is stored.
    pub fn is_stored(&self) -> bool {
        matches!(self.record.state, State::Stored { .. })
    }

    /// When the upload is removed.
    pub fn expires(&self) -> Timestamp {
        self.entry.expires
    }

    /// The resource that the upload becomes.
    pub fn target(&self) -> &UploadTarget {
        &self.record.target
    }

    /// Sets the size of the whole content.
    ///
    /// # Errors
    /// [`AppendError`].
    pub async fn set_size(&mut self, size: u64) -> Result<(), AppendError> {
        if self.record.size == Some(size) {
            return Ok(());
        }
        self.replace(Record { size: Some(size), ..self.record.clone() }).await
    }

    /// Appends the pieces as a part, and returns its size in bytes. `pieces` must end instead of
    /// fail where a connection is lost, so that what has arrived is kept.
    ///
    /// # Errors
    /// [`AppendError`]; nothing of the part is kept then.
    pub async fn append(
        &mut self,
        pieces: ContentStream,
        random: &Random,
    ) -> Result<u64, AppendError> {
        if self.record.parts.len() >= MAX_PARTS {
            let problem = format!("The upload has {MAX_PARTS} parts already: send larger ones.");
            return Err(StoreError::Full(problem).into());
        }
        let id = random.id();
        let uri = self.part_uri(&id)?;
        let left = self.entry.expires.since(self.store.now()).max(Duration::from_millis(1));
        let details = Details { ttl: Some(left), ..Details::default() };
        let content = Content::byte_stream(pieces);
        let part = self.store.create(&hidden(&self.owner), uri, content, details).await?;
        let size = part.size;
        let mut record = self.record.clone();
        record.parts.push(Part { id, size });
        let appended =
            if size == 0 { Err(AppendError::Changed) } else { self.replace(record).await };
        match appended {
            Ok(()) => Ok(size),
            Err(error) => {
                self.store.delete(&part.owner, &part.uri).await?;
                if size == 0 { Ok(0) } else { Err(error) }
            }
        }
    }

    /// Stores the parts as the resource, and removes them. Where the content is not what was
    /// announced, the upload is removed.
    ///
    /// # Errors
    /// [`AppendError`]. The upload stays complete and can be stored later, unless the content is
    /// not as announced.
    pub async fn store(&mut self) -> Result<Arc<Entry>, AppendError> {
        let (store, target) = (self.store.clone(), self.record.target.clone());
        if let State::Stored { .. } = self.record.state {
            return Ok(store.get(&self.owner, &target.uri).await?.entry);
        }
        if self.record.state == State::Open {
            self.replace(Record { state: State::Complete, ..self.record.clone() }).await?;
        }
        let size = self.offset();
        let pieces = self.pieces()?;
        let content = if target.may_be_text {
            Content::text_or_bytes(pieces)
        } else {
            Content::byte_stream(pieces)
        };
        let expected = Expected { size: self.record.size.or(Some(size)), sha256: target.sha256 };
        let UploadTarget { uri, name, title, description, mime_type, ttl, .. } = target;
        let details = Details { name, title, description, mime_type, ttl, session: None };
        let stored = store.create(&self.owner, uri, content.expecting(expected), details).await;
        match stored {
            Ok(entry) => {
                let parts = self.record.parts.clone();
                let state = State::Stored { size };
                let record = Record { state, parts: Vec::new(), ..self.record.clone() };
                // If another request has stored it as well, that one removes the parts.
                if self.replace(record).await.is_ok() {
                    self.remove(parts).await;
                }
                Ok(entry)
            }
            Err(error @ StoreError::NotAsAnnounced(_)) => {
                self.cancel().await?;
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the upload.
    ///
    /// # Errors
    /// The store cannot remove it.
    pub async fn cancel(&self) -> Result<(), StoreError> {
        self.store.delete(&self.entry.owner, &self.entry.uri).await?;
        self.remove(self.record.parts.clone()).await;
        Ok(())
    }

    /// Replaces the record, if nobody has since it was read.
    async fn replace(&mut self, record: Record) -> Result<(), AppendError> {
        let content = record.content();
        let replaced =
            self.store.update_unchanged(&self.entry, content, Details::default()).await?;
        self.entry = replaced.ok_or(AppendError::Changed)?;
        self.record = record;
        Ok(())
    }

    fn part_uri(&self, id: &str) -> Result<ResourceUri, StoreError> {
        Ok(ResourceUri::parse(&format!("{}/{id}", self.entry.uri))?)
    }

    /// All parts as one stream.
    fn pieces(&self) -> Result<ContentStream, StoreError> {
        let uris: Result<Vec<_>, _> =
            self.record.parts.iter().map(|part| self.part_uri(&part.id)).collect();
        let (store, owner) = (self.store.clone(), hidden(&self.owner));
        let parts = stream::iter(uris?).then(move |uri| {
            let (store, owner) = (store.clone(), owner.clone());
            async move { store.get(&owner, &uri).await.map(|found| found.stream()) }
        });
        Ok(parts.try_flatten().map_err(io::Error::other).boxed())
    }

    async fn remove(&self, parts: Vec<Part>) {
        let uris = parts.iter().filter_map(|part| self.part_uri(&part.id).ok());
        let removals = stream::iter(uris).for_each_concurrent(REMOVALS, async |uri| {
            if let Err(error) = self.store.delete(&self.entry.owner, &uri).await {
                tracing::debug!(%error, "cannot remove a part of an upload; it will expire");
            }
        });
        removals.await;
    }
}
