//! A place for objects as this crate uses it: what is not there is no error,
//! and what fails names the place.

use std::{error::Error, fmt, ops::Range, sync::Arc};

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
}

impl Objects {
    /// What lies there, if anything.
    pub(in crate::store) async fn get(&self, path: &Path) -> Result<Option<Bytes>, StoreError> {
        let found = match self.store.get(path).await {
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
        self.there(self.store.get_range(path, range).await)
    }

    pub(super) async fn exists(&self, path: &Path) -> Result<bool, StoreError> {
        Ok(self.there(self.store.head(path).await)?.is_some())
    }

    pub(in crate::store) async fn put(
        &self,
        path: &Path,
        payload: impl Into<PutPayload> + Send,
    ) -> Result<(), StoreError> {
        self.store.put(path, payload.into()).await.map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Puts something there unless something is there; says whether it did. It
    /// may have done so all the same where the first of its answers was lost.
    pub(super) async fn create(
        &self,
        path: &Path,
        payload: impl Into<PutPayload> + Send,
    ) -> Result<bool, StoreError> {
        match self.store.put_opts(path, payload.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Takes content in parts.
    pub(super) async fn put_parts(
        &self,
        path: &Path,
        part_bytes: usize,
    ) -> Result<WriteMultipart, StoreError> {
        let parts = self.store.put_multipart(path).await.map_err(|error| self.failed(error))?;
        Ok(WriteMultipart::new_with_chunk_size(parts, part_bytes))
    }

    /// Removes what lies there, if anything does.
    pub(in crate::store) async fn remove(&self, path: &Path) -> Result<(), StoreError> {
        self.there(self.store.delete(path).await).map(drop)
    }

    /// Everything below a folder, in any order.
    pub(in crate::store) fn below(
        &self,
        folder: &Path,
    ) -> BoxStream<'_, Result<ObjectMeta, StoreError>> {
        self.store.list(Some(folder)).map_err(|error| self.failed(error)).boxed()
    }

    /// The folders in a folder.
    pub(in crate::store) async fn folders(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        let listed = self.store.list_with_delimiter(Some(folder)).await;
        Ok(listed.map_err(|error| self.failed(error))?.common_prefixes)
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
            let files = self.store.list_with_offset(Some(folder), &offset);
            return files.map_ok(|file| file.location).map_err(|error| self.failed(error)).boxed();
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
                    let listed = self.store.list_with_delimiter(Some(&folder)).await;
                    let listed = listed.map_err(|error| self.failed(error))?;
                    let folders = listed.common_prefixes.iter();
                    // What is in a folder comes before what would stand behind its slash.
                    let folders = folders.filter(|path| *format!("{path}0") > *offset.as_ref());
                    let files = listed.objects.iter().map(|file| &file.location);
                    let files = files.filter(|path| **path > offset);
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

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}
