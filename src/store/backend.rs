//! What a place to keep resources must do. Small on purpose: whatever can be
//! built on top of it is built once, in [`Store`](super::Store).

use std::{fmt, ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;

use super::{Block, ChangeFeed, ChangeKind, Entry, Kind, Packed, ResourceUri, StoreError};
use crate::{auth::Owner, clock::Timestamp};

/// A place to keep resources. It removes what has expired, holds quotas, and
/// says on its feed, once each, what changed.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// As in `store.url` and in errors: `memory`, `redis`, `file`, `s3`, `gs`, `az`.
    fn name(&self) -> &'static str;

    /// The place, where other processes may keep things in it, too: the same
    /// words in all of those, without what opens it. Nothing where it is this
    /// process's own.
    fn shared(&self) -> Option<String>;

    /// Where it says what changed.
    fn feed(&self) -> &ChangeFeed;

    /// Begins to take content in for a resource. Dropping the upload forgets it.
    async fn begin(&self, owner: &Owner, uri: &ResourceUri) -> Result<Box<dyn Upload>, StoreError>;

    /// The resource of that name, if it lives.
    async fn get(&self, owner: &Owner, uri: &ResourceUri) -> Result<Lookup, StoreError>;

    /// The revisions that are kept of a living resource, oldest first and the
    /// present one last; none where there is no such resource.
    async fn revisions(&self, owner: &Owner, uri: &ResourceUri) -> Result<Vec<Found>, StoreError>;

    /// Removes the resource; says whether there was one.
    async fn delete(&self, owner: &Owner, uri: &ResourceUri) -> Result<bool, StoreError>;

    /// Up to `limit` living resources of the owner whose URI starts with
    /// `prefix`, in byte order of the URI, from the first one after `after`.
    /// Of their content nothing is read.
    async fn page(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError>;

    /// What all owners have there together. Metrics ask every few seconds, so
    /// it must cost the same however much there is; what has expired a moment
    /// ago may still count.
    async fn usage(&self) -> Result<Usage, StoreError>;

    /// Whatever must happen without a request, such as removing what nobody
    /// asks for any more. Runs until it is dropped.
    async fn maintain(&self);
}

/// How much is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Living resources.
    pub resources: u64,
    /// Bytes of their content, as it came.
    pub bytes: u64,
}

/// Content on its way in.
#[async_trait]
pub trait Upload: Send {
    /// Accepts the next block, which is kept as it comes. Quotas count its size
    /// in the content, so that they mean the same everywhere.
    async fn append(&mut self, block: Packed) -> Result<(), StoreError>;

    /// Makes the content readable under its name, all or nothing, in place of
    /// what was there. The backend fills in what only it can know at that
    /// moment, by [`Draft::over`].
    ///
    /// # Errors
    /// [`StoreError::NotFound`] or [`StoreError::Expired`] when the placement
    /// needs a predecessor and there is none; [`StoreError::Full`].
    async fn commit(self: Box<Self>, draft: Draft) -> Result<Committed, StoreError>;
}

/// Stored bytes that can be read in ranges, for as long as the handle lives
/// where the backend can promise it (memory), or until the resource goes.
#[async_trait]
pub trait Blob: Send + Sync {
    /// The bytes that are kept in that range. It crosses the end of a block
    /// only where all that it touches is wanted, in no more than
    /// [`read_ahead`](Self::read_ahead) says.
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError>;

    /// How many bytes are fetched at once where all are wanted, a block at
    /// least: the more, the dearer the way there is. None by default.
    fn read_ahead(&self) -> u64 {
        0
    }
}

/// What a look-up finds.
pub enum Lookup {
    /// A living resource.
    Found(Found),
    /// Nothing, but it is known that there was something.
    Expired(Timestamp),
    /// Nothing.
    Missing,
}

/// A living resource and its bytes, of one revision.
#[derive(Clone)]
pub struct Found {
    /// What it is.
    pub entry: Arc<Entry>,
    /// Its bytes.
    pub blob: Arc<dyn Blob>,
}

/// What a commit did.
#[derive(Debug, Clone)]
pub struct Committed {
    /// What stands there now.
    pub entry: Arc<Entry>,
    /// [`ChangeKind::Created`] or [`ChangeKind::Updated`].
    pub change: ChangeKind,
}

impl Found {
    /// An earlier revision, beside the present one: all expire together, with
    /// the session that the present one is to end with.
    pub(super) fn earlier_than(self, present: &Entry) -> Self {
        let entry = Entry {
            expires: present.expires,
            session: present.session.clone(),
            ..Entry::clone(&self.entry)
        };
        Self { entry: Arc::new(entry), ..self }
    }
}

/// An entry that lacks what depends on its predecessor.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The name.
    pub uri: ResourceUri,
    /// Whose.
    pub owner: Owner,
    /// Text or binary.
    pub kind: Kind,
    /// In bytes.
    pub size: u64,
    /// How many lines.
    pub lines: u64,
    /// In hexadecimal.
    pub sha256: String,
    /// Where each block begins.
    pub blocks: Arc<[Block]>,
    /// The time of this write.
    pub now: Timestamp,
    /// How many revisions are kept, this one included; at least one. Earlier ones
    /// count for their owner, and give way where this one would not fit: the
    /// oldest first.
    pub revisions: usize,
    /// How it relates to what is there.
    pub placement: Placement,
}

/// How new content relates to what bears its name.
#[derive(Debug, Clone)]
pub enum Placement {
    /// It replaces whatever is there, with its own metadata: last write wins as a whole.
    Create {
        /// Short name.
        name: String,
        /// For people.
        title: Option<String>,
        /// What is in it.
        description: Option<String>,
        /// The media type.
        mime_type: String,
        /// How long it lives from now on.
        ttl: Duration,
        /// The session that it is to end with, if with any.
        session: Option<Arc<str>>,
    },
    /// It needs a predecessor, whose metadata and expiry it keeps.
    Update {
        /// How long it lives from now on, instead of to the predecessor's expiry.
        ttl: Option<Duration>,
    },
}

impl Draft {
    /// The entry that results over its living predecessor, or nothing where
    /// it needs one. To be called while the predecessor cannot change.
    pub fn over(self, previous: Option<&Entry>) -> Option<Entry> {
        let revision = previous.map_or(1, |p| p.revision + 1);
        let (name, title, description, mime_type, created, expires, session) = match self.placement
        {
            Placement::Create { name, title, description, mime_type, ttl, session } => {
                let expires = self.now.saturating_add(ttl);
                (name, title, description, mime_type, self.now, expires, session)
            }
            Placement::Update { ttl } => {
                let previous = previous?;
                // A type that was only the old kind's default says nothing of the new one.
                let mime_type = if previous.kind != self.kind
                    && previous.mime_type == previous.kind.default_mime_type()
                {
                    self.kind.default_mime_type().to_owned()
                } else {
                    previous.mime_type.clone()
                };
                (
                    previous.name.clone(),
                    previous.title.clone(),
                    previous.description.clone(),
                    mime_type,
                    previous.created,
                    ttl.map_or(previous.expires, |ttl| self.now.saturating_add(ttl)),
                    previous.session.clone(),
                )
            }
        };
        Some(Entry {
            uri: self.uri,
            owner: self.owner,
            revision,
            name,
            title,
            description,
            mime_type,
            kind: self.kind,
            size: self.size,
            lines: self.lines,
            sha256: self.sha256,
            created,
            updated: self.now,
            expires,
            session,
            blocks: self.blocks,
        })
    }
}
