//! The quota of an owner.

use futures_util::{StreamExt, stream};
use larder_runtime::random::Random;
use tokio::{sync::oneshot, task::JoinSet};

use super::{Caller, Harness, Setup, long_text, overhead, patiently, refused, with_ttl};
use crate::store::{BLOCK_BYTES, Content, Details, Expected, StoreError, StoreLimits, Usage};

/// Content up to the quota is stored, exact to the byte. More content is refused with a reason, and
/// evicts nothing.
pub async fn the_byte_quota_is_exact(harness: &dyn Harness) {
    let room = 100 + 2 * overhead(harness).await;
    let store = harness.store(Setup::default().max_bytes(room)).await;
    let alice = Caller::new(&store, "alice");

    let before = alice.put("temp://a", vec![1; 60]).await;
    is_full(alice.try_create("temp://b", vec![2; 41], Details::default()).await);
    is_full(alice.try_update("temp://a", vec![2; 9999], None).await);

    assert_eq!(alice.get("temp://a").await.entry, before);
    assert_eq!(alice.read("temp://a").await, vec![1; 60]);
    assert_eq!(alice.list("").await, ["temp://a"]);

    alice.put("temp://b", vec![2; 40]).await;
    is_full(alice.try_create("temp://c", vec![3; 1], Details::default()).await);
}

/// The quota of resources is exact and counts empty resources. At the limit, existing resources can
/// be replaced.
pub async fn the_resource_quota_is_exact(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_resources(2)).await;
    let alice = Caller::new(&store, "alice");

    alice.put("temp://a", "").await;
    alice.put("temp://b", "text").await;
    is_full(alice.try_create("temp://c", "", Details::default()).await);
    alice.assert_missing("temp://c").await;

    alice.put("temp://a", "created again").await;
    alice.update("temp://b", "updated").await;

    assert_eq!(alice.read("temp://a").await, "created again");
    assert_eq!(alice.read("temp://b").await, "updated");
}

/// Of concurrent writes, exactly as many succeed as the quota allows.
pub async fn a_quota_holds_for_concurrent_writers(harness: &dyn Harness) {
    let by_bytes = Setup::default().max_bytes(10 * (20 + overhead(harness).await));
    let by_count = Setup::default().max_resources(10);
    for setup in [by_bytes, by_count] {
        let alice = Caller::new(&harness.store(setup).await, "alice");
        let mut writers = JoinSet::new();
        for n in 0..50 {
            let alice = alice.clone();
            writers.spawn(async move {
                let uri = format!("temp://{n}");
                match alice.try_create(&uri, vec![n; 10], Details::default()).await {
                    Ok(_) => true,
                    refusal => {
                        is_full(refusal);
                        false
                    }
                }
            });
        }

        let succeeded = writers.join_all().await.into_iter().filter(|succeeded| *succeeded);
        assert_eq!(succeeded.count(), 10);
        assert_eq!(alice.list("").await.len(), 10);
    }
}

/// An owner at the limit does not affect other owners.
pub async fn the_quota_of_an_owner_does_not_limit_others(harness: &dyn Harness) {
    let room = 100 + overhead(harness).await;
    let setup = Setup::default().max_bytes(room).max_resources(1);
    let store = harness.store(setup).await;
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");

    alice.put("temp://a", vec![1; 100]).await;
    is_full(alice.try_create("temp://b", "text", Details::default()).await);
    bob.put("temp://a", vec![2; 100]).await;
    assert_eq!(alice.read("temp://a").await, vec![1; 100]);
}

/// Usage is right after each kind of change.
pub async fn usage_is_the_sum_of_all_owners(harness: &dyn Harness) {
    let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
    let store = harness.store(Setup { limits, ..Setup::default() }).await;
    let used = async || {
        let Usage { resources, bytes, .. } = store.usage().await.expect("it is known");
        (resources, bytes)
    };

    assert_eq!(used().await, (0, 0));
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");

    let a = alice.put("temp://a", vec![1; 100]).await;
    let b = alice.put("temp://b", long_text()).await;
    assert_eq!(used().await, (2, a.counted_bytes() + b.counted_bytes()));

    let a = alice.put("temp://a", vec![1; 50]).await;
    let b = alice.update("temp://b", "four").await;
    let bobs = bob.put("temp://a", "").await;
    let three = a.counted_bytes() + b.counted_bytes() + bobs.counted_bytes();
    assert_eq!(used().await, (3, three));

    let used_by = async |caller: &Caller| {
        let Usage { resources, bytes, .. } =
            store.usage_of(&caller.owner).await.expect("it is known");
        (resources, bytes)
    };
    assert_eq!(used_by(&alice).await, (2, a.counted_bytes() + b.counted_bytes()));
    assert_eq!(used_by(&bob).await, (1, bobs.counted_bytes()));
    assert_eq!(used_by(&Caller::new(&store, "carol")).await, (0, 0));

    assert!(alice.delete("temp://b").await && !alice.delete("temp://b").await);
    let two = three - b.counted_bytes();
    let arriving = Content::byte_stream(stream::iter([Err(std::io::Error::other("gone"))]));
    refused(bob.try_create("temp://c", arriving, Details::default()).await);
    let d = bob.create("temp://d", vec![1; 1000], with_ttl(2 * harness.tick())).await;
    assert_eq!(used().await, (3, two + d.counted_bytes()));
    harness.pass(2 * harness.tick()).await;

    // A write removes the writer's expired resources.
    let e = bob.put("temp://e", "e").await;
    assert_eq!(used().await, (3, two + e.counted_bytes()));

    for (caller, uri) in [(&alice, "temp://a"), (&bob, "temp://a"), (&bob, "temp://e")] {
        assert!(caller.delete(uri).await);
    }
    assert_eq!(used().await, (0, 0));
}

/// Deleted content no longer counts, nor does replaced content that is not kept as a revision.
pub async fn deleting_makes_room(harness: &dyn Harness) {
    let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
    let room = 100 + 2 * overhead(harness).await;
    let setup = Setup { limits, ..Setup::default() }.max_bytes(room).max_resources(2);
    let alice = Caller::new(&harness.store(setup).await, "alice");

    for _ in 0..3 {
        alice.put("temp://a", vec![1; 90]).await;
        alice.put("temp://a", vec![1; 10]).await;
        alice.put("temp://b", vec![2; 90]).await;
        assert!(alice.delete("temp://b").await, "it existed");
        assert!(alice.delete("temp://a").await, "it existed");
    }
}

/// Expired resources no longer count, even if nobody has requested them since their expiry.
pub async fn expiry_makes_room(harness: &dyn Harness) {
    let room = 100 + overhead(harness).await;
    let setup = Setup::default().max_bytes(room).max_resources(1);
    let alice = Caller::new(&harness.store(setup).await, "alice");

    for uri in ["temp://a", "temp://b", "temp://c"] {
        alice.create(uri, vec![1; 100], with_ttl(2 * harness.tick())).await;
        is_full(alice.try_create("temp://more", "text", Details::default()).await);
        harness.pass(2 * harness.tick()).await;
    }
}

/// Metadata counts, and each resource counts some bytes by itself.
pub async fn metadata_and_each_resource_count(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_bytes(40_000)).await;
    let alice = Caller::new(&store, "alice");
    let described = || Details { description: Some("d".repeat(4096)), ..Details::default() };

    let mut written = 0;
    for n in 0.. {
        match alice.try_create(&format!("temp://{n}"), "", described()).await {
            Ok(entry) => written += entry.counted_bytes(),
            full => {
                is_full(full);
                break;
            }
        }
    }
    assert!((30_000..=40_000).contains(&written), "{written} bytes of metadata were stored");

    let bob = Caller::new(&store, "bob");
    for n in 0.. {
        if bob.try_create(&format!("temp://{n}"), "", Details::default()).await.is_err() {
            assert!(n < 40, "{n} empty resources were stored");
            break;
        }
    }
}

/// A name or title of more than 256 bytes is refused, and so are a media type of more than 255 and a
/// description of more than 4096. Nothing is stored then. Shorter metadata are kept.
pub async fn metadata_has_a_maximum_length(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let details = |name, title, description, mime_type: Option<usize>| {
        let text = |len: usize| Some("x".repeat(len));
        let mime_type = mime_type.map(|len| format!("a/{}", "x".repeat(len - 2)));
        Details {
            name: text(name),
            title: text(title),
            description: text(description),
            mime_type,
            ..Details::default()
        }
    };

    let longest = details(256, 256, 4096, Some(255));
    let entry = alice.create("temp://a", "text", longest).await;
    assert_eq!(entry.description.as_ref().map(String::len), Some(4096));

    let too_long = [
        ("name", details(257, 1, 1, None)),
        ("title", details(1, 257, 1, None)),
        ("description", details(1, 1, 4097, None)),
        ("mime_type", details(1, 1, 1, Some(256))),
    ];
    for (name, details) in too_long {
        let refusals = [
            alice.try_create("temp://b", "text", details.clone()).await,
            alice
                .store
                .update(&alice.owner, super::resource_uri("temp://a"), "new".into(), details)
                .await,
        ];
        for refusal in refusals.map(refused) {
            assert!(matches!(refusal, StoreError::InvalidDetails(_)), "{name}: {refusal:?}");
            assert!(refusal.to_string().starts_with(name), "{refusal} does not name {name}");
        }
        alice.assert_missing("temp://b").await;
        assert_eq!(alice.get("temp://a").await.entry, entry);
    }

    // The default name is shortened.
    let long = alice.put(&format!("temp://{}", "n".repeat(2000)), "text").await;
    assert_eq!(long.name.len(), 256);
}

/// An upload counts while it is in progress, and no longer once it is dropped.
pub async fn an_upload_in_progress_counts(harness: &dyn Harness) {
    let block = || bytes::Bytes::from(super::noise(BLOCK_BYTES));
    let store = harness.store(Setup::default().max_bytes(20 * BLOCK_BYTES as u64)).await;
    let alice = Caller::new(&store, "alice");
    let bob = Caller::new(&store, "bob");
    let other = async || {
        let ten = Content::byte_stream(stream::iter((0..10).map(move |_| Ok(block()))));
        alice.try_create("temp://b", ten, Details::default()).await
    };

    patiently(async || {
        let (request, requested) = oneshot::channel();
        let pending = stream::once(async move {
            request.send(()).expect("the check waits for this");
            std::future::pending().await
        });
        let endless = stream::iter((0..15).map(move |_| Ok(block()))).chain(pending);
        let endless = Content::byte_stream(endless);

        let refused = tokio::select! {
            // The other upload was faster, while content that was read is still on its way.
            ended = alice.try_create("temp://a", endless, Details::default()) => {
                is_full(ended);
                return None;
            },
            other = async {
                requested.await.expect("the content is requested");
                let other = other().await;
                bob.put("temp://b", super::noise(BLOCK_BYTES)).await;
                other
            } => other,
        };

        if refused.is_ok() {
            alice.delete("temp://b").await;
            return None;
        }
        is_full(refused);
        Some(())
    })
    .await;

    patiently(async || other().await.ok()).await;
}

/// Deleted and replaced content that is kept for reads that have begun counts, but makes room where
/// the owner needs it: such reads then fail. The owner's content never exceeds the quota.
pub async fn content_that_is_kept_for_readers_makes_room(harness: &dyn Harness) {
    let limits = StoreLimits { revisions: 1, ..StoreLimits::default() };
    let room = 100_000 + 3 * overhead(harness).await;
    let setup = Setup { limits, ..Setup::default() }.max_bytes(room);

    // The owner's name is unique: the block cache of the process finds the content of an owner by its
    // digest, no matter from which store it was read.
    let name = format!("alice-{}", Random::system().id());
    let alice = Caller::new(&harness.store(setup).await, &name);

    // Incompressible content, so that its reader holds little of it already.
    let content = |round| [vec![round], super::noise(39_999)].concat();

    let mut reads = Vec::new();
    for round in 0..10 {
        alice.put("temp://a", content(round)).await;
        reads.push((round, alice.get("temp://a").await));
        if round % 2 == 0 {
            assert!(alice.delete("temp://a").await, "it existed");
        }
    }

    let mut kept = 0;
    for (round, found) in reads {
        match found.bytes().await {
            Ok(bytes) => {
                assert!(bytes == content(round), "{round}");
                kept += 40_000;
            }
            Err(error) => assert!(error.is_not_found(), "{error:?}"),
        }
    }

    assert!(kept <= 100_000, "{kept} bytes are kept");
    assert!(alice.read("temp://a").await == content(9));
}

/// Content larger than the whole quota is refused for that reason. The error for other content names
/// the bytes that are used without it.
pub async fn the_quota_error_names_its_reason(harness: &dyn Harness) {
    let large = 3 * BLOCK_BYTES;
    let setup = Setup::default().max_bytes(large as u64);
    let alice = Caller::new(&harness.store(setup).await, "alice");

    let pieces = || Content::byte_stream(stream::iter([Ok(super::noise(large + 1).into())]));
    let refusal = refused(alice.try_create("temp://a", pieces(), Details::default()).await);
    let text = refusal.to_string();
    assert!(text.starts_with("The content is larger than all your resources"), "{text}");

    let counted = alice.put("temp://b", vec![1; 10_000]).await.counted_bytes();
    let content = super::noise(large - 10_000);
    let text = refused(alice.try_create("temp://a", content, Details::default()).await).to_string();
    assert!(text.contains(&format!("; {counted} are used")), "{text}");
}

#[track_caller]
fn is_full<T>(result: Result<T, StoreError>) {
    match refused(result) {
        StoreError::Full(message) => assert!(!message.is_empty(), "the error has no reason"),
        other => panic!("another error: {other:?}"),
    }
}

/// The announced size is compared with the room before any content is read. Refused content counts
/// nothing.
pub async fn announced_content_that_cannot_fit_is_refused_before_it_arrives(harness: &dyn Harness) {
    let bytes = 8 * BLOCK_BYTES as u64;
    let store = harness.store(Setup::default().max_bytes(bytes)).await;
    let alice = Caller::new(&store, "alice");
    alice.put("temp://a", vec![1; 4 * BLOCK_BYTES]).await;

    for size in [5 * BLOCK_BYTES as u64, 2 * bytes] {
        let never = stream::poll_fn(|_| panic!("the content is read"));
        let content = Content::byte_stream(never);
        let content = content.expecting(Expected { size: Some(size), sha256: None });
        is_full(alice.try_create("temp://b", content, Details::default()).await);
    }

    alice.put("temp://b", vec![2; 3 * BLOCK_BYTES]).await;
}

/// Announced content counts from the beginning of its upload: of two uploads that exceed the quota
/// together, one is refused before it arrives. It no longer counts when it is dropped, and counts
/// once when it is stored.
pub async fn announced_content_counts_before_it_arrives_and_once(harness: &dyn Harness) {
    let store = harness.store(Setup::default().max_bytes(8 * BLOCK_BYTES as u64)).await;
    let alice = Caller::new(&store, "alice");
    let expected = || Expected { size: Some(5 * BLOCK_BYTES as u64), sha256: None };

    let (request, requested) = oneshot::channel();
    let pending = stream::once(async move {
        request.send(()).expect("the check waits for this");
        std::future::pending().await
    });
    let pending = Content::byte_stream(pending).expecting(expected());

    let upload = alice.try_create("temp://a", pending, Details::default());
    tokio::select! {
        _ = upload => panic!("content is missing"),
        () = async {
            requested.await.expect("the content is requested");
            let never = Content::byte_stream(stream::poll_fn(|_| panic!("the content is read")));
            let never = never.expecting(expected());
            is_full(alice.try_create("temp://b", never, Details::default()).await);
            is_full(alice.try_create("temp://b", super::noise(4 * BLOCK_BYTES), Details::default()).await);
            Caller::new(&store, "bob").put("temp://b", super::noise(5 * BLOCK_BYTES)).await;
        } => {}
    }

    let five = || Content::from(super::noise(5 * BLOCK_BYTES)).expecting(expected());
    patiently(async || alice.try_create("temp://b", five(), Details::default()).await.ok()).await;

    alice.put("temp://c", super::noise(2 * BLOCK_BYTES)).await;
    is_full(alice.try_create("temp://d", super::noise(BLOCK_BYTES), Details::default()).await);
}
