//! The cost of creating and listing with few and with many resources.

use crate::{RedisServer, median, seconds, store_on, uri};
use futures_util::{StreamExt, TryStreamExt, stream};
use larder::{
    auth::Owner,
    store::{Details, Store, StoreError},
};

const FEW: usize = 1000;
const MANY: usize = 1_000_000;
const SAMPLE: usize = 2000;

/// A store with a number of resources, on its own server.
struct Filled {
    _server: RedisServer,
    store: Store,
    owner: Owner,
    count: usize,
}

impl Filled {
    async fn with(count: usize) -> Self {
        let server = RedisServer::start().await;
        let (store, owner) = (store_on(&server).await, Owner::new("bench"));
        let filled = Self { _server: server, store, owner, count };
        stream::iter((0..count).map(|n| filled.create(n)))
            .buffer_unordered(64)
            .try_collect::<()>()
            .await
            .expect("it fits");
        filled
    }

    async fn create(&self, n: usize) -> Result<(), StoreError> {
        let details = Details::default();
        self.store.create(&self.owner, uri(n), "a small text".into(), details).await.map(|_| ())
    }

    /// Creates one resource and deletes it again.
    async fn create_one(&self) -> f64 {
        let took = seconds(async { self.create(self.count).await.expect("it fits") }).await;
        self.store.delete(&self.owner, &uri(self.count)).await.expect("it goes");
        took
    }

    /// Lists fifty resources at a position that depends on `n`.
    async fn list_some(&self, n: usize) -> f64 {
        let after = uri((self.count - 50) / SAMPLE * n);
        seconds(async {
            let page = self.store.list(&self.owner, "bench://", Some(after.as_str()), 50).await;
            assert_eq!(page.expect("it lists").entries.len(), 50);
        })
        .await
    }
}

pub(crate) async fn measure() {
    let filled = [Filled::with(FEW).await, Filled::with(MANY).await];
    let mut times: [[Vec<f64>; 2]; 2] = Default::default();
    for n in 0..SAMPLE {
        for (filled, [creates, lists]) in filled.iter().zip(&mut times) {
            creates.push(filled.create_one().await);
            lists.push(filled.list_some(n).await);
        }
    }
    let costs = times.map(|times| times.map(median));
    println!("resources     create µs   list of 50 µs");
    for (filled, [create, list]) in filled.iter().zip(costs) {
        println!("{:<12}{:>11.0}{:>16.0}", filled.count, create * 1e6, list * 1e6);
    }
    let [few, many] = costs;
    println!("ratio       {:>11.2}{:>16.2}", many[0] / few[0], many[1] / few[1]);
}
