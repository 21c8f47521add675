//! A location for a test, with functions that inspect its objects.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the extensions are our own")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use larder_identity::Owner;
use larder_runtime::{
    clock::{Clock, ManualClock},
    random::Random,
};

use super::{on, open, url};
use crate::{
    store::object::kept::GRACE,
    store::{Details, ResourceUri, Store},
    testing::S3Server,
    testing::store::Setup,
};

pub(super) const HOUR: Duration = Duration::from_hours(1);

/// A location, and the handles that inspect its objects.
pub(super) struct Location {
    pub(super) url: String,
    pub(super) folder: tempfile::TempDir,
    pub(super) s3: Option<Arc<S3Server>>,
    pub(super) clock: ManualClock,
}

impl Location {
    /// A directory and an S3 location.
    pub(super) async fn each() -> [Self; 2] {
        let folder = || tempfile::tempdir().expect("there is room");
        let s3 = S3Server::shared().await;
        let new = |url, folder, s3| Self { url, folder, s3, clock: ManualClock::new() };

        let directory = folder();
        let directory_url = url(&directory.path().join("deep/down"));
        [
            new(directory_url, directory, None),
            new(S3Server::url(&Random::system().id()), folder(), Some(s3)),
        ]
    }

    pub(super) async fn store(&self, setup: &Setup) -> Store {
        on(&self.url, self.s3.as_deref(), &self.clock, setup).await
    }

    /// Removes an object without the store.
    pub(super) async fn remove(&self, file: &str) {
        let objects = open(&self.url, self.s3.as_deref()).await.objects;
        let path = object_store::path::Path::parse(file).expect("it is a path");
        objects.remove(&path).await.expect("it is there");
    }

    /// Waits until the paths of all objects meet a condition.
    pub(super) async fn until(&self, is_so: impl Fn(&[String]) -> bool) {
        patiently(async {
            while !is_so(&self.files().await) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    /// Waits until all resources are removed, and then until their tombstones are.
    pub(super) async fn only_ledgers_are_left(&self) {
        let is_rest = |file: &String| file.starts_with('=') || file.ends_with(".gone");
        patiently(async {
            let mut waits = 0_u32;
            while !self.files().await.iter().all(is_rest) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                waits += 1;
                // A later check finishes the work that an instance could not finish.
                if waits.is_multiple_of(250) {
                    self.clock.advance(3 * HOUR);
                }
            }
        })
        .await;

        self.clock.advance(GRACE);
        // An instance that met content which another instance was removing checks once more.
        let is_later_check = |file: &String| file.starts_with("=due/") && !self.is_due(file);
        let is_kept = |file: &String| file.starts_with("=ledger") || file.starts_with("=reserve");
        self.until(|files| files.iter().all(|f| is_kept(f) || is_later_check(f))).await;

        self.clock.advance(3 * HOUR);
        self.until(|files| files.iter().all(is_kept)).await;
    }

    /// Whether `file` is a due file whose time has come.
    pub(super) fn is_due(&self, file: &str) -> bool {
        let due = file
            .strip_prefix("=due/")
            .and_then(|due| due.split(['/', '-']).nth(1))
            .and_then(|due| due.parse::<u64>().ok());
        due.is_some_and(|due| due <= self.clock.now().as_millis())
    }

    /// The paths of all objects, relative to the URL.
    pub(super) async fn files(&self) -> Vec<String> {
        let Some(s3) = &self.s3 else {
            let root = self.folder.path().join("deep/down");
            let mut files = below(&root);
            files.sort();
            return files;
        };
        s3.keys(self.url.rsplit('/').next().expect("it has a prefix")).await
    }
}

/// The paths of all files below a folder, relative to it.
pub(super) fn below(root: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];

    while let Some(folder) = folders.pop() {
        // The store may remove folders meanwhile.
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for file in entries.flatten() {
            let path = file.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(root).expect("it is below the root");
                files.push(path.to_str().expect("it is text").to_owned());
            }
        }
    }

    files
}

/// Fails if the work takes longer than a minute.
pub(super) async fn patiently<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it comes to an end")
}

pub(super) fn name(name: &str) -> ResourceUri {
    ResourceUri::parse(name).expect("it is a URI")
}

pub(super) fn lasting(ttl: Duration) -> Details {
    Details { ttl: Some(ttl), ..Details::default() }
}

pub(super) async fn read(store: &Store, owner: &Owner, uri: &str) -> Bytes {
    let found = store.get(owner, &name(uri)).await.expect("it is there");
    found.bytes().await.expect("it can be read")
}
