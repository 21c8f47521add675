//! Files whose content matters while the server runs.

use std::{path::PathBuf, time::Duration};

use sha2::{Digest, Sha256};

/// How often is looked. By reading, not by notification: what is mounted from
/// a secret or over a network changes without one.
const EVERY: Duration = Duration::from_secs(2);

/// A few small files, as they were when last looked at.
#[derive(Debug)]
pub struct Watched {
    files: Vec<(PathBuf, Seen)>,
}

/// What a file holds; nothing while it cannot be read.
type Seen = Option<[u8; 32]>;

impl Watched {
    /// Looks at those files for the first time.
    pub async fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut watched = Self { files: files.into_iter().map(|file| (file, None)).collect() };
        watched.look().await;
        watched
    }

    /// Resolves when any of them holds something else than before; never where
    /// there are none. A file that cannot be read is no change: it may be about
    /// to be replaced.
    pub async fn changed(&mut self) {
        if self.files.is_empty() {
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(EVERY).await;
            if self.look().await {
                return;
            }
        }
    }

    /// Looks; says whether something is new.
    pub async fn look(&mut self) -> bool {
        let mut changed = false;
        for (file, seen) in &mut self.files {
            let Ok(content) = tokio::fs::read(file).await else { continue };
            let now = Some(Sha256::digest(&content).into());
            changed |= *seen != now;
            *seen = now;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_is_new_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "one").unwrap();
        let mut watched = Watched::new([file.clone()]).await;
        assert!(!watched.look().await);
        std::fs::write(&file, "one").unwrap();
        assert!(!watched.look().await, "the same again");
        std::fs::remove_file(&file).unwrap();
        assert!(!watched.look().await, "gone, for now");
        std::fs::write(&file, "two").unwrap();
        watched.changed().await;
        assert!(!watched.look().await);
    }
}
