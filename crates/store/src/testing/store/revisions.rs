//! Earlier revisions, and new ones that are made from them.

use std::{collections::BTreeSet, sync::Arc};

use tokio::task::JoinSet;

use super::{Caller, Harness, Setup, overhead, refused, with_ttl};
use crate::store::{Details, Entry, Rewrite, StoreError, StoreLimits, StoredResource};

async fn keeping(revisions: usize, harness: &dyn Harness) -> Caller {
    let limits = StoreLimits { revisions, ..StoreLimits::default() };
    Caller::new(&harness.store(Setup { limits, ..Setup::default() }).await, "alice")
}

impl Caller {
    async fn revisions(&self, uri: &str) -> Vec<StoredResource> {
        let revisions = self.store.revisions(&self.owner, &super::resource_uri(uri)).await;
        revisions.expect("it exists")
    }

    async fn numbers(&self, uri: &str) -> Vec<u64> {
        self.revisions(uri).await.iter().map(|found| found.entry.revision).collect()
    }

    async fn try_revision(&self, uri: &str, revision: u64) -> Result<StoredResource, StoreError> {
        self.store.revision(&self.owner, &super::resource_uri(uri), Some(revision)).await
    }

    async fn rewrite(
        &self,
        uri: &str,
        rewrite: Rewrite,
        details: Details,
    ) -> Result<Arc<Entry>, StoreError> {
        self.store.rewrite(&self.owner, super::resource_uri(uri), rewrite, details).await
    }

    async fn read_revision(&self, uri: &str, revision: u64) -> bytes::Bytes {
        let found = self.try_revision(uri, revision).await.expect("it is stored");
        assert_eq!(found.entry.revision, revision);
        found.bytes().await.expect("it can be read")
    }
}

/// Each revision has its own content and details, and as many revisions as configured are kept. The
/// URI alone means the last revision, and the listing has one resource.
pub async fn earlier_revisions_are_kept_and_read(harness: &dyn Harness) {
    let alice = keeping(3, harness).await;
    let markdown = Details { mime_type: Some("text/markdown".into()), ..Details::default() };
    alice.create("temp://a", "first", markdown).await;
    alice.update("temp://a", "second").await;
    alice.put("temp://a", "third").await;

    assert_eq!(alice.numbers("temp://a").await, [1, 2, 3]);
    for (revision, content) in [(1, "first"), (2, "second"), (3, "third")] {
        assert_eq!(alice.read_revision("temp://a", revision).await, content);
    }

    let types = alice.revisions("temp://a").await.into_iter().map(|f| f.entry.mime_type.clone());
    assert_eq!(types.collect::<Vec<_>>(), ["text/markdown", "text/markdown", "text/plain"]);

    assert_eq!(alice.read("temp://a").await, "third");
    assert_eq!(alice.list("").await, ["temp://a"]);

    alice.update("temp://a", "fourth").await;
    assert_eq!(alice.numbers("temp://a").await, [2, 3, 4]);
    assert_eq!(alice.read_revision("temp://a", 2).await, "second");
    for revision in [0, 1, 5] {
        let refused = refused(alice.try_revision("temp://a", revision).await);
        assert!(refused.is_not_found(), "{refused:?}");
        assert!(
            refused.to_string().contains("2, 3, 4"),
            "{refused} does not name the stored revisions"
        );
    }

    let bob = Caller::new(&alice.store, "bob");
    let refused = refused(bob.try_revision("temp://a", 2).await);
    assert!(matches!(refused, StoreError::NotFound { .. }), "{refused:?}");
}

/// A store of one revision keeps the last one only.
pub async fn a_store_of_one_revision_keeps_the_last(harness: &dyn Harness) {
    let alice = keeping(1, harness).await;
    alice.put("temp://a", "first").await;
    alice.update("temp://a", "second").await;
    assert_eq!(alice.numbers("temp://a").await, [2]);

    assert!(refused(alice.try_revision("temp://a", 1).await).is_not_found(), "it is stored");
}

/// All revisions of a resource expire together when its expiry moves. A new resource with the URI
/// starts at revision 1.
pub async fn all_revisions_expire_together(harness: &dyn Harness) {
    let alice = keeping(3, harness).await;

    let tick = harness.tick();
    alice.create("temp://longer", "first", with_ttl(2 * tick)).await;
    alice.try_update("temp://longer", "second", Some(8 * tick)).await.expect("it lives");
    alice.create("temp://shorter", "first", with_ttl(100 * tick)).await;
    alice.try_update("temp://shorter", "second", Some(2 * tick)).await.expect("it lives");

    harness.pass(2 * tick).await;
    assert_eq!(alice.read_revision("temp://longer", 1).await, "first");

    let revisions = alice.revisions("temp://longer").await;
    assert_eq!(revisions[0].entry.expires, revisions[1].entry.expires);
    for revision in [1, 2] {
        assert!(refused(alice.try_revision("temp://shorter", revision).await).is_not_found());
    }

    harness.pass(6 * tick).await;
    assert!(refused(alice.try_revision("temp://longer", 1).await).is_not_found());

    alice.put("temp://longer", "new").await;
    assert_eq!(alice.numbers("temp://longer").await, [1]);

    alice.delete("temp://longer").await;
    alice.put("temp://longer", "new").await;
    assert_eq!(alice.numbers("temp://longer").await, [1]);
}

/// Earlier revisions count towards the quota. They are dropped if a new revision of their resource
/// would not fit, so they never prevent a rewrite.
pub async fn earlier_revisions_count_and_make_room(harness: &dyn Harness) {
    let limits = StoreLimits { revisions: 3, ..StoreLimits::default() };
    let each = overhead(harness).await;
    let setup = Setup { limits, ..Setup::default() }.max_bytes(100 + 3 * each);
    let alice = Caller::new(&harness.store(setup).await, "alice");

    for revision in 1..=3 {
        alice.put("temp://a", vec![revision; 30]).await;
    }

    assert_eq!(alice.numbers("temp://a").await, [1, 2, 3]);
    let full = refused(alice.try_create("temp://b", vec![0; 20], Details::default()).await);
    assert!(matches!(full, StoreError::Full(_)), "{full:?}");

    // A refused write drops nothing.
    let full = refused(
        alice
            .try_update(
                "temp://a",
                vec![0; 90 + 2 * usize::try_from(each).expect("it is small")],
                None,
            )
            .await,
    );
    assert!(matches!(full, StoreError::Full(_)), "{full:?}");
    assert_eq!(alice.numbers("temp://a").await, [1, 2, 3]);

    alice.put("temp://a", vec![4; 40]).await;
    assert_eq!(alice.numbers("temp://a").await, [2, 3, 4]);
    alice.put("temp://a", vec![5; 60]).await;
    assert_eq!(alice.numbers("temp://a").await, [4, 5]);
    assert_eq!(alice.read_revision("temp://a", 4).await, vec![4; 40]);

    let full = refused(alice.try_create("temp://b", vec![0; 1], Details::default()).await);
    assert!(matches!(full, StoreError::Full(_)), "{full:?}");

    assert!(alice.delete("temp://a").await, "it existed");
    alice.put("temp://b", vec![0; 100]).await;
}

/// A rewrite of metadata alone keeps the content, the expiry and all other metadata, and is a new
/// revision.
pub async fn a_rewrite_keeps_what_it_is_not_given(harness: &dyn Harness) {
    let alice = keeping(3, harness).await;
    let content = "one,two\n".repeat(200_000);
    let details = Details {
        name: Some("Name".into()),
        description: Some("Description".into()),
        mime_type: Some("text/csv".into()),
        ..Details::default()
    };
    let before = alice.create("temp://a", content.clone(), details).await;
    let named = Details { name: Some("Other".into()), ..Details::default() };

    let after = alice.rewrite("temp://a", Rewrite::default(), named).await.expect("it exists");
    assert_eq!((&*after.name, after.revision), ("Other", 2));
    assert_eq!(after.description.as_deref(), Some("Description"));
    assert_eq!((&*after.mime_type, after.expires), ("text/csv", before.expires));
    assert_eq!((after.size, &after.sha256), (before.size, &before.sha256));

    assert_eq!(alice.read("temp://a").await, content);

    let bytes = vec![0, 255, 1];
    alice.put("temp://bytes", bytes.clone()).await;
    let appended = vec![254].into();
    let rewrite = Rewrite { appended, ..Rewrite::default() };
    alice.rewrite("temp://bytes", rewrite, Details::default()).await.expect("it exists");
    assert_eq!(alice.read("temp://bytes").await, [&bytes[..], &[254]].concat());

    // Only text can be appended to text.
    let rewrite = Rewrite { appended: vec![255].into(), ..Rewrite::default() };
    let error = refused(alice.rewrite("temp://a", rewrite, Details::default()).await);
    assert!(matches!(error, StoreError::NotText { .. }), "{error:?}");
    assert_eq!(alice.read("temp://a").await, content);

    let missing = alice.rewrite("temp://none", Rewrite::default(), Details::default()).await;
    assert!(refused(missing).is_not_found());
}

/// A restored revision becomes the newest one, with its content and type; the replaced revision is
/// kept.
pub async fn an_earlier_revision_is_restored(harness: &dyn Harness) {
    let alice = keeping(3, harness).await;
    let markdown = Details { mime_type: Some("text/markdown".into()), ..Details::default() };
    alice.create("temp://a", "first", markdown).await;
    alice.put("temp://a", vec![0, 255]).await;

    let first = Rewrite { revision: Some(1), ..Rewrite::default() };
    let restored = alice.rewrite("temp://a", first, Details::default()).await.expect("it is kept");
    assert_eq!((restored.revision, &*restored.mime_type), (3, "text/markdown"));
    assert_eq!(alice.read("temp://a").await, "first");
    assert_eq!(alice.read_revision("temp://a", 2).await, [0, 255][..]);

    let unknown = Rewrite { revision: Some(9), ..Rewrite::default() };
    let error = refused(alice.rewrite("temp://a", unknown, Details::default()).await);
    assert!(matches!(error, StoreError::NoRevision { .. }), "{error:?}");
    assert_eq!(alice.numbers("temp://a").await, [1, 2, 3]);
}

/// The lines of all writers that append at the same time are in the content.
pub async fn no_concurrent_append_is_lost(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("temp://log", "").await;

    let mut writers = JoinSet::new();
    for n in 0..6 {
        let store = alice.store.clone();
        let owner = alice.owner.clone();
        writers.spawn(async move {
            let appended = format!("line {n}\n").into();
            let uri = super::resource_uri("temp://log");
            let rewrite = Rewrite { appended, ..Rewrite::default() };
            store.rewrite(&owner, uri, rewrite, Details::default()).await.map(|_| ())
        });
    }

    for appended in writers.join_all().await {
        appended.expect("the others end");
    }

    let log = alice.read("temp://log").await;
    let lines: BTreeSet<_> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let expected: Vec<_> = (0..6).map(|n| format!("line {n}\n")).collect();
    assert_eq!(
        lines.into_iter().collect::<Vec<_>>(),
        expected.iter().map(String::as_bytes).collect::<Vec<_>>()
    );
}
