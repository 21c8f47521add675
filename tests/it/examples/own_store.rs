//! A server over a store of its own: the contract suite on the store of the example, and the example.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use larder::{
    clock::{ManualClock, Timestamp},
    random::Random,
    store::{KeyValueError, KeyValueStore, ObjectBackend, ObjectLocation, Store},
    testing::store::{Harness, Setup},
};
use serde_json::json;

use self::server::Sqlite;
use crate::support::{
    Modern, TextFile,
    process::{Process, example, run},
};

#[allow(dead_code, reason = "the test has a harness in place of its main function")]
#[path = "../../../examples/own_store.rs"]
mod server;

/// A database in which no part of an object gets other bytes, of which readers would see a mixture.
#[derive(Debug)]
struct Unmixed(Sqlite);

#[async_trait]
impl KeyValueStore for Unmixed {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, KeyValueError> {
        self.0.get(key).await
    }

    async fn put(&self, key: &str, value: Bytes, only_new: bool) -> Result<bool, KeyValueError> {
        if key.contains('#')
            && let Some(before) = self.0.get(key).await?
        {
            assert!(before == value, "{key} is overwritten with other bytes");
        }
        self.0.put(key, value, only_new).await
    }

    async fn delete(&self, key: &str) -> Result<(), KeyValueError> {
        self.0.delete(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Timestamp)>, KeyValueError> {
        self.0.list(prefix, after, limit).await
    }
}

/// A separate database for each store.
struct Databases {
    clock: ManualClock,
    folder: tempfile::TempDir,
}

#[async_trait]
impl Harness for Databases {
    async fn store(&self, setup: Setup) -> Store {
        let file = self.folder.path().join(Random::system().id());
        let values = Sqlite::open(file.to_str().unwrap()).unwrap();
        let location = ObjectLocation::of_values("sqlite", Unmixed(values));
        let clock = Arc::new(self.clock.clone());

        let backend = ObjectBackend::new(location, clock.clone(), Random::system(), setup.quota);
        setup.limit(Store::new(Arc::new(backend), clock, setup.limits.clone()))
    }

    async fn pass(&self, span: Duration) {
        self.clock.advance(span);
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

larder::store_contract!(Databases {
    clock: ManualClock::new(),
    folder: tempfile::tempdir().unwrap(),
});

async fn started(file: &std::path::Path, arguments: &[&str]) -> Process {
    let mut command = example("own_store");
    command.env("NOTES_FILE", file).args(arguments);
    Process::start(command).await
}

#[tokio::test]
async fn resources_of_a_server_are_in_the_store_that_its_code_gives() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.db");
    let process = started(&file, &[]).await;
    let arguments = json!({ "uri": "notes://a", "text": "kept in SQLite" });
    Modern::at(&process.url).call("create_resource", arguments).await;
    drop(process);

    let process = started(&file, &[]).await;
    let read = Modern::at(&process.url).call("read_resource", json!({ "uri": "notes://a" })).await;
    assert!(read.result().to_string().contains("kept in SQLite"), "{read:?}");
}

#[tokio::test]
async fn a_setting_that_names_another_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = TextFile::new("[store]\nurl = \"redis://127.0.0.1:1\"\n");
    let url = format!("file://{}", folder.path().display());

    for arguments in [["--store", &url], ["--config", settings.path()]] {
        let mut command = example("own_store");
        command.env("NOTES_FILE", folder.path().join("notes.db")).args(arguments);
        let refused = run(command).await;
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let named = "store.url: this server has a store of its own";
        assert!(refused.stderr.contains(named), "{}", refused.stderr);
    }
}
