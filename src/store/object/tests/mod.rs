//! The contract, on files and on a real S3-compatible server; and what it does
//! not say: what lies there, what two servers on one place see, what is damaged.

mod places;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{ObjectBackend, ObjectPlace};
use crate::{
    clock::ManualClock,
    random::Random,
    store::Store,
    testing::{
        S3Server,
        store::{Harness, Setup},
    },
};

mod files {
    use super::*;

    /// A directory of its own for each store.
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

    /// A prefix of its own for each store, in one bucket.
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

fn url(folder: &std::path::Path) -> String {
    format!("file://{}", folder.display())
}

/// One more server on that place.
async fn on(url: &str, s3: Option<&S3Server>, clock: &ManualClock, setup: &Setup) -> Store {
    let clock = Arc::new(clock.clone());
    let place = open(url, s3).await;
    let backend = ObjectBackend::new(place, clock.clone(), Random::system(), setup.quota);
    Store::new(Arc::new(backend), clock, setup.limits.clone())
}

/// The place of that URL.
pub(in crate::store) async fn open(url: &str, s3: Option<&S3Server>) -> ObjectPlace {
    let environment = s3.into_iter().flat_map(S3Server::environment);
    let environment = environment.map(|(name, value)| (name.to_owned(), value));
    let place = ObjectPlace::open_in(url, environment, &Random::system()).await;
    place.expect("it can be used")
}
