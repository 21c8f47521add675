//! The contract suite for implementations of [`Slots`].

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::vault::{Slot, Slots};

/// Provides the implementation under test.
#[async_trait]
pub trait Harness: Send + Sync {
    /// The slots through two instances.
    async fn instances(&self) -> [Arc<dyn Slots>; 2];

    /// Lets `time` pass, if the clock is a manual one.
    async fn pass(&self, time: Duration);
}

/// Makes a test of each rule of the [contract](crate::testing::vault). The expression is a future
/// of a [`Harness`](crate::testing::vault::Harness).
#[macro_export]
macro_rules! vault_contract {
    ($harness:expr) => {
        $crate::vault_contract! {
            $harness;
            instances_share_slots_and_overwrite_no_change
            of_concurrent_changes_one_is_made
            a_slot_expires_and_can_be_used_again
            a_change_decides_anew_when_a_slot_expires
        }
    };
    ($harness:expr; $($test:ident)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::testing::vault::$test(&$harness.await).await;
            }
        )*
    };
}

/// The lifetime of a short slot.
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(3600);

/// The most time of a step in the suite.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Two instances share slots with any name and any bytes. A change needs the current version.
pub async fn instances_share_slots_and_overwrite_no_change(harness: &dyn Harness) {
    let [one, two] = harness.instances().await;
    let name = "a/b \u{fffd}*{}";

    assert_eq!(read(&one, name).await, Slot::default());
    assert!(replace(&one, name, 0, b"\0\xff", None).await);
    assert!(!replace(&two, name, 0, b"late", None).await);

    let slot = Slot { version: 1, content: b"\0\xff".to_vec() };
    assert_eq!(read(&two, name).await, slot);
    assert_eq!(read(&two, "a/c").await, Slot::default());

    assert!(replace(&two, name, 1, b"", None).await);
    assert_eq!(read(&one, name).await, Slot { version: 2, content: Vec::new() });

    assert!(!replace(&one, name, 0, b"old", None).await);
    assert!(!replace(&one, name, 1, b"old", Some(LONG)).await);
}

/// Of changes that are made to one version at once, one is made.
pub async fn of_concurrent_changes_one_is_made(harness: &dyn Harness) {
    let slots = harness.instances().await;
    let changes = (0..10).map(|n| {
        let slots = Arc::clone(&slots[n % 2]);
        async move { replace(&slots, "contended", 0, b"x", Some(LONG)).await }
    });

    let made = futures_util::future::join_all(changes).await;
    assert_eq!(made.into_iter().filter(|made| *made).count(), 1);
    assert_eq!(read(&slots[0], "contended").await.version, 1);
}

/// An expired slot is empty and can be written again, while other slots stay.
pub async fn a_slot_expires_and_can_be_used_again(harness: &dyn Harness) {
    let [one, two] = harness.instances().await;
    assert!(replace(&one, "short", 0, b"short", Some(SHORT)).await);
    assert!(replace(&one, "long", 0, b"long", Some(LONG)).await);
    assert!(replace(&one, "unlimited", 0, b"unlimited", None).await);

    harness.pass(SHORT).await;
    let expired = until_empty(&two, "short").await;
    assert_eq!(read(&two, "long").await.content, b"long");
    assert_eq!(read(&two, "unlimited").await.content, b"unlimited");

    assert!(replace(&two, "short", expired.version, b"again", Some(LONG)).await);
    assert_eq!(read(&one, "short").await.content, b"again");
}

/// The last change decides whether the slot expires later, earlier or never.
pub async fn a_change_decides_anew_when_a_slot_expires(harness: &dyn Harness) {
    let [one, two] = harness.instances().await;
    for (name, ttl) in [("later", Some(LONG)), ("never", None)] {
        assert!(replace(&one, name, 0, b"a", Some(SHORT * 4)).await);
        assert!(replace(&two, name, 1, b"b", ttl).await);
    }

    assert!(replace(&one, "earlier", 0, b"a", Some(LONG)).await);
    assert!(replace(&two, "earlier", 1, b"b", Some(SHORT * 4)).await);

    harness.pass(SHORT * 4).await;
    until_empty(&one, "earlier").await;

    for name in ["later", "never"] {
        assert_eq!(read(&one, name).await, Slot { version: 2, content: b"b".to_vec() }, "{name}");
    }
}

async fn read(slots: &Arc<dyn Slots>, name: &str) -> Slot {
    slots.read(name).await.expect("it is read")
}

async fn replace(
    slots: &Arc<dyn Slots>,
    name: &str,
    version: u64,
    content: &[u8],
    ttl: Option<Duration>,
) -> bool {
    slots.replace(name, version, content.to_vec(), ttl).await.expect("it can be replaced")
}

/// Polls until the slot is empty.
async fn until_empty(slots: &Arc<dyn Slots>, name: &str) -> Slot {
    let poll = async {
        loop {
            let slot = read(slots, name).await;
            if slot.content.is_empty() {
                return slot;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, poll).await.expect("it expires")
}
