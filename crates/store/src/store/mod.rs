//! The store keeps large results until they are deleted or expire.
//!
//! A resource is an [`Entry`] (its metadata) and a blob (its bytes), scoped by
//! [`Owner`](larder_identity::Owner). [`Store`] checks URIs and times to live, cuts
//! content into blocks while it streams in, and reads it by byte range, by line
//! or as a stream. A [`Backend`] stores entries and blobs. Backends differ in
//! speed and durability, never in what a caller can observe; the contract suite
//! in `testing::store` checks that.

mod arriving;
mod backend;
mod block_cache;
mod block_filter;
mod blocks;
mod change;
mod change_queue;
mod changes;
mod compression;
mod content;
mod copy;
mod detached;
mod details;
mod draft;
mod elsewhere;
mod encoded;
mod entry;
mod error;
mod expected;
mod expired;
mod facade;
mod fault;
mod fetched_block;
mod form;
mod hashing;
mod indexing;
mod limited;
mod links;
mod memory;
mod metadata;
mod object;
mod open_uploads;
mod origin_tracing;
mod origins;
mod owners;
mod partial;
mod preview;
mod quota;
mod ranges;
mod reading;
mod records;
mod redis;
mod required_text;
mod restore;
mod rewrite;
mod sharing;
#[cfg(test)]
mod sharing_race;
mod stored_bytes;
mod text_view;
mod upload_reservation;
mod uploads_in_progress;
mod uri;
mod window;
mod write;

pub use arriving::{Arrived, Arriving};
pub use backend::{
    Backend, Blob, Committed, DiskSpace, Lookup, StoredResource, Upload, Usage, Version,
};
pub use block_cache::{DEFAULT_CACHE_BYTES, set_cache_bytes};
pub use blocks::BLOCK_BYTES;
pub use change::{Change, ChangeKind};
pub use change_queue::{ChangeQueue, Changed, CoalescedChange, NextChanges, OwnerTurn};
pub use changes::{ChangeFeed, Changes, MissedChanges};
pub use compression::StoredBlock;
pub use content::{Content, ContentStream};
pub use details::Details;
pub use draft::{Draft, WriteMode};
pub use entry::{Block, Entry, Kind};
pub use error::StoreError;
pub use expected::Expected;
pub use facade::{Page, Store, StoreLimits};
pub use fault::busy_fault;
pub use form::{Form, RecordView};
pub use limited::TotalLimit;
pub use memory::{MemoryBackend, MemoryLimits};
pub use object::ObjectSlots;
pub use object::{KeyValueError, KeyValueStore};
pub use object::{LocationError, ObjectBackend, ObjectLocation};
pub use origins::Origins;
pub use owners::OwnerPage;
pub use partial::PART_BYTES;
pub use partial::{AppendError, PartialUpload, Reserves, UploadTarget};
pub use quota::OwnerQuota;
pub use ranges::Ranges;
pub use records::{RecordWindow, RecordsError};
pub use redis::{ExternalBlobs, RedisBackend};
pub use required_text::RequiredText;
pub use restore::Restored;
pub use rewrite::Rewrite;
pub use sharing::{Audience, LinkTarget, Share};
pub use stored_bytes::StoredBytes;
pub use text_view::{TEXT_VIEW_BYTES, TextView};
pub use uri::MAX_URI_BYTES;
pub use uri::{InvalidUri, ResourceUri};
pub use window::{Window, WindowEnd};
pub use write::Deleted;

pub use larder_runtime::compute::Busy;
pub use object_store;
