//! A place for objects as this crate uses it: what is not there is no error,
//! and what fails names the place.

use std::{borrow::Cow, error::Error, fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, WriteMultipart, path::Path,
};

use crate::store::StoreError;

#[derive(Clone)]
pub(in crate::store) struct Objects {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) name: &'static str,
    /// Whether it lists in the order of keys, from any key on.
    pub(super) in_order: bool,
    /// Whether dots at the end of a part are dropped, so that names that differ
    /// in those alone would be one.
    pub(super) drops_dots: bool,
}

impl Objects {
    /// What lies there, if anything.
    pub(in crate::store) async fn get(&self, path: &Path) -> Result<Option<Bytes>, StoreError> {
        let found = match self.store.get(&self.kept(path)).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        self.there(found)
    }

    /// A part of what lies there, if anything does.
    pub(super) async fn range(
        &self,
        path: &Path,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        self.there(self.store.get_range(&self.kept(path), range).await)
    }

    pub(super) async fn exists(&self, path: &Path) -> Result<bool, StoreError> {
        Ok(self.there(self.store.head(&self.kept(path)).await)?.is_some())
    }

    pub(in crate::store) async fn put(
        &self,
        path: &Path,
        payload: impl Into<PutPayload> + Send,
    ) -> Result<(), StoreError> {
        let put = self.store.put(&self.kept(path), payload.into()).await;
        put.map(drop).map_err(|error| self.failed(error))
    }

    /// Puts something there unless something is there; says whether it did. It
    /// may have done so all the same where the first of its answers was lost.
    pub(super) async fn create(
        &self,
        path: &Path,
        payload: impl Into<PutPayload> + Send,
    ) -> Result<bool, StoreError> {
        let path = self.kept(path);
        match self.store.put_opts(&path, payload.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Accepts content in parts.
    pub(super) async fn put_parts(
        &self,
        path: &Path,
        part_bytes: usize,
    ) -> Result<WriteMultipart, StoreError> {
        let parts = self.store.put_multipart(&self.kept(path)).await;
        let parts = parts.map_err(|error| self.failed(error))?;
        Ok(WriteMultipart::new_with_chunk_size(parts, part_bytes))
    }

    /// Removes what lies there, if anything does.
    pub(in crate::store) async fn remove(&self, path: &Path) -> Result<(), StoreError> {
        self.there(self.store.delete(&self.kept(path)).await).map(drop)
    }

    /// Everything below a folder, in any order.
    pub(in crate::store) fn below(
        &self,
        folder: &Path,
    ) -> BoxStream<'_, Result<ObjectMeta, StoreError>> {
        let files = self.store.list(Some(&self.kept(folder)));
        let files = files.map_ok(|file| ObjectMeta { location: self.named(file.location), ..file });
        files.map_err(|error| self.failed(error)).boxed()
    }

    /// The folders in a folder.
    pub(in crate::store) async fn folders(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        Ok(self.list(folder).await?.0)
    }

    /// The folders in a folder, and the files.
    async fn list(&self, folder: &Path) -> Result<(Vec<Path>, Vec<Path>), StoreError> {
        let listed = self.store.list_with_delimiter(Some(&self.kept(folder))).await;
        let listed = listed.map_err(|error| self.failed(error))?;
        let folders = listed.common_prefixes.into_iter().map(|path| self.named(path));
        let files = listed.objects.into_iter().map(|file| self.named(file.location));
        Ok((folders.collect(), files.collect()))
    }

    /// Everything below a folder that comes after `offset`, in the order of
    /// keys. Where there is no such order, folders are looked into one by one,
    /// and just those that have to be.
    pub(super) fn after(
        &self,
        folder: &Path,
        offset: Path,
    ) -> BoxStream<'_, Result<Path, StoreError>> {
        if self.in_order {
            let files = self.store.list_with_offset(Some(&self.kept(folder)), &self.kept(&offset));
            let files = files.map_ok(|file| self.named(file.location));
            return files.map_err(|error| self.failed(error)).boxed();
        }
        // The next one last.
        let left = vec![format!("{folder}/")];
        let walk = stream::try_unfold(left, move |mut left| {
            let offset = offset.clone();
            async move {
                while let Some(next) = left.pop() {
                    let Some(folder) = next.strip_suffix('/') else {
                        let file = Path::parse(next).map_err(|error| self.failed(error))?;
                        return Ok(Some((file, left)));
                    };
                    let folder = Path::parse(folder).map_err(|error| self.failed(error))?;
                    let (folders, files) = self.list(&folder).await?;
                    // What is in a folder comes before what would stand behind its slash.
                    let folders = folders.iter();
                    let folders = folders.filter(|path| *format!("{path}0") > *offset.as_ref());
                    let files = files.iter().filter(|path| **path > offset);
                    let from = left.len();
                    left.extend(folders.map(|path| format!("{path}/")));
                    left.extend(files.map(Path::to_string));
                    left[from..].sort_unstable_by(|one, other| other.cmp(one));
                }
                Ok(None)
            }
        });
        walk.boxed()
    }

    /// A path as it is kept: `+` stands behind dots that would be dropped, and
    /// ends no part otherwise.
    fn kept<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        if !self.drops_dots {
            return Cow::Borrowed(path);
        }
        let parts = path.as_ref().split('/');
        let parts =
            parts.map(|part| format!("{part}{}", if part.ends_with('.') { "+" } else { "" }));
        Cow::Owned(parse(&parts.collect::<Vec<_>>().join("/")))
    }

    /// The path that is kept like that.
    fn named(&self, kept: Path) -> Path {
        if !self.drops_dots {
            return kept;
        }
        let parts = kept.as_ref().split('/');
        let parts =
            parts.map(|part| part.strip_suffix('+').filter(|p| p.ends_with('.')).unwrap_or(part));
        parse(&parts.collect::<Vec<_>>().join("/"))
    }

    fn there<T>(&self, result: object_store::Result<T>) -> Result<Option<T>, StoreError> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    pub(super) fn damaged(&self, path: &Path, problem: &dyn Error) -> StoreError {
        self.failed(format!("{path} is damaged: {problem}"))
    }

    pub(super) fn failed(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError::Unavailable { backend: self.name, source: source.into() }
    }
}

fn parse(path: &str) -> Path {
    Path::parse(path).expect("a sign at the end of a part makes none empty or dots")
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}
