//! The encoding of entries in Redis: a hash of a few fields.

use std::{borrow::Cow, sync::Arc};

use larder_identity::Owner;
use larder_records::RecordIndex;
use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    redis::{FromRedisValue, ParsingError, Shard, Value},
    store::{Block, Entry, Kind, ResourceUri, StoreError},
};

/// The fields that are read, in the order of [`StoredFields`].
pub(super) const FIELDS: [&str; 8] =
    ["meta", "blocks", "revision", "size", "created", "updated", "expires", "blob"];

/// The size of a block in the table: length and stored length as u32, first line
/// as u64, little-endian. Offsets follow from the lengths.
const BLOCK_BYTES: usize = 16;

/// The key of a resource's current entry.
pub(super) fn key(shard: &Shard, owner: &Owner, uri: &str) -> String {
    shard.key_with("entry", owner.as_str(), uri)
}

/// The key of the content with this ID.
pub(super) fn blob_key(shard: &Shard, id: &str) -> String {
    shard.key("blob", id)
}

/// The key of an earlier revision's entry.
pub(super) fn earlier_key(shard: &Shard, owner: &Owner, uri: &str, revision: u64) -> String {
    shard.key_with("past", owner.as_str(), &format!("{revision}:{uri}"))
}

/// The numbers of the earlier revisions, from the entry's field `past`.
pub(super) fn earlier_revisions(field: &str) -> impl Iterator<Item = u64> {
    field.split(' ').filter_map(|earlier| earlier.split(':').next()?.parse().ok())
}

/// The field `meta`: the metadata that no script reads.
#[derive(Serialize, Deserialize)]
struct EntryMetadata<'a> {
    name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    mime_type: Cow<'a, str>,
    kind: Kind,
    lines: u64,
    sha256: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    records: Option<Arc<RecordIndex>>,
}

/// The field `meta` of an entry.
pub(super) fn meta(entry: &Entry) -> String {
    // Exhaustive, so that a new field is not forgotten here.
    let Entry {
        uri: _,
        owner: _,
        revision: _,
        name,
        title,
        description,
        mime_type,
        kind,
        size: _,
        lines,
        sha256,
        created: _,
        updated: _,
        expires: _,
        session,
        origins,
        blocks: _,
        records,
    } = entry;

    let meta = EntryMetadata {
        name: name.into(),
        title: title.as_deref().map(Cow::from),
        description: description.as_deref().map(Cow::from),
        mime_type: mime_type.into(),
        kind: *kind,
        lines: *lines,
        sha256: sha256.into(),
        session: session.as_deref().map(Cow::from),
        origins: origins.to_vec(),
        records: records.clone(),
    };

    serde_json::to_string(&meta).expect("strings and numbers are JSON")
}

/// The field `blocks` of an entry: [`BLOCK_BYTES`] for each block.
pub(super) fn blocks(blocks: &[Block]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blocks.len() * BLOCK_BYTES);
    let short = |len| u32::try_from(len).expect("a block is no longer than a quarter of a MiB");

    for block in blocks {
        bytes.extend(short(block.len).to_le_bytes());
        bytes.extend(short(block.stored_len).to_le_bytes());
        bytes.extend(block.first_line.to_le_bytes());
    }

    bytes
}

/// Parses the field `blocks`, the inverse of [`blocks`].
fn read_blocks(bytes: &[u8]) -> Arc<[Block]> {
    let mut offset = 0;
    let mut stored = 0;

    let block = |bytes: &[u8; BLOCK_BYTES]| {
        let [len, stored_len, low, high] = std::array::from_fn(|word| {
            u32::from_le_bytes(std::array::from_fn(|n| bytes[4 * word + n]))
        });
        let first_line = u64::from(high) << 32 | u64::from(low);
        let len = u64::from(len);
        let stored_len = u64::from(stored_len);

        let block = Block { offset, len, first_line, stored, stored_len };
        (offset, stored) = (block.end(), block.stored_end());
        block
    };

    let (blocks, _) = bytes.as_chunks();
    blocks.iter().map(block).collect()
}

/// The values of [`FIELDS`] as Redis replied.
#[derive(Debug)]
pub(super) struct EntryFields(StoredFields);

type StoredFields = (
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<String>,
);

impl FromRedisValue for EntryFields {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        StoredFields::from_redis_value(value).map(Self)
    }
}

impl EntryFields {
    /// Decodes the entry and the ID of its content. None if the hash does not exist.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if a field is missing or damaged.
    pub(super) fn read(
        self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<Option<(Entry, String)>, StoreError> {
        let (meta, blocks, revision, size, created, updated, expires, blob) = self.0;
        let Some(blob) = blob else { return Ok(None) };

        let corrupt = |source| StoreError::Corrupt { uri: uri.clone(), source };
        let missing = || corrupt("a field is missing".into());
        let time = |time: Option<u64>| time.map(Timestamp::from_millis).ok_or_else(missing);

        let meta = meta.ok_or_else(missing)?;
        let meta: EntryMetadata<'_> =
            serde_json::from_slice(&meta).map_err(|e| corrupt(e.into()))?;

        let entry = Entry {
            uri: uri.clone(),
            owner: owner.clone(),
            revision: revision.ok_or_else(missing)?,
            name: meta.name.into_owned(),
            title: meta.title.map(Cow::into_owned),
            description: meta.description.map(Cow::into_owned),
            mime_type: meta.mime_type.into_owned(),
            kind: meta.kind,
            size: size.ok_or_else(missing)?,
            lines: meta.lines,
            sha256: meta.sha256.into_owned(),
            created: time(created)?,
            updated: time(updated)?,
            expires: time(expires)?,
            session: meta.session.map(Arc::from),
            origins: meta.origins.into(),
            blocks: read_blocks(&blocks.ok_or_else(missing)?),
            records: meta.records,
        };

        if entry.blocks.last().map_or(0, Block::end) != entry.size {
            return Err(corrupt("the block table does not match the size".into()));
        }

        Ok(Some((entry, blob)))
    }
}
