//! [`LoginFiles`]: the logins of this user at servers, each in a file that nobody else can read.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_STANDARD};
use larder_runtime::environment::absolute_path;
use larder_store::vault::{Slot, Slots, VaultError};
use serde::{Deserialize, Serialize};

/// The file of one server.
#[derive(Debug)]
pub(super) struct LoginFiles {
    file: PathBuf,
}

/// The slots of a file, by name.
#[derive(Default, Serialize, Deserialize)]
struct Saved(BTreeMap<String, SavedSlot>);

#[derive(Default, Serialize, Deserialize)]
struct SavedSlot {
    version: u64,
    content: String,
}

impl LoginFiles {
    /// The logins in this file. The directory is made if it is missing.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(super) fn open(folder: &Path, name: &str) -> io::Result<Self> {
        make_private(folder)?;
        Ok(Self { file: folder.join(name) })
    }

    fn load(&self) -> io::Result<Saved> {
        match fs::read(&self.file) {
            // A file that was damaged is as good as none: the person logs in again.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Saved::default()),
            Err(error) => Err(error),
        }
    }

    /// Changes the file as one step. Other processes wait meanwhile.
    fn change(&self, change: impl FnOnce(&mut Saved) -> bool) -> io::Result<bool> {
        let lock = private(&self.file.with_extension("lock"))?;
        lock.lock()?;

        let mut saved = self.load()?;
        if !change(&mut saved) {
            return Ok(false);
        }

        let next = self.file.with_extension("next");
        let mut file = private(&next)?;
        file.set_len(0)?;
        file.write_all(&serde_json::to_vec(&saved)?)?;
        file.sync_all()?;
        fs::rename(&next, &self.file)?;
        Ok(true)
    }
}

/// The directory of this user's logins.
pub(super) fn folder() -> Option<PathBuf> {
    let base = if cfg!(windows) {
        absolute_path("APPDATA")
    } else {
        absolute_path("XDG_CONFIG_HOME")
            .or_else(|| absolute_path("HOME").map(|home| home.join(".config")))
    };
    base.map(|base| base.join("larder").join("logins"))
}

/// The key that seals the logins, made with the first one.
///
/// # Errors
/// It can be neither read nor written.
pub(super) fn key(folder: &Path, new: impl FnOnce() -> String) -> io::Result<Vec<u8>> {
    make_private(folder)?;
    let mut file = private(&folder.join("key"))?;
    file.lock()?;

    let mut key = Vec::new();
    file.read_to_end(&mut key)?;
    if key.is_empty() {
        key = new().into_bytes();
        file.write_all(&key)?;
        file.sync_all()?;
    }
    Ok(key)
}

/// The key that seals the logins, if there is one.
pub(super) fn known_key(folder: &Path) -> Option<Vec<u8>> {
    fs::read(folder.join("key")).ok().filter(|key| !key.is_empty())
}

/// Makes a directory that only this user can list, and closes one that others can.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    close_to_others(&File::open(folder)?, 0o700)
}

/// Takes access from others, who may have had it from an earlier program or a copy.
#[cfg(unix)]
fn close_to_others(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let of_others = file.metadata()?.permissions().mode() & 0o077;
    if of_others == 0 {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn close_to_others(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Opens a file that only this user can read, and makes it if it is missing.
fn private(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(file)?;
    close_to_others(&file, 0o600)?;
    Ok(file)
}

fn unavailable(error: &io::Error) -> VaultError {
    VaultError::Unavailable(error.to_string())
}

#[async_trait]
impl Slots for LoginFiles {
    async fn read(&self, name: &str) -> Result<Slot, VaultError> {
        let saved = self.load().map_err(|error| unavailable(&error))?;
        let Some(SavedSlot { version, content }) = saved.0.get(name) else {
            return Ok(Slot::default());
        };
        let content = BASE64_STANDARD.decode(content).unwrap_or_default();
        Ok(Slot { version: *version, content })
    }

    async fn replace(
        &self,
        name: &str,
        version: u64,
        content: Vec<u8>,
        // Logins are few, and end by themselves.
        _ttl: Option<Duration>,
    ) -> Result<bool, VaultError> {
        let changed = self.change(|saved| {
            let slot = saved.0.entry(name.to_owned()).or_default();
            let is_current = slot.version == version;
            if is_current {
                *slot =
                    SavedSlot { version: version + 1, content: BASE64_STANDARD.encode(content) };
            }
            is_current
        });
        changed.map_err(|error| unavailable(&error))
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn looser_modes_are_closed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("logins");
        assert_eq!(known_key(&folder), None);
        assert!(!folder.exists(), "reading makes no folder");

        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.join("key"), "k").unwrap();
        fs::set_permissions(folder.join("key"), fs::Permissions::from_mode(0o644)).unwrap();

        assert_eq!(key(&folder, || unreachable!()).unwrap(), b"k");
        for (file, mode) in [(folder.clone(), 0o700), (folder.join("key"), 0o600)] {
            let found = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{file:?}");
        }
    }
}
