//! The offer of an upstream is remembered and recalled.

use std::sync::Arc;

use serde_json::Value;

use super::{
    catalogue::Catalogue,
    era::KnownEra,
    link::Era,
    memory::{MemoryFile, Remembered},
    shared::Shared,
};

/// Stands for the last client in the name of a file: no client declares it.
const LAST_CLIENT: &Value = &Value::Null;

impl Shared {
    /// The offer of a fresh process to such a client, as far as it is known. Reads the file once.
    pub(super) async fn recall(&self, client: &Value) -> Option<Arc<Catalogue>> {
        if let Some(known) = self.memory.get(client) {
            return known.catalogue();
        }

        let read = self.read_file(client).await;
        self.memory.keep(client, read.clone().map_or(Remembered::Nothing, Remembered::Catalogue));
        read
    }

    /// Remembers what a fresh process offers to such a client. Returns what was known before.
    pub(super) fn remember(
        &self,
        client: &Value,
        catalogue: &Arc<Catalogue>,
        record: String,
        era: Option<Era>,
    ) -> Option<Arc<Catalogue>> {
        let before = self.memory.replace(client, catalogue);
        if let (Some(file), Some(era)) = (self.file(client), era) {
            let last = self.file(LAST_CLIENT);
            self.tasks.spawn_blocking(move || {
                file.write(&record, era);
                if let Some(last) = last {
                    last.write(&record, era);
                }
            });
        }
        before?.catalogue()
    }

    /// Recalls what the last client was offered, to check names before there is a client.
    pub(super) async fn recall_last(&self) {
        self.read_file(LAST_CLIENT).await;
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

    /// The file for such a client. `None` where callers have access of their own: each may be
    /// offered something else.
    fn file(&self, client: &Value) -> Option<MemoryFile> {
        let file = self.memory.file(&self.settings.target, client)?;
        self.is_open().then_some(file)
    }
}
