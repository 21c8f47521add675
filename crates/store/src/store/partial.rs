//! Uploads in parts, which survive a lost connection, a crash and another instance.
//!
//! Each part, and the record of the upload, is an ordinary resource of a hidden owner, which
//! belongs to the owner of the upload. The backend stores, shares and removes these resources as
//! any others, but nobody lists them. A reservation counts them towards the quota of the owner,
//! from the beginning if the size is announced, until the finished resource counts instead.
//! The record is replaced only by a request that has read its latest version, which makes each
//! append atomic. The last step writes the parts as one resource.

use std::{io, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use larder_identity::Owner;
use larder_runtime::{clock::Timestamp, random::Random};
use serde::{Deserialize, Serialize};

use super::{Content, ContentStream, Details, Entry, Expected, ResourceUri, Store, StoreError};

/// The maximum number of parts of one upload, which bounds its record.
const MAX_PARTS: usize = 4096;

/// The usual size of a part, in bytes.
pub const PART_BYTES: usize = 8 << 20;

/// The most quota bytes that a part takes beside its content.
const MAX_PART_OVERHEAD: u64 = 2048;

/// The most quota bytes that the record takes, with its earlier revisions.
const MAX_RECORD_BYTES: u64 = 32 << 10;

/// The suffix of the names of hidden owners, who own the parts of uploads.
const HIDDEN_OWNER_SUFFIX: &str = " uploads";

/// How many parts are removed at a time.
const REMOVALS: usize = 8;

/// The resource that an upload becomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UploadTarget {
    /// The URI of the resource.
    pub uri: ResourceUri,
    /// The name of the resource, if given.
    pub name: Option<String>,
    /// The title of the resource.
    pub title: Option<String>,
    /// The description of the resource.
    pub description: Option<String>,
    /// The media type of the resource.
    pub mime_type: Option<String>,
    /// The time to live of the resource.
    pub ttl: Option<Duration>,
    /// Whether the content is stored as text if it is UTF-8; otherwise it is stored as bytes.
    pub may_be_text: bool,
    /// The announced SHA-256, in hexadecimal.
    pub sha256: Option<String>,
    /// The bytes that count before they have arrived.
    #[serde(default)]
    pub reserves: Reserves,
}

/// The bytes that an upload in progress counts towards the quota of its owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reserves {
    /// The announced size, from the beginning.
    #[default]
    Announced,
    /// The bytes that have arrived: their sender is not trusted with the quota of the owner.
    Arrived,
}

/// The content of the record of an upload.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct UploadRecord {
    target: UploadTarget,
    /// The announced size.
    size: Option<u64>,
    parts: Vec<UploadPart>,
    state: UploadState,
}

/// A stored part of an upload.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct UploadPart {
    id: String,
    size: u64,
}

/// The progress of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum UploadState {
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

/// The reason why a part is not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another request has appended meanwhile, or has removed the upload.
    #[error("Another request has changed the upload meanwhile: ask for its offset.")]
    Changed,
    /// The store refuses the part.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A snapshot of an upload in parts.
#[derive(Debug, Clone)]
pub struct PartialUpload {
    store: Store,
    owner: Owner,
    /// The ID of the upload and of its reservation.
    id: String,
    entry: Arc<Entry>,
    record: UploadRecord,
}

/// The owner of the parts. Nobody authenticates as this owner, so nobody lists the parts.
pub(super) fn hidden(owner: &Owner) -> Owner {
    Owner::new(format!("{owner}{HIDDEN_OWNER_SUFFIX}"))
}

/// Whether `owner` is the hidden owner of the parts of an owner's uploads.
pub(super) fn is_hidden(owner: &Owner) -> bool {
    owner.as_str().ends_with(HIDDEN_OWNER_SUFFIX)
}

/// The URI of the record of an upload. Those of its parts begin with it and a slash.
pub(super) fn record_uri(id: &str) -> Result<ResourceUri, StoreError> {
    Ok(ResourceUri::parse(&format!("upload:{id}"))?)
}

impl Store {
    /// Begins an upload in parts. It expires after `ttl`, complete or not.
    ///
    /// # Errors
    /// [`StoreError::Full`] if content of that size does not fit, and the errors of
    /// [`Store::check_target`].
    pub async fn begin_upload(
        &self,
        owner: &Owner,
        id: &str,
        target: UploadTarget,
        size: Option<u64>,
        ttl: Duration,
    ) -> Result<PartialUpload, StoreError> {
        self.check_target(&target.uri)?;
        let record = UploadRecord { target, size, parts: Vec::new(), state: UploadState::Open };
        let uri = record_uri(id)?;
        self.backend.reserve(owner, &record.target.uri, id, record.counted_bytes(), ttl).await?;

        let details = Details { ttl: Some(ttl), ..Details::default() };
        match self.create(&hidden(owner), uri, record.content(), details).await {
            Ok(entry) => Ok(PartialUpload {
                store: self.clone(),
                owner: owner.clone(),
                id: id.to_owned(),
                entry,
                record,
            }),
            Err(error) => {
                self.backend.release(owner, id, 0).await?;
                Err(error)
            }
        }
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

        Ok(PartialUpload {
            store: self.clone(),
            owner: owner.clone(),
            id: id.to_owned(),
            entry: found.entry,
            record,
        })
    }
}

impl UploadRecord {
    fn content(&self) -> Content {
        // Serialization never fails for strings, numbers and lists.
        Content::from(serde_json::to_vec(self).unwrap_or_default())
    }

    /// The bytes of the parts.
    fn received(&self) -> u64 {
        self.parts.iter().map(|part| part.size).sum()
    }

    /// The most quota bytes that the upload takes, its announced size included.
    fn counted_bytes(&self) -> u64 {
        self.counted_with(self.received())
    }

    /// The most quota bytes that the upload takes if its content has at least `size` bytes.
    fn counted_with(&self, size: u64) -> u64 {
        let size = match self.target.reserves {
            Reserves::Announced => self.size.unwrap_or_default().max(size),
            Reserves::Arrived => self.received(),
        };
        let parts = (self.parts.len() as u64).max(size.div_ceil(PART_BYTES as u64) + 1);
        size + parts * MAX_PART_OVERHEAD + MAX_RECORD_BYTES
    }
}

impl PartialUpload {
    /// The bytes that are stored.
    pub fn offset(&self) -> u64 {
        match self.record.state {
            UploadState::Stored { size } => size,
            UploadState::Open | UploadState::Complete => self.record.received(),
        }
    }

    /// The size of the whole content, if it is known.
    pub fn size(&self) -> Option<u64> {
        if self.record.state == UploadState::Open { self.record.size } else { Some(self.offset()) }
    }

    /// Whether the resource is stored.
    pub fn is_stored(&self) -> bool {
        matches!(self.record.state, UploadState::Stored { .. })
    }

    /// The ID of the upload.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// When the upload began.
    pub fn begun(&self) -> Timestamp {
        self.entry.created
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
        let record = UploadRecord { size: Some(size), ..self.record.clone() };
        self.replace_counted(record).await
    }

    /// Makes room for content of at least `size` bytes in the quota of the owner, unless the upload
    /// counts what has arrived only.
    ///
    /// # Errors
    /// [`StoreError::Full`].
    pub async fn expect(&self, size: u64) -> Result<(), StoreError> {
        self.reserve(self.record.counted_with(size)).await
    }

    /// Counts at least `bytes` until the upload ends.
    async fn reserve(&self, bytes: u64) -> Result<(), StoreError> {
        if bytes <= self.record.counted_bytes() {
            return Ok(());
        }

        let uri = &self.record.target.uri;
        let left = self.left();
        self.store.backend.reserve(&self.owner, uri, &self.id, bytes, left).await.map(drop)
    }

    /// The time until the upload ends.
    fn left(&self) -> Duration {
        self.entry.expires.since(self.store.now()).max(Duration::from_millis(1))
    }

    /// Appends the pieces as a part, and returns its size in bytes. `pieces` must end, and not
    /// fail, where a connection is lost, so that the pieces that have arrived are kept.
    ///
    /// # Errors
    /// [`AppendError`]; nothing of the part is then kept.
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
        let details = Details { ttl: Some(self.left()), ..Details::default() };
        let content = Content::byte_stream(pieces);
        let part = self.store.create(&hidden(&self.owner), uri, content, details).await?;
        let size = part.size;

        let mut record = self.record.clone();
        record.parts.push(UploadPart { id, size });

        if size == 0 {
            self.store.delete(&part.owner, &part.uri).await?;
            return Ok(0);
        }
        match self.replace_counted(record).await {
            Ok(()) => Ok(size),
            Err(error) => {
                self.store.delete(&part.owner, &part.uri).await?;
                Err(error)
            }
        }
    }

    /// Replaces the record by one that counts more.
    async fn replace_counted(&mut self, record: UploadRecord) -> Result<(), AppendError> {
        self.reserve(record.counted_bytes()).await?;
        let replaced = self.replace(record).await;

        // An upload that was removed meanwhile has ended its reservation before it grew.
        if matches!(replaced, Err(AppendError::Changed))
            && let Err(error) = self.store.get(&self.entry.owner, &self.entry.uri).await
            && error.is_not_found()
        {
            self.store.backend.release(&self.owner, &self.id, 0).await?;
        }
        replaced
    }

    /// Stores the parts as the resource, and removes them. Where the content is not what was
    /// announced, the upload is removed.
    ///
    /// # Errors
    /// [`AppendError`]. The upload stays complete and can be stored later, unless the content is
    /// not as announced.
    pub async fn store(&mut self) -> Result<Arc<Entry>, AppendError> {
        let store = self.store.clone();
        let target = self.record.target.clone();
        if let UploadState::Stored { .. } = self.record.state {
            return Ok(store.get(&self.owner, &target.uri).await?.entry);
        }
        if self.record.state == UploadState::Open {
            self.replace(UploadRecord { state: UploadState::Complete, ..self.record.clone() })
                .await?;
        }

        let size = self.offset();
        let pieces = self.pieces()?;
        let content = if target.may_be_text {
            Content::text_or_bytes(pieces)
        } else {
            Content::byte_stream(pieces)
        };
        let content = content
            .expecting(Expected { size: self.record.size.or(Some(size)), sha256: target.sha256 });

        let UploadTarget { uri, name, title, description, mime_type, ttl, .. } = target;
        let details = Details { name, title, description, mime_type, ttl, session: None };
        let stored = store.create_reserved(&self.owner, uri, content, details, &self.id).await;

        match stored {
            Ok(entry) => {
                let parts = self.record.parts.clone();
                let state = UploadState::Stored { size };
                let record = UploadRecord { state, parts: Vec::new(), ..self.record.clone() };
                // Another request that has stored the resource as well removes the parts.
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
        self.store.backend.release(&self.owner, &self.id, 0).await
    }

    /// Replaces the record, if no other request has replaced it since it was read.
    async fn replace(&mut self, record: UploadRecord) -> Result<(), AppendError> {
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
        let store = self.store.clone();
        let owner = hidden(&self.owner);

        let parts = stream::iter(uris?).then(move |uri| {
            let store = store.clone();
            let owner = owner.clone();
            async move { store.get(&owner, &uri).await.map(|found| found.stream()) }
        });
        Ok(parts.try_flatten().map_err(io::Error::other).boxed())
    }

    /// Removes parts, or leaves them to their expiry.
    async fn remove(&self, parts: Vec<UploadPart>) {
        let uris = parts.iter().filter_map(|part| self.part_uri(&part.id).ok());
        stream::iter(uris)
            .for_each_concurrent(REMOVALS, async |uri| {
                if let Err(error) = self.store.delete(&self.entry.owner, &uri).await {
                    tracing::debug!(%error, "cannot remove a part of an upload; it will expire");
                }
            })
            .await;
    }
}
