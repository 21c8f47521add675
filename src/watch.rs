//! Watches files for changes while the server runs.

use std::{path::PathBuf, time::Duration};

use sha2::{Digest, Sha256};

/// How often the files are read. Polling, because mounted secrets and network file systems
/// send no notifications.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A few small files and the digests of their last content.
#[derive(Debug)]
pub struct WatchedFiles {
    files: Vec<(PathBuf, ContentDigest)>,
}

/// The SHA-256 of a file. None until it can be read.
type ContentDigest = Option<[u8; 32]>;

impl WatchedFiles {
    /// Reads the files for the first time.
    pub async fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut watched = Self { files: files.into_iter().map(|file| (file, None)).collect() };
        watched.check().await;
        watched
    }

    /// Resolves when the content of a file changes; never without files. An unreadable file
    /// is no change: it may be about to be replaced.
    pub async fn changed(&mut self) {
        if self.files.is_empty() {
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if self.check().await {
                return;
            }
        }
    }

    /// Reads the files and returns whether any content changed.
    pub async fn check(&mut self) -> bool {
        let mut changed = false;
        for (file, digest) in &mut self.files {
            let Ok(content) = tokio::fs::read(file).await else { continue };
            let new_digest = Some(Sha256::digest(&content).into());
            changed |= *digest != new_digest;
            *digest = new_digest;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_new_content_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "one").unwrap();
        let mut watched = WatchedFiles::new([file.clone()]).await;
        assert!(!watched.check().await);
        std::fs::write(&file, "one").unwrap();
        assert!(!watched.check().await, "same content");
        std::fs::remove_file(&file).unwrap();
        assert!(!watched.check().await, "unreadable");
        std::fs::write(&file, "two").unwrap();
        watched.changed().await;
        assert!(!watched.check().await);
    }
}
