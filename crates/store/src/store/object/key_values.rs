//! [`KeyValueObjects`]: objects in a store that only gets, puts, deletes and lists values by key.
//!
//! An object of at most [`PART_BYTES`] is one value. A larger object is a head, and parts under keys of
//! their own. The head says that the object is incomplete until all parts are written, so no reader
//! sees a part of it, and it names the object to the sweep that removes content without an entry. The
//! first byte of a value says which of these it is.

use std::{collections::BTreeSet, error::Error, fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use chrono::DateTime;
use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use larder_runtime::clock::Timestamp;
use object_store::{
    Attributes, CopyMode, CopyOptions, Extensions, GetOptions, GetRange, GetResult,
    GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

mod parts_upload;
#[cfg(test)]
mod tests;

use self::parts_upload::PartsUpload;

/// The most bytes of an object in one value.
const PART_BYTES: usize = 1 << 20;

/// How many keys one listing asks for.
const PAGE: usize = 1000;

/// The error of a [`KeyValueStore`].
pub type KeyValueError = Box<dyn Error + Send + Sync>;

/// A store of values by key, as which most databases can be used. Keys are ASCII text of at most 1,000
/// bytes; values have at most a mebibyte and a byte, or for content of gigabytes a few mebibytes.
///
/// Each method is one step that takes effect as a whole, and whose effect all later calls see, from any
/// process.
#[async_trait]
pub trait KeyValueStore: fmt::Debug + Send + Sync + 'static {
    /// The value of a key.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, KeyValueError>;

    /// Writes a value. With `only_new`, only if the key has none. Returns whether it was written.
    async fn put(&self, key: &str, value: Bytes, only_new: bool) -> Result<bool, KeyValueError>;

    /// Deletes a value. A missing value is no error.
    async fn delete(&self, key: &str) -> Result<(), KeyValueError>;

    /// Up to `limit` keys that begin with `prefix` and sort after `after`, in the order of their bytes,
    /// each with the time at which its value was written, by the clock of the store. A page without
    /// keys is the last.
    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Timestamp)>, KeyValueError>;
}

/// The value of an object's own key.
enum Head {
    /// The whole object.
    Whole(Bytes),
    /// The length of an object in parts.
    Parts(u64),
    /// The parts are being written, or their writer died.
    Incomplete,
}

impl Head {
    fn encode(&self) -> Bytes {
        let mut value = BytesMut::new();
        match self {
            Self::Whole(bytes) => {
                value.reserve(1 + bytes.len());
                value.put_u8(0);
                value.put_slice(bytes);
            }
            Self::Parts(len) => {
                value.put_u8(1);
                value.put_u64(*len);
            }
            Self::Incomplete => value.put_u8(2),
        }
        value.freeze()
    }

    /// Reads the value of `path`. `None` if it is no head.
    fn decode(mut value: Bytes) -> Option<Self> {
        match value.try_get_u8().ok()? {
            0 => Some(Self::Whole(value)),
            1 => Some(Self::Parts(value.try_get_u64().ok()?)),
            2 => Some(Self::Incomplete),
            _ => None,
        }
    }
}

/// The key of a part. No path has a `#`.
fn part_key(path: &Path, part: u64) -> String {
    format!("{path}#{part}")
}

/// The objects in a [`KeyValueStore`].
#[derive(Debug)]
pub(super) struct KeyValueObjects<K>(Arc<K>);

impl<K> Clone for KeyValueObjects<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: KeyValueStore> KeyValueObjects<K> {
    pub(super) fn new(values: K) -> Self {
        Self(Arc::new(values))
    }

    async fn put_head(&self, path: &Path, head: Head, only_new: bool) -> Result<bool> {
        self.0.put(path.as_ref(), head.encode(), only_new).await.map_err(failed)
    }

    async fn put_part(&self, path: &Path, part: u64, bytes: Bytes) -> Result<()> {
        self.0.put(&part_key(path, part), bytes, false).await.map_err(failed).map(drop)
    }

    /// Copies the parts of an object of `len` bytes.
    async fn copy_parts(&self, from: &Path, to: &Path, len: u64) -> Result<()> {
        for part in 0..len.div_ceil(PART_BYTES as u64) {
            self.put_part(to, part, self.part(from, part).await?).await?;
            self.renew(to).await?;
        }
        Ok(())
    }

    async fn head(&self, path: &Path) -> Result<Option<Head>> {
        let Some(value) = self.0.get(path.as_ref()).await.map_err(failed)? else { return Ok(None) };
        let damaged = || failed(format!("the value of {path} is no object").into());
        Head::decode(value).map(Some).ok_or_else(damaged)
    }

    /// The bytes of a part.
    async fn part(&self, path: &Path, part: u64) -> Result<Bytes> {
        let found = self.0.get(&part_key(path, part)).await.map_err(failed)?;
        found.ok_or_else(|| missing(path))
    }

    /// A range of an object in parts, part by part.
    fn range(&self, path: &Path, range: Range<u64>) -> BoxStream<'static, Result<Bytes>> {
        let size = PART_BYTES as u64;
        let parts = range.start / size..range.end.div_ceil(size);
        let objects = self.clone();
        let path = path.clone();

        let read = move |part: u64| {
            let objects = objects.clone();
            let path = path.clone();
            let start = range.start.saturating_sub(part * size);
            let end = (range.end - part * size).min(size);
            async move {
                let bytes = objects.part(&path, part).await?;
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(index(start)..index(end)))
            }
        };
        stream::iter(parts).then(read).boxed()
    }

    /// The keys of one page. A page may have fewer than [`PAGE`], and none if there are no more.
    async fn page(&self, prefix: &str, after: &str) -> Result<Vec<(String, Timestamp)>> {
        let page = self.0.list(prefix, after, PAGE).await.map_err(failed)?;

        // A listing that does not advance would never end.
        let mut before = after;
        for (key, _) in &page {
            if &key[..] <= before || !key.starts_with(prefix) {
                let problem = format!("{key} is listed after {before}, with the prefix {prefix:?}");
                return Err(failed(problem.into()));
            }
            before = key;
        }
        Ok(page)
    }

    /// The objects whose paths begin with `prefix` and sort after `after`, in order.
    fn after(&self, prefix: String, after: String) -> BoxStream<'static, Result<ObjectMeta>> {
        let objects = self.clone();

        let last = after.clone();
        let pages = stream::try_unfold((after, last), move |(after, mut last)| {
            let objects = objects.clone();
            let prefix = prefix.clone();
            async move {
                let page = objects.page(&prefix, &after).await?;
                let Some((end, _)) = page.last() else { return Ok(None) };
                let end = end.clone();

                let mut found = Vec::new();
                for (key, at) in page {
                    let object = object_of(&key);
                    if *object > *last {
                        found.push(meta(object, at));
                        object.clone_into(&mut last);
                    }
                }
                Ok::<_, object_store::Error>(Some((found, (end, last))))
            }
        });
        pages.map_ok(stream::iter).try_flatten().boxed()
    }

    async fn remove(&self, path: &Path) -> Result<()> {
        self.remove_parts(path).await?;

        // The head is last, so that a removal that is cut short is found and repeated.
        self.0.delete(path.as_ref()).await.map_err(failed)
    }

    /// Removes the parts of an object, unless it is whole. An object without a head has the parts that
    /// were on their way when it was removed.
    async fn remove_parts(&self, path: &Path) -> Result<()> {
        let head = self.0.get(path.as_ref()).await.map_err(failed)?;
        if let Some(Head::Whole(_)) = head.and_then(Head::decode) {
            return Ok(());
        }

        let prefix = format!("{path}#");
        loop {
            let parts = self.page(&prefix, "").await?;
            if parts.is_empty() {
                return Ok(());
            }
            for (key, _) in &parts {
                self.0.delete(key).await.map_err(failed)?;
            }
        }
    }

    /// Makes the head of an upload as young as its last part, so that no sweep takes a slow upload
    /// for one whose writer died.
    ///
    /// # Errors
    /// The object was removed meanwhile.
    async fn renew(&self, path: &Path) -> Result<()> {
        match self.head(path).await? {
            Some(Head::Incomplete) => self.put_head(path, Head::Incomplete, false).await.map(drop),
            Some(Head::Whole(_) | Head::Parts(_)) => Ok(()),
            None => Err(removed(path)),
        }
    }

    /// Writes an object in parts. An object in parts at this path must have the same bytes, since its
    /// readers see the new parts before the end. It has: content has a path of its own, and an entry,
    /// which several instances may write at once, has the number of its change in its path.
    async fn put_in_parts(&self, path: &Path, mut bytes: Bytes) -> Result<()> {
        let len = bytes.len() as u64;
        self.put_head(path, Head::Incomplete, true).await?;

        for part in 0..len.div_ceil(PART_BYTES as u64) {
            let next = bytes.split_to(bytes.len().min(PART_BYTES));
            self.put_part(path, part, next).await?;
        }
        self.put_head(path, Head::Parts(len), false).await.map(drop)
    }
}

fn folder_prefix(folder: Option<&Path>) -> String {
    folder.filter(|folder| !folder.as_ref().is_empty()).map_or(String::new(), |f| format!("{f}/"))
}

fn meta(key: &str, at: Timestamp) -> Result<ObjectMeta> {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    Ok(ObjectMeta {
        location: Path::parse(key)?,
        last_modified: DateTime::from_timestamp_millis(millis).unwrap_or_default(),
        // Listings do not read the values, and no listing of Larder asks for sizes.
        size: 0,
        e_tag: None,
        version: None,
    })
}

/// The path of the object to which a key belongs.
fn object_of(key: &str) -> &str {
    key.split_once('#').map_or(key, |(object, _)| object)
}

fn removed(path: &Path) -> object_store::Error {
    let slow = "an upload must send eight mebibytes an hour";
    failed(format!("{path} was removed while it was written; {slow}").into())
}

fn exists(path: &Path) -> object_store::Error {
    let source = "it has a value".into();
    object_store::Error::AlreadyExists { path: path.to_string(), source }
}

fn failed(source: KeyValueError) -> object_store::Error {
    object_store::Error::Generic { store: "key-value store", source }
}

fn missing(path: &Path) -> object_store::Error {
    object_store::Error::NotFound { path: path.to_string(), source: "it has no value".into() }
}

fn written() -> PutResult {
    PutResult { e_tag: None, version: None, extensions: Extensions::new() }
}

impl<K: KeyValueStore> fmt::Display for KeyValueObjects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[async_trait]
impl<K: KeyValueStore> ObjectStore for KeyValueObjects<K> {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let bytes = Bytes::from(payload);
        let only_new = match options.mode {
            PutMode::Create => true,
            PutMode::Overwrite => false,
            PutMode::Update(_) => {
                return Err(object_store::Error::NotImplemented {
                    operation: "put_opts with PutMode::Update".into(),
                    implementer: "the key-value store".into(),
                });
            }
        };

        if bytes.len() > PART_BYTES && !only_new {
            self.put_in_parts(path, bytes).await?;
        } else if !self.put_head(path, Head::Whole(bytes), only_new).await? {
            return Err(exists(path));
        }
        Ok(written())
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.put_head(path, Head::Incomplete, true).await?;
        Ok(Box::new(PartsUpload::new(self.clone(), path.clone())))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let head = self.head(path).await?.ok_or_else(|| missing(path))?;
        let size = match &head {
            Head::Whole(bytes) => bytes.len() as u64,
            Head::Parts(len) => *len,
            Head::Incomplete => return Err(missing(path)),
        };

        let meta = ObjectMeta { size, ..meta(path.as_ref(), Timestamp::from_millis(0))? };
        options.check_preconditions(&meta)?;
        let range = options.range.unwrap_or(GetRange::Offset(0));
        let range =
            if size == 0 { 0..0 } else { range.as_range(size).map_err(|e| failed(e.into()))? };

        let pieces = match head {
            Head::Whole(bytes) => {
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let part = bytes.slice(index(range.start)..index(range.end));
                stream::iter([Ok(part)]).boxed()
            }
            Head::Parts(_) | Head::Incomplete => self.range(path, range.clone()),
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(pieces),
            meta,
            range,
            attributes: Attributes::new(),
            extensions: Extensions::new(),
        })
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let objects = self.clone();
        let delete = move |path: Path| {
            let objects = objects.clone();
            async move { objects.remove(&path).await.map(|()| path) }
        };
        paths.and_then(delete).boxed()
    }

    fn list(&self, folder: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.after(folder_prefix(folder), String::new())
    }

    fn list_with_offset(
        &self,
        folder: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.after(folder_prefix(folder), offset.to_string())
    }

    async fn list_with_delimiter(&self, folder: Option<&Path>) -> Result<ListResult> {
        let prefix = folder_prefix(folder);
        let mut folders = BTreeSet::new();
        let mut objects = Vec::new();
        let mut after = String::new();
        let mut last = String::new();

        loop {
            let page = self.page(&prefix, &after).await?;
            let Some((end, _)) = page.last() else { break };
            after.clone_from(end);

            for (key, at) in page {
                let object = object_of(&key);
                match key[prefix.len()..].split_once('/') {
                    Some((name, _)) => {
                        folders.insert(format!("{prefix}{name}"));
                        // No key has the last character of ASCII: the rest of the folder is skipped.
                        after = after.max(format!("{prefix}{name}/\u{7f}"));
                    }
                    None if *object > *last => {
                        objects.push(meta(object, at)?);
                        object.clone_into(&mut last);
                    }
                    None => {}
                }
            }
        }

        let common_prefixes = folders.iter().map(|folder| Ok(Path::parse(folder)?));
        let common_prefixes = common_prefixes.collect::<Result<_>>()?;
        Ok(ListResult { common_prefixes, objects, extensions: Extensions::new() })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let head = self.head(from).await?.ok_or_else(|| missing(from))?;
        let only_new = matches!(options.mode, CopyMode::Create);
        if from == to {
            return if only_new { Err(exists(to)) } else { Ok(()) };
        }
        if !only_new {
            // The parts of another object are no parts of the copy.
            self.remove_parts(to).await?;
        }

        let is_written = match head {
            Head::Incomplete => return Err(missing(from)),
            Head::Whole(_) => self.put_head(to, head, only_new).await?,
            Head::Parts(len) => {
                let is_begun = self.put_head(to, Head::Incomplete, only_new).await?;
                if is_begun {
                    self.copy_parts(from, to, len).await?;
                    self.put_head(to, head, false).await?;
                }
                is_begun
            }
        };
        if is_written { Ok(()) } else { Err(exists(to)) }
    }
}
