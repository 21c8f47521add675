//! Watches files for changes while the server runs.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

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

    /// Watches these files from now on. A file that was watched before keeps its last digest.
    pub async fn watch(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        let watched = std::mem::take(&mut self.files);

        for file in files {
            let last = watched.iter().find(|(known, _)| *known == file);
            let digest = match last.and_then(|(_, digest)| *digest) {
                None => digest(&file).await,
                last => last,
            };
            self.files.push((file, digest));
        }
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
        for (file, last) in &mut self.files {
            let Some(digest) = digest(file).await else { continue };
            changed |= *last != Some(digest);
            *last = Some(digest);
        }
        changed
    }
}

async fn digest(file: &Path) -> ContentDigest {
    let content = tokio::fs::read(file).await.ok()?;
    Some(Sha256::digest(&content).into())
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

    #[tokio::test]
    async fn other_files_can_be_watched_and_no_change_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        for file in [&old, &new] {
            std::fs::write(file, "one").unwrap();
        }

        let mut watched = WatchedFiles::new([old.clone()]).await;

        std::fs::write(&old, "two").unwrap();
        watched.watch([old.clone(), new.clone()]).await;
        assert!(watched.check().await, "the old file has changed before");

        std::fs::write(&new, "two").unwrap();
        assert!(watched.check().await, "the new file is watched");

        watched.watch([new]).await;
        std::fs::write(&old, "three").unwrap();
        assert!(!watched.check().await, "the old file is not watched");
    }
}
