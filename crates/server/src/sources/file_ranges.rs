//! The parts of a file, read by themselves.

use std::{fs::Metadata, io::SeekFrom, ops::Range, path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use larder_store::store::{Blob, Ranges, StoreError};
use tokio::{
    fs::File,
    io::{self, AsyncReadExt, AsyncSeekExt},
    sync::Mutex,
};

/// How many bytes of a file are read at once when all of it is read.
const READ_AHEAD: u64 = 1 << 20;

/// Access to the parts of a file as it is now; `None` where the file system does
/// not tell when it changed.
pub(super) async fn of_file(path: &Path, metadata: &Metadata) -> io::Result<Option<Ranges>> {
    let Ok(modified) = metadata.modified() else { return Ok(None) };
    let modified = DateTime::<Utc>::from(modified).format("%s.%f");
    let version = format!("{} {} {modified}", path.display(), metadata.len());
    let file = FileBlob(Mutex::new(File::open(path).await?));
    Ok(Some(Ranges { version, blob: Arc::new(file) }))
}

struct FileBlob(Mutex<File>);

impl FileBlob {
    async fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let mut bytes = BytesMut::zeroed(length);

        // Positions belong to the file handle, so its reads take turns.
        let mut file = self.0.lock().await;
        file.seek(SeekFrom::Start(range.start)).await?;
        file.read_exact(&mut bytes).await?;
        Ok(bytes.freeze())
    }
}

#[async_trait]
impl Blob for FileBlob {
    async fn range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.read(range).await.map_err(|error| {
            tracing::error!(%error, "a part of a file cannot be read");
            StoreError::Input(io::Error::other("the file has changed or cannot be read now"))
        })
    }

    fn read_ahead(&self) -> u64 {
        READ_AHEAD
    }
}
