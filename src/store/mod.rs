//! The store: where large results lie until someone reads them or they expire.
//!
//! A resource is an [`Entry`] (what it is) and a blob (its bytes), scoped by
//! [`Owner`](crate::auth::Owner). [`Store`] is the face: it checks URIs and
//! times to live, cuts content into blocks while it streams in, and hands it
//! out by range, by lines, or as a stream. A [`Backend`] keeps entries and
//! bytes; backends differ in speed and durability, never in what a caller can
//! observe, and [`contract`] is the test of that.

mod backend;
mod blocks;
mod changes;
mod content;

mod detached;
mod entry;
mod error;
mod expired;
mod facade;
mod memory;
mod object;
mod packing;
mod quota;
mod reading;
mod redis;
mod sharing;
mod stored_bytes;
mod uri;
mod window;

pub use backend::{Backend, Blob, Committed, Draft, Found, Lookup, Placement, Upload, Usage};
#[cfg(any(test, feature = "testing"))]
pub(crate) use blocks::BLOCK_BYTES;
pub use changes::{Change, ChangeFeed, ChangeKind, Changes, Missed};
pub use content::{Content, ContentStream};
pub use entry::{Block, Entry, Kind};
pub use error::StoreError;
pub use facade::{Details, Page, Store, StoreLimits};
pub use memory::{MemoryBackend, MemoryLimits};
pub use object::{ObjectBackend, ObjectPlace, PlaceError};
pub use packing::Packed;
pub use quota::OwnerQuota;
pub use redis::{RedisBackend, RedisBlobs};
pub use sharing::{Audience, Shared};
pub use stored_bytes::StoredBytes;
pub use uri::{InvalidUri, ResourceUri};
pub use window::{Window, WindowEnd};
