//! [`Memory`]: what a fresh process of an upstream offers, by what its client can be asked. It is
//! listed while no process runs, so that a process starts when it is used. A file keeps it across
//! starts of Larder.

mod file;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde_json::Value;

pub(super) use self::file::MemoryFile;
use super::{catalogue::Catalogue, settings::Target};

/// The most catalogues of one upstream that are remembered.
const MAX_KNOWN: usize = 64;

/// The folder of the files, once it is set.
pub(super) type Folder = Arc<OnceLock<PathBuf>>;

/// The offers of fresh processes of an upstream.
#[derive(Default)]
pub(super) struct Memory {
    folder: Folder,
    known: Mutex<HashMap<String, Remembered>>,
}

/// The offer to one kind of client, as far as it is known.
#[derive(Clone)]
pub(super) enum Remembered {
    /// There is no file that can be used.
    Nothing,
    Catalogue(Arc<Catalogue>),
}

impl Remembered {
    pub(super) fn catalogue(self) -> Option<Arc<Catalogue>> {
        match self {
            Self::Nothing => None,
            Self::Catalogue(catalogue) => Some(catalogue),
        }
    }
}

impl Memory {
    /// A memory whose files are in this folder.
    pub(super) fn new(folder: Folder) -> Self {
        Self { folder, known: Mutex::default() }
    }

    /// The knowledge for such a client; `None` if the file was not read yet.
    pub(super) fn get(&self, client: &Value) -> Option<Remembered> {
        self.known.lock().get(&client.to_string()).cloned()
    }

    /// Keeps what a file says, unless a process that was listed meanwhile knows better.
    pub(super) fn keep(&self, client: &Value, known: Remembered) {
        let mut all = self.known.lock();
        if all.len() < MAX_KNOWN {
            all.entry(client.to_string()).or_insert(known);
        }
    }

    /// Replaces what is known. Returns what was known before.
    pub(super) fn replace(&self, client: &Value, catalogue: &Arc<Catalogue>) -> Option<Remembered> {
        let key = client.to_string();
        let mut all = self.known.lock();
        if all.len() >= MAX_KNOWN && !all.contains_key(&key) {
            return None;
        }
        all.insert(key, Remembered::Catalogue(Arc::clone(catalogue)))
    }

    /// The file for such a client of this upstream, if there is a folder.
    pub(super) fn file(&self, target: &Target, client: &Value) -> Option<MemoryFile> {
        Some(MemoryFile::new(self.folder.get()?, target, client))
    }
}
