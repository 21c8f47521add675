//! [`LocalFiles`]: listings and reads of a directory, with one step on another thread for each
//! request. [`LocalFileSystem`] takes a step for each folder, for opening a file and for reading
//! it, and a step costs more than the work in it.

use std::{
    error, fs, io, path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use larder_runtime::clock::{Clock, SystemClock};
use object_store::{Error, ObjectStoreExt, Result, local::LocalFileSystem, path::Path};

use super::walk::Walk;

/// The files of a directory.
#[derive(Clone)]
pub(super) struct LocalFiles(Arc<LocalFileSystem>);

impl LocalFiles {
    pub(super) fn new(files: Arc<LocalFileSystem>) -> Self {
        Self(files)
    }

    /// The content of a file.
    pub(super) async fn read(&self, path: &Path) -> Result<Bytes> {
        let file = self.0.path_to_filesystem(path)?;
        in_background(move || read(&file)).await
    }

    /// Makes a second name for a file that is never changed, so that it takes no room.
    pub(super) async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let source = self.0.path_to_filesystem(from)?;
        let target = self.0.path_to_filesystem(to)?;

        // Both names have one time, by which unused content is found: a new name is not old.
        let touched = source.clone();
        let linked = match in_background(move || touch(&touched)).await {
            Ok(()) => self.0.copy(from, to).await,
            Err(error) => Err(error),
        };

        // A file system may have no second names, no more of them for this file, or none across
        // mounts, and may refuse them, or a new time, for a file of another user.
        match linked {
            Err(error) if !is_final(&error) => {
                in_background(move || copy_bytes(&source, &target)).await
            }
            copied => copied,
        }
    }

    /// The files directly in a folder, and the content of the file that `choose` selects, if the
    /// file still exists. A folder that does not exist has no files.
    pub(super) async fn list_and_read(
        &self,
        folder: &Path,
        choose: fn(&[Path]) -> Option<Path>,
    ) -> Result<(Vec<Path>, Option<Bytes>)> {
        let directory = Arc::clone(&self.0);
        let folder = folder.clone();

        in_background(move || {
            let (_, files) = list(&directory, &folder)?;

            let Some(chosen) = choose(&files) else { return Ok((files, None)) };
            match read(&directory.path_to_filesystem(&chosen)?) {
                Ok(bytes) => Ok((files, Some(bytes))),
                Err(Error::NotFound { .. }) => Ok((files, None)),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Continues a walk that came to `folder`.
    pub(super) async fn walk(&self, mut walk: Walk, folder: Path) -> Result<Walk> {
        let directory = Arc::clone(&self.0);

        in_background(move || {
            let mut next = Some(folder);
            for _ in 0..walk.begin_ahead() {
                let Some(folder) = next else { break };
                let (folders, files) = list(&directory, &folder)?;
                walk.listed(&folders, &files);
                next = walk.go_ahead()?;
            }

            if let Some(folder) = next {
                walk.put_back(&folder);
            }

            Ok(walk)
        })
        .await
    }
}

/// Runs file operations on a thread that may block.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// The folders and the files directly in a folder. A missing folder has none.
fn list(files: &LocalFileSystem, folder: &Path) -> Result<(Vec<Path>, Vec<Path>)> {
    let directory = files.path_to_filesystem(folder)?;

    let mut folders = Vec::new();
    let mut found = Vec::new();
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((folders, found)),
        entries => entries.map_err(|error| failed(&directory, error))?,
    };

    for entry in entries {
        let entry = entry.map_err(|error| failed(&directory, error))?;
        let name = entry.file_name();
        // `LocalFileSystem` writes to `<name>#<number>` first. No object's name contains `#`.
        let Some(name) = name.to_str().filter(|name| !name.contains('#')) else { continue };
        let Ok(path) = Path::parse(format!("{folder}/{name}")) else { continue };

        let kind = entry.file_type().map_err(|error| failed(&directory, error))?;
        let is_folder = if kind.is_symlink() { entry.path().is_dir() } else { kind.is_dir() };
        if is_folder { folders.push(path) } else { found.push(path) }
    }

    Ok((folders, found))
}

/// Reads a file at once.
fn read(file: &path::Path) -> Result<Bytes> {
    fs::read(file).map(Bytes::from).map_err(|error| failed(file, error))
}

/// Sets the time of the last change to now.
fn touch(file: &path::Path) -> Result<()> {
    let opened = fs::File::options().write(true).open(file);
    let now = UNIX_EPOCH + Duration::from_millis(SystemClock.now().as_millis());
    let touched = opened.and_then(|opened| opened.set_modified(now));
    touched.map_err(|error| failed(file, error))
}

/// Whether a copy of the bytes would fail, too: the file is missing, or the disk is full.
fn is_final(error: &Error) -> bool {
    if matches!(error, Error::NotFound { .. }) {
        return true;
    }

    let mut cause = Some(error as &(dyn error::Error + 'static));
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Copies a file with its bytes, under a name that listings ignore until it is complete.
fn copy_bytes(source: &path::Path, target: &path::Path) -> Result<()> {
    let mut incomplete = target.as_os_str().to_owned();
    incomplete.push("#0");
    let incomplete = path::PathBuf::from(incomplete);

    let folder = target.parent().unwrap_or(target);
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let copied = fs::copy(source, &incomplete).and_then(|_| fs::rename(&incomplete, target));
    if copied.is_err() {
        let _ = fs::remove_file(&incomplete);
    }
    copied.map_err(|error| failed(source, error))
}

/// The error of the object store for a file that cannot be listed or read.
fn failed(path: &path::Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        let path = path.display().to_string();
        return Error::NotFound { path, source: Box::new(error) };
    }
    Error::Generic { store: "file", source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn listings_and_copies_ignore_incomplete_files_and_name_missing_ones() {
        let folder = tempfile::tempdir().expect("there is room");
        fs::create_dir(folder.path().join("a")).expect("there is room");
        for (name, text) in [("a/1.json", "one"), ("a/2.json#1", "two")] {
            fs::write(folder.path().join(name), text).expect("there is room");
        }
        let files = LocalFileSystem::new_with_prefix(folder.path()).expect("it is a directory");
        let files = LocalFiles::new(Arc::new(files));

        let last = |found: &[Path]| found.last().cloned();
        let (found, read) = files.list_and_read(&Path::from("a"), last).await.expect("it is read");
        assert_eq!(found, [Path::from("a/1.json")]);
        assert_eq!(read.as_deref(), Some(&b"one"[..]));

        let (found, read) = files.list_and_read(&Path::from("b"), last).await.expect("it is read");
        assert!(found.is_empty() && read.is_none());

        let missing = |_: &[Path]| Some(Path::from("a/3.json"));
        let (_, read) = files.list_and_read(&Path::from("a"), missing).await.expect("it is read");
        assert!(read.is_none());

        let missing_copy = files.copy(&Path::from("a/3.json"), &Path::from("a/4.json")).await;
        assert!(matches!(missing_copy, Err(Error::NotFound { .. })));

        let [one, copied] = ["a/1.json", "b/1.json"].map(|name| folder.path().join(name));
        copy_bytes(&one, &copied).expect("there is room");
        assert_eq!(fs::read_to_string(&copied).expect("it is complete"), "one");
        assert!(copy_bytes(&folder.path().join("a/3.json"), &copied).is_err());
        assert_eq!(fs::read_dir(folder.path().join("b")).expect("it is there").count(), 1);

        let missing_file = files.read(&Path::from("a/3.json")).await;
        assert!(matches!(missing_file, Err(Error::NotFound { .. })));
    }

    #[test]
    fn only_a_missing_file_and_a_full_disk_end_a_copy() {
        let error = |kind: io::ErrorKind| failed("a".as_ref(), io::Error::from(kind));

        for kind in
            [io::ErrorKind::NotFound, io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded]
        {
            assert!(is_final(&error(kind)), "{kind}");
        }
        for kind in [
            io::ErrorKind::TooManyLinks,
            io::ErrorKind::CrossesDevices,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::Unsupported,
            io::ErrorKind::Other,
        ] {
            assert!(!is_final(&error(kind)), "{kind}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_file_is_copied_to_another_file_system() {
        use std::os::unix::fs::{MetadataExt, symlink};

        let folder = tempfile::tempdir().expect("there is room");
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
        let device = |path: &path::Path| fs::metadata(path).expect("it is there").dev();
        if device(folder.path()) == device(other.path()) {
            return;
        }

        fs::write(folder.path().join("one"), "one").expect("there is room");
        symlink(other.path(), folder.path().join("b")).expect("it is linked");
        let files = LocalFileSystem::new_with_prefix(folder.path()).expect("it is a directory");
        let files = LocalFiles::new(Arc::new(files));

        let copied = Path::from("b/one");
        files.copy(&Path::from("one"), &copied).await.expect("its bytes are copied");
        assert_eq!(files.read(&copied).await.expect("it is read"), "one");
    }
}
