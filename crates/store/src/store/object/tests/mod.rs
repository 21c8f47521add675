//! The contract suite on files and on a real S3-compatible server, and tests of
//! behaviour that only objects have.

mod full_disk;
mod location;
mod locations;
mod recovery;
mod shared;
mod takeover;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use larder_runtime::{clock::ManualClock, random::Random};
use object_store::ObjectStore;

use super::{ObjectBackend, ObjectLocation, objects::Objects};
use crate::{
    store::Store,
    testing::S3Server,
    testing::store::{Harness, Setup, TakesOver},
};

/// The reserve on the disk, in bytes.
const RESERVE: u64 = 64 << 10;

mod files {
    use super::*;

    /// A separate directory for each store.
    struct Files {
        clock: ManualClock,
        folder: tempfile::TempDir,
    }

    #[async_trait]
    impl Harness for Files {
        async fn store(&self, setup: Setup) -> Store {
            let url = url(&self.folder.path().join(Random::system().id()));
            on(&url, None, &self.clock, &setup).await
        }

        async fn pass(&self, span: Duration) {
            self.clock.advance(span);
        }

        fn tick(&self) -> Duration {
            Duration::from_millis(1)
        }
    }

    crate::store_contract!(Files {
        clock: ManualClock::new(),
        folder: tempfile::tempdir().expect("there is room"),
    });
}

mod s3 {
    use super::*;

    /// A separate prefix for each store, in one bucket.
    struct Bucket {
        clock: ManualClock,
        server: Arc<S3Server>,
    }

    #[async_trait]
    impl Harness for Bucket {
        async fn store(&self, setup: Setup) -> Store {
            let url = S3Server::url(&Random::system().id());
            on(&url, Some(&self.server), &self.clock, &setup).await
        }

        async fn pass(&self, span: Duration) {
            self.clock.advance(span);
        }

        fn tick(&self) -> Duration {
            Duration::from_millis(1)
        }
    }

    crate::store_contract!(Bucket { clock: ManualClock::new(), server: S3Server::shared().await });
}

mod any_object_store {
    use super::*;

    /// Separate objects in memory for each store, of which the location knows only the trait.
    struct InMemory(ManualClock);

    #[async_trait]
    impl Harness for InMemory {
        async fn store(&self, setup: Setup) -> Store {
            let objects = Arc::new(object_store::memory::InMemory::new());
            let location = ObjectLocation::over("memory", objects);
            let clock = Arc::new(self.0.clone());

            let random = Random::system();
            let backend = ObjectBackend::new(location, clock.clone(), random, setup.quota);
            setup.limit(Store::new(Arc::new(backend), clock, setup.limits.clone()))
        }

        async fn pass(&self, span: Duration) {
            self.0.advance(span);
        }

        fn tick(&self) -> Duration {
            Duration::from_millis(1)
        }

        fn takes_over(&self) -> TakesOver {
            TakesOver::Revisions
        }
    }

    crate::store_contract!(InMemory(ManualClock::new()));
}

/// A location over objects that list in order, or drop dots as Azure does.
fn over(store: Arc<dyn ObjectStore>, drops_dots: bool) -> ObjectLocation {
    let (name, lists_in_order) = if drops_dots { ("az", false) } else { ("file", true) };
    let max_copy_bytes = if drops_dots { 0 } else { u64::MAX };
    let objects = Objects {
        store,
        name,
        lists_in_order,
        drops_dots,
        max_copy_bytes,
        disk: None,
        files: None,
    };
    ObjectLocation { objects, url: format!("{name}://test") }
}

fn url(folder: &std::path::Path) -> String {
    format!("file://{}", folder.display())
}

/// Another instance on the location with this URL.
async fn on(url: &str, s3: Option<&S3Server>, clock: &ManualClock, setup: &Setup) -> Store {
    let clock = Arc::new(clock.clone());
    let location = open(url, s3).await;
    let backend = ObjectBackend::new(location, clock.clone(), Random::system(), setup.quota);
    setup.limit(Store::new(Arc::new(backend), clock, setup.limits.clone()))
}

/// The location with this URL, opened.
pub(in crate::store) async fn open(url: &str, s3: Option<&S3Server>) -> ObjectLocation {
    let environment = s3
        .into_iter()
        .flat_map(S3Server::environment)
        .map(|(name, value)| (name.to_owned(), value));
    let location = ObjectLocation::open_in(url, environment, RESERVE, &Random::system()).await;
    location.expect("it can be used")
}
