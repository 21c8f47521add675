//! An [`ObjectStore`] as the backends use it: a missing object is `None`, and
//! errors name the backend.

use std::{borrow::Cow, error::Error, fmt, io, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use larder_runtime::spans::outgoing_span;
use object_store::{
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, PutResult, WriteMultipart,
    path::Path,
};

use tracing::{Instrument, Span};

use super::{
    disk::Disk,
    local_files::LocalFiles,
    walk::{Walk, WalkStep},
};
use crate::store::{DiskSpace, StoreError};

/// The objects of one location.
#[derive(Clone)]
pub(in crate::store) struct Objects {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) name: &'static str,

    /// Whether listings are in the order of keys and can start after any key.
    pub(super) lists_in_order: bool,
    /// Whether the service drops dots at the end of a path segment. Names that differ only in
    /// these dots would collide.
    pub(super) drops_dots: bool,
    /// The most bytes of an object that the location copies by itself, at once; 0 for none.
    pub(super) max_copy_bytes: u64,

    /// The disk of a directory.
    pub(super) disk: Option<Arc<Disk>>,
    /// The files of a directory.
    pub(super) files: Option<LocalFiles>,
}

impl Objects {
    /// The object, if it exists.
    pub(in crate::store) async fn get(&self, path: &Path) -> Result<Option<Bytes>, StoreError> {
        if let Some(files) = &self.files {
            return self.existing(files.read(path).instrument(self.span("get")).await);
        }

        let found = async {
            match self.store.get(&self.stored_path(path)).await {
                Ok(found) => found.bytes().await,
                Err(error) => Err(error),
            }
        };
        self.existing(found.instrument(self.span("get")).await)
    }

    /// The objects directly in a folder, and the content of the object that `choose` selects, if
    /// the object still exists.
    pub(super) async fn list_and_get(
        &self,
        folder: &Path,
        choose: fn(&[Path]) -> Option<Path>,
    ) -> Result<(Vec<Path>, Option<Bytes>), StoreError> {
        if let Some(files) = &self.files {
            let found = files.list_and_read(folder, choose).await;
            return found.map_err(|error| self.failed(error));
        }

        let files = self.files_in(folder).await?;
        let chosen = match choose(&files) {
            Some(chosen) => self.get(&chosen).await?,
            None => None,
        };

        Ok((files, chosen))
    }

    /// A range of the object, if it exists.
    pub(super) async fn range(
        &self,
        path: &Path,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        // For a file, `get_ranges` opens and reads in one step on another thread; `get_range`
        // takes two.
        let path = self.stored_path(path);
        let ranges = [range];
        let ranges = self.store.get_ranges(&path, &ranges).instrument(self.span("get range"));
        Ok(self.existing(ranges.await)?.and_then(|mut ranges| ranges.pop()))
    }

    pub(super) async fn exists(&self, path: &Path) -> Result<bool, StoreError> {
        let path = self.stored_path(path);
        let head = self.store.head(&path).instrument(self.span("head"));
        Ok(self.existing(head.await)?.is_some())
    }

    /// Writes an object that is not content. Uses the reserve if the disk is full.
    pub(in crate::store) async fn put(
        &self,
        path: &Path,
        payload: impl Into<PutPayload> + Send,
    ) -> Result<(), StoreError> {
        let put = self.put_with_reserve(path, payload.into(), PutMode::Overwrite).await;
        put.map(drop).map_err(|error| self.failed(error))
    }

    /// Writes content.
    pub(super) async fn put_content(
        &self,
        path: &Path,
        content: PutPayload,
    ) -> Result<(), StoreError> {
        let path = self.stored_path(path);
        let put = self.store.put(&path, content).instrument(self.span("put content"));
        put.await.map(drop).map_err(|error| self.failed(error))
    }

    /// Whether both are the objects of one location.
    pub(in crate::store) fn is_same_location(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }

    /// Whether the location copies an object of `bytes` by itself.
    pub(in crate::store) fn copies(&self, bytes: u64) -> bool {
        bytes <= self.max_copy_bytes
    }

    /// Copies content within the location, without its bytes. Returns `false` if there is no such
    /// content.
    pub(super) async fn copy_content(&self, from: &Path, to: &Path) -> Result<bool, StoreError> {
        let copied = async {
            match &self.files {
                Some(files) => files.copy(from, to).await,
                None => self.store.copy(&self.stored_path(from), &self.stored_path(to)).await,
            }
        };
        Ok(self.existing(copied.instrument(self.span("copy")).await)?.is_some())
    }

    /// Writes an object. Gives up the reserve and tries again if the disk is full.
    async fn put_with_reserve(
        &self,
        path: &Path,
        payload: PutPayload,
        mode: PutMode,
    ) -> object_store::Result<PutResult> {
        let path = self.stored_path(path);
        let put = || {
            let put = self.store.put_opts(&path, payload.clone(), mode.clone().into());
            put.instrument(self.span("put"))
        };

        match (put().await, &self.disk) {
            (Err(error), Some(disk)) if is_disk_full(&error) => {
                disk.give_up_reserve().await;
                put().await
            }
            (written, _) => written,
        }
    }

    /// The space on the disk, if it can be measured.
    pub(in crate::store) async fn disk_space(&self) -> Option<DiskSpace> {
        match &self.disk {
            Some(disk) => disk.space().await,
            None => None,
        }
    }

    /// Refuses content while the disk has too little space for it.
    pub(in crate::store) async fn check_disk(&self) -> Result<(), StoreError> {
        self.disk_space().await.map_or(Ok(()), |space| space.check())
    }

    /// Creates an object that is not content unless it exists, and returns whether this call
    /// did. Uses the reserve if the disk is full. Also returns `false` if a first attempt has
    /// created the object and a retry found it.
    pub(super) async fn create(
        &self,
        path: &Path,
        payload: impl Into<PutPayload> + Send,
    ) -> Result<bool, StoreError> {
        match self.put_with_reserve(path, payload.into(), PutMode::Create).await {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Begins a multipart upload.
    pub(super) async fn put_multipart(
        &self,
        path: &Path,
        part_bytes: usize,
    ) -> Result<WriteMultipart, StoreError> {
        let upload = self
            .store
            .put_multipart(&self.stored_path(path))
            .await
            .map_err(|error| self.failed(error))?;
        Ok(WriteMultipart::new_with_chunk_size(upload, part_bytes))
    }

    /// Removes the object, if it exists.
    pub(in crate::store) async fn remove(&self, path: &Path) -> Result<(), StoreError> {
        let path = self.stored_path(path);
        let deleted = self.store.delete(&path).instrument(self.span("delete"));
        self.existing(deleted.await).map(drop)
    }

    /// All objects below a folder, in any order.
    pub(in crate::store) fn list(
        &self,
        folder: &Path,
    ) -> BoxStream<'_, Result<ObjectMeta, StoreError>> {
        let files = self.store.list(Some(&self.stored_path(folder)));
        files
            .map_ok(|file| ObjectMeta { location: self.logical_path(file.location), ..file })
            .map_err(|error| self.failed(error))
            .boxed()
    }

    /// The folders directly in a folder.
    pub(in crate::store) async fn folders(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        Ok(self.list_folder(folder).await?.0)
    }

    /// The objects directly in a folder.
    pub(super) async fn files_in(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        Ok(self.list_folder(folder).await?.1)
    }

    /// The folders and the objects directly in a folder.
    async fn list_folder(&self, folder: &Path) -> Result<(Vec<Path>, Vec<Path>), StoreError> {
        let folder = self.stored_path(folder);
        let list = self.store.list_with_delimiter(Some(&folder)).instrument(self.span("list"));
        let list = list.await.map_err(|error| self.failed(error))?;

        let folders = list.common_prefixes.into_iter().map(|path| self.logical_path(path));
        let files = list.objects.into_iter().map(|file| self.logical_path(file.location));
        Ok((folders.collect(), files.collect()))
    }

    /// All objects below a folder whose paths sort after `offset`, in the order of
    /// paths. If the service does not list in order, walks the folders and skips the paths
    /// before `offset`.
    pub(super) fn list_after(
        &self,
        folder: &Path,
        offset: Path,
    ) -> BoxStream<'_, Result<Path, StoreError>> {
        if self.lists_in_order {
            let folder = self.stored_path(folder);
            let offset = self.stored_path(&offset);
            return self
                .store
                .list_with_offset(Some(&folder), &offset)
                .map_ok(|file| self.logical_path(file.location))
                .map_err(|error| self.failed(error))
                .boxed();
        }

        let walk = stream::try_unfold(Walk::new(folder, offset), move |mut walk| async move {
            loop {
                let folder = match walk.next().map_err(|error| self.failed(error))? {
                    Some(WalkStep::Object(object)) => return Ok(Some((object, walk))),
                    Some(WalkStep::Folder(folder)) => folder,
                    None => return Ok(None),
                };

                match &self.files {
                    Some(files) => {
                        let walked = files.walk(walk, folder).await;
                        walk = walked.map_err(|error| self.failed(error))?;
                    }
                    None => {
                        let (folders, files) = self.list_folder(&folder).await?;
                        walk.listed(&folders, &files);
                    }
                }
            }
        });

        walk.boxed()
    }

    /// The span of a request, for traces.
    fn span(&self, operation: &'static str) -> Span {
        outgoing_span(self.name, || operation.to_owned())
    }

    /// The path as stored: with `+` after dots that the service would drop. No other segment of
    /// a path ends in `+` after a dot.
    fn stored_path<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        if !self.drops_dots {
            return Cow::Borrowed(path);
        }

        let segments = path.as_ref().split('/').map(|segment| {
            let mark = if segment.ends_with('.') { "+" } else { "" };
            format!("{segment}{mark}")
        });
        Cow::Owned(parse(&segments.collect::<Vec<_>>().join("/")))
    }

    /// The inverse of [`stored_path`](Self::stored_path).
    fn logical_path(&self, stored: Path) -> Path {
        if !self.drops_dots {
            return stored;
        }

        let segments = stored.as_ref().split('/').map(|segment| {
            segment.strip_suffix('+').filter(|name| name.ends_with('.')).unwrap_or(segment)
        });
        parse(&segments.collect::<Vec<_>>().join("/"))
    }

    /// The result of a request for one object: a missing object is `None`.
    fn existing<T>(&self, result: object_store::Result<T>) -> Result<Option<T>, StoreError> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The error of an object that cannot be decoded.
    pub(super) fn damaged(&self, path: &Path, problem: &dyn Error) -> StoreError {
        self.failed(format!("{path} is damaged: {problem}"))
    }

    /// The error of a failed request: [`StoreError::Full`] if the disk is full, otherwise
    /// [`StoreError::Unavailable`].
    pub(super) fn failed(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        let source = source.into();
        if is_disk_full(&*source) {
            return StoreError::Full(
                "The disk of the store is full. Delete resources, or wait until some expire."
                    .into(),
            );
        }

        StoreError::Unavailable { backend: self.name, source }
    }
}

/// Whether the cause of an error is a full disk or a disk quota.
fn is_disk_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| {
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        }) {
            return true;
        }
        cause = error.source();
    }

    false
}

/// Parses a path whose segments differ from those of a valid path only in a sign at the end.
fn parse(path: &str) -> Path {
    Path::parse(path).expect("a sign at the end makes no part empty or dots")
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported_as_full_and_other_errors_as_unavailable() {
        let objects = Objects {
            store: Arc::new(object_store::memory::InMemory::new()),
            name: "file",
            lists_in_order: false,
            drops_dots: false,
            max_copy_bytes: u64::MAX,
            disk: None,
            files: None,
        };
        let failed = |kind: io::ErrorKind| {
            let source = Box::new(io::Error::from(kind));
            objects.failed(object_store::Error::Generic { store: "file", source })
        };

        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = failed(kind);
            assert!(matches!(&error, StoreError::Full(text) if text.contains("disk")), "{error:?}");
        }

        let error = failed(io::ErrorKind::PermissionDenied);
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
}
