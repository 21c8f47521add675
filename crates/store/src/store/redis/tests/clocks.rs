//! Instances with a wrong clock: the clock of Redis determines all times.

use larder_identity::{Identity, Principal};
use larder_runtime::clock::{Clock, ManualClock, Timestamp};

use super::*;
use crate::store::{Audience, Share, StoreError};

const SKEW: Duration = Duration::from_secs(5);

/// A clock that stands still, `SKEW` ahead of the time or behind it.
fn wrong(ahead: bool) -> ManualClock {
    let clock = ManualClock::new();
    let now = SystemClock.now();
    let right = if ahead {
        now.saturating_add(SKEW)
    } else {
        Timestamp::from_millis(now.as_millis() - 5000)
    };

    clock.advance(right.since(clock.now()));
    clock
}

async fn instance_at(server: &RedisServer, clock: ManualClock) -> Store {
    let redis = Redis::open(&settings(server)).await.expect("it is there");
    Layout::current().migrate(&redis, &Random::system()).await.expect("it migrates");
    let setup = Setup::default();
    let backend = RedisBackend::open(redis, Random::system(), setup.quota).await.expect("it opens");
    Store::new(Arc::new(backend), Arc::new(clock), setup.limits)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_of_the_process_changes_nothing() {
    for ahead in [false, true] {
        let server = RedisServer::start().await;
        let store = instance_at(&server, wrong(ahead)).await;
        let alice = Principal::Local.owner();
        let reader = Identity::local();
        let put =
            |name: &str, millis| store.create(&alice, uri(name), "text".into(), lasting(millis));

        // The resource lives shorter than the clock is wrong.
        let before = SystemClock.now();
        let short = put("x:short", 2000).await.expect("it fits");
        let life = short.expires.since(before);
        assert!((2000..3000).contains(&life.as_millis()), "{life:?}");

        let share = Share::from(Audience::Everyone);
        let link = store.share(&reader, &uri("x:short"), share, "1").await;
        let link = link.expect("it is shared");
        assert!(link.expires <= short.expires.saturating_add(Duration::from_millis(100)));
        let found = store.read(&reader, &link.uri).await.expect("it can be read");
        assert_eq!(found.bytes().await.expect("it can be read"), "text");

        let updated = store.update(&alice, uri("x:short"), "new".into(), Details::default()).await;
        let updated = updated.expect("it lives");
        assert_eq!((updated.expires, updated.created), (short.expires, short.created));
        assert!(updated.updated.since(short.created) < Duration::from_secs(2));

        let page = store.list(&alice, "x:", None, 10).await.expect("it answers");
        assert_eq!(page.entries.len(), 1);

        let _maintained = maintained(&store);
        // After the sweep, the time is known once its message arrives.
        let at = patiently(async {
            loop {
                if let Err(StoreError::Expired { at, .. }) =
                    store.get(&alice, &uri("x:short")).await.map(drop)
                {
                    return at;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert_eq!(at, short.expires);

        // The resource and its link are gone; only the owner learns why.
        let gone = store.read(&reader, &link.uri).await.map(drop);
        assert!(gone.as_ref().is_err_and(StoreError::is_not_found), "{gone:?}");

        let difference = store.now().since(before);
        assert!(
            difference >= Duration::from_secs(2)
                && store.now() <= SystemClock.now().saturating_add(Duration::from_secs(1))
        );
    }
}
