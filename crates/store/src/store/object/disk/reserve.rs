//! [`Reserve`]: files that only take space until the space is needed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use larder_runtime::random::Random;

/// The number of files. A disk is also full when it can hold no more files, so each
/// file also reserves its place.
pub(super) const FILES: u64 = 64;

/// The files of the reserve, in a folder.
#[derive(Debug)]
pub(super) struct Reserve {
    folder: PathBuf,
    file_bytes: u64,
    random: Random,
}

impl Reserve {
    /// A reserve of `bytes`, rounded up, in `folder`. Creates no files.
    pub(super) fn new(folder: PathBuf, bytes: u64, random: Random) -> Self {
        Self { folder, file_bytes: bytes.div_ceil(FILES), random }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.file_bytes * FILES
    }

    fn file(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.space"))
    }

    /// Whether the reserve exists. The last file is created last and removed first.
    pub(super) fn is_whole(&self) -> bool {
        has_len(&self.file(FILES - 1), self.file_bytes)
    }

    /// Creates the files; none is left after an error.
    pub(super) fn make(&self) -> io::Result<()> {
        let content = self.content();

        let written = fs::create_dir_all(&self.folder).and_then(|()| {
            (0..FILES).try_for_each(|number| fs::write(self.file(number), &content))
        });

        written.inspect_err(|_| {
            self.remove();
        })
    }

    /// Removes the files, and returns whether any existed.
    pub(super) fn remove(&self) -> bool {
        let removed =
            (0..FILES).rev().filter(|number| fs::remove_file(self.file(*number)).is_ok()).count();

        // Fails if another instance creates the reserve again meanwhile.
        let _ = fs::remove_dir(&self.folder);
        removed > 0
    }

    /// The content of one file. Random, because some file systems compress zeros.
    fn content(&self) -> Vec<u8> {
        let len = usize::try_from(self.file_bytes).unwrap_or(usize::MAX);

        let mut content = Vec::with_capacity(len);
        while content.len() < len {
            content.extend(self.random.id().bytes().take(len - content.len()));
        }
        content
    }
}

fn has_len(file: &Path, len: u64) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.len() == len)
}
