//! [`Memory`]: what a fresh process of an upstream offers, by what its client can be asked. It is listed
//! while no process runs, so that a process starts when it is used. A file keeps it across starts of
//! Larder.

mod file;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde_json::Value;

use self::file::MemoryFile;
use super::{catalogue::Catalogue, link::Era, shared::Shared, start::KnownEra};

/// The most catalogues of one upstream that are remembered.
const MAX_KNOWN: usize = 64;

/// The folder of the files, once it is set.
pub(super) type Folder = Arc<OnceLock<PathBuf>>;

/// What fresh processes of an upstream have offered.
#[derive(Default)]
pub(super) struct Memory {
    folder: Folder,
    known: Mutex<HashMap<String, Known>>,
}

/// What is known for one kind of client.
#[derive(Clone)]
enum Known {
    /// There is no file that can be used.
    Nothing,
    Catalogue(Arc<Catalogue>),
}

impl Memory {
    /// A memory whose files are in this folder.
    pub(super) fn new(folder: Folder) -> Self {
        Self { folder, known: Mutex::default() }
    }
}

impl Shared {
    /// What a fresh process offers to such a client, as far as it is known. Reads the file once.
    pub(super) async fn recall(&self, client: &Value) -> Option<Arc<Catalogue>> {
        let key = client.to_string();
        match self.memory.known.lock().get(&key) {
            Some(Known::Catalogue(catalogue)) => return Some(Arc::clone(catalogue)),
            Some(Known::Nothing) => return None,
            None => {}
        }

        let read = self.read_file(client).await;
        let known = read.clone().map_or(Known::Nothing, Known::Catalogue);
        let mut all = self.memory.known.lock();
        if all.len() < MAX_KNOWN {
            // A process that was listed meanwhile knows better.
            all.entry(key).or_insert(known);
        }
        read
    }

    /// Remembers what a fresh process offers to such a client. Returns what was known before.
    pub(super) fn remember(
        &self,
        client: &Value,
        catalogue: &Arc<Catalogue>,
        record: Option<String>,
        era: Option<Era>,
    ) -> Option<Arc<Catalogue>> {
        let key = client.to_string();
        let before = {
            let mut all = self.memory.known.lock();
            if all.len() >= MAX_KNOWN && !all.contains_key(&key) {
                return None;
            }
            all.insert(key, Known::Catalogue(Arc::clone(catalogue)))
        };

        if let (Some(file), Some(record), Some(era)) = (self.file(client), record, era) {
            self.tasks.spawn_blocking(move || file.write(&record, era));
        }
        match before {
            Some(Known::Catalogue(before)) => Some(before),
            Some(Known::Nothing) | None => None,
        }
    }

    async fn read_file(&self, client: &Value) -> Option<Arc<Catalogue>> {
        let file = self.file(client)?;
        let read = tokio::task::spawn_blocking(move || file.read()).await.ok()??;

        let catalogue = Catalogue::restore(self.source(), read.lists).await?;
        if self.latest.load().is_none() {
            self.latest.store(Some(Arc::clone(&catalogue)));
        }

        let mut era = self.era.lock();
        if *era == KnownEra::Unknown {
            *era = KnownEra::Found(read.era);
        }
        Some(catalogue)
    }

    /// The file for such a client. `None` where callers have access of their own: each may be offered
    /// something else.
    fn file(&self, client: &Value) -> Option<MemoryFile> {
        let folder = self.memory.folder.get()?;
        self.is_open().then(|| MemoryFile::new(folder, &self.settings.target, client))
    }
}
