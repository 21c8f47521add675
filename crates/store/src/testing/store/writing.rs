//! Updates, deletions, concurrent writes and failures.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::{sync::oneshot, task::JoinSet};

use super::{Caller, Harness, Setup, in_pieces, long_text, refused, with_ttl};
use crate::store::{BLOCK_BYTES, Content, Details, Expected, Kind, StoreError};

/// An update replaces the content and increments the revision. Owner, details, creation time and
/// expiry stay.
pub async fn an_update_changes_only_the_content(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let details = Details {
        name: Some("report".into()),
        title: Some("Report".into()),
        description: Some("Of all things".into()),
        mime_type: Some("text/markdown".into()),
        ttl: None,
        ..Details::default()
    };

    let before = alice.create("temp://a", "# Old", details).await;
    harness.pass(harness.tick()).await;
    alice.update("temp://a", "# New\n\ncontent").await;

    let after = alice.get("temp://a").await.entry;
    assert_eq!(alice.read("temp://a").await, "# New\n\ncontent");
    assert_eq!((after.revision, after.size, after.lines), (2, 14, 3));
    assert!(after.updated > before.updated, "it was updated later");

    let mut same = (*before).clone();
    (same.revision, same.updated) = (after.revision, after.updated);
    (same.size, same.lines) = (after.size, after.lines);
    (same.sha256, same.blocks) = (after.sha256.clone(), Arc::clone(&after.blocks));
    assert_eq!(*after, same);
}

/// An updated resource expires when it would have expired before.
pub async fn an_update_keeps_the_expiry(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.create("temp://a", "old", with_ttl(4 * harness.tick())).await;

    harness.pass(2 * harness.tick()).await;
    alice.update("temp://a", "new").await;

    harness.pass(harness.tick()).await;
    assert_eq!(alice.read("temp://a").await, "new");

    harness.pass(harness.tick()).await;
    alice.assert_missing("temp://a").await;
}

/// An update with a time to live sets a new expiry, later or earlier than the old one.
pub async fn an_update_with_a_ttl_moves_the_expiry(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let tick = harness.tick();
    alice.create("temp://longer", "old", with_ttl(2 * tick)).await;
    alice.create("temp://shorter", "old", with_ttl(100 * tick)).await;
    alice.try_update("temp://longer", "new", Some(100 * tick)).await.expect("it lives");
    let entry = alice.try_update("temp://shorter", "new", Some(2 * tick)).await.expect("it lives");
    assert_eq!(entry.expires.since(entry.updated), 2 * tick);

    harness.pass(2 * tick).await;
    assert_eq!(alice.list("temp://").await, ["temp://longer"]);
    assert_eq!(alice.read("temp://longer").await, "new");
    alice.assert_missing("temp://shorter").await;
}

/// If text becomes binary, a default media type changes with it, and a chosen one stays.
pub async fn an_update_of_another_kind_keeps_a_chosen_type_only(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("temp://default", "text").await;
    let chosen = Details { mime_type: Some("application/x-thing".into()), ..Details::default() };
    alice.create("temp://chosen", "text", chosen).await;

    let default = alice.update("temp://default", b"\xff".to_vec()).await;
    assert_eq!(default.mime_type, "application/octet-stream");

    let chosen = alice.update("temp://chosen", b"\xff".to_vec()).await;
    assert_eq!(chosen.mime_type, "application/x-thing");
}

/// A resource that never existed, was deleted or has expired cannot be updated, and does not exist
/// afterwards.
pub async fn an_update_needs_a_living_resource(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("temp://deleted", "old").await;
    alice.delete("temp://deleted").await;
    alice.create("temp://expired", "old", with_ttl(harness.tick())).await;
    harness.pass(harness.tick()).await;

    for uri in ["temp://never", "temp://deleted", "temp://expired"] {
        let refused = refused(alice.try_update(uri, "new", None).await);
        assert!(refused.is_not_found(), "{uri}: {refused:?}");
        assert!(refused.to_string().contains(uri), "{refused} does not name the URI");
        alice.assert_missing(uri).await;
    }

    // The resource may also be deleted during the upload.
    alice.put("temp://going", "old").await;
    let (content, requested, resume) = paused("new content");

    let deleting = async {
        requested.await.expect("the content is requested");
        alice.delete("temp://going").await;
        resume.send(()).expect("the rest is awaited");
    };

    let (updated, ()) = tokio::join!(alice.try_update("temp://going", content, None), deleting);
    let refused = refused(updated);
    assert!(refused.is_not_found(), "{refused:?}");
    alice.assert_missing("temp://going").await;
}

/// An update that is refused or fails leaves the resource unchanged.
pub async fn a_refused_update_changes_nothing(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let before = alice.put("temp://a", "old").await;

    let failing = stream::iter([Ok("new".into()), Err(io::Error::other("cut off"))]);
    refused(alice.try_update("temp://a", Content::text_stream(failing), None).await);
    let not_text = stream::iter([Ok(b"\xff".as_slice().into())]);
    refused(alice.try_update("temp://a", Content::text_stream(not_text), None).await);
    refused(alice.try_update("temp://a", "new", Some(std::time::Duration::ZERO)).await);

    assert_eq!(alice.get("temp://a").await.entry, before);
    assert_eq!(alice.read("temp://a").await, "old");
}

/// A creation over an existing resource continues its revision numbers and replaces everything else.
pub async fn creating_over_a_resource_replaces_it_as_a_whole(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let tick = harness.tick();
    let details = Details {
        name: Some("old name".into()),
        title: Some("Old title".into()),
        description: Some("Old description".into()),
        mime_type: Some("text/markdown".into()),
        ttl: Some(2 * tick),
        ..Details::default()
    };

    let before = alice.create("temp://a", long_text(), details).await;
    harness.pass(tick).await;
    alice.create("temp://a", b"\x00new".to_vec(), with_ttl(100 * tick)).await;
    harness.pass(tick).await;

    let after = alice.get("temp://a").await.entry;
    assert_eq!((after.name.as_str(), &after.title, &after.description), ("a", &None, &None));
    assert_eq!((after.mime_type.as_str(), after.size), ("application/octet-stream", 4));
    assert_eq!(after.revision, before.revision + 1);
    assert!(after.created > before.created, "it was created later");
    assert_eq!(alice.read("temp://a").await, b"\x00new".as_slice());
    assert_eq!(alice.list("").await, ["temp://a"]);
}

/// Deleting reports whether the resource existed. A missing resource is no error.
pub async fn deleting_twice_is_no_error(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("temp://a", "text").await;
    assert!(alice.delete("temp://a").await, "it existed");

    alice.assert_missing("temp://a").await;
    assert!(!alice.delete("temp://a").await, "it was deleted");
    assert!(!alice.delete("temp://never").await, "it never existed");
}

/// A resource that changed since it was listed is not deleted with the listed version, whether it was
/// updated, or deleted and created again.
pub async fn a_resource_that_changed_since_it_was_read_is_not_deleted(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    for uri in ["temp://same", "temp://updated", "temp://again", "temp://gone"] {
        alice.put(uri, "old").await;
    }
    let listed = alice.store.list(&alice.owner, "", None, 10).await.expect("it can be listed");

    harness.pass(harness.tick()).await;
    alice.update("temp://updated", "new").await;
    alice.delete("temp://again").await;
    alice.put("temp://again", "new").await;
    alice.delete("temp://gone").await;

    let mut deleted = Vec::new();
    for entry in &listed.entries {
        if alice.store.delete_unchanged(entry).await.expect("it can be deleted") {
            deleted.push(entry.uri.as_str());
        }
    }

    assert_eq!(deleted, ["temp://same"]);
    assert_eq!(alice.list("").await, ["temp://again", "temp://updated"]);
    assert_eq!(alice.read("temp://again").await, "new");
}

/// An update replaces the given metadata, and keeps the rest.
pub async fn an_update_takes_metadata(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let text = |text: &str| Some(text.to_owned());
    let details = Details { name: text("name"), title: text("Title"), ..Details::default() };

    alice.create("temp://a", "old", details).await;

    let owner = &alice.owner;
    let uri = super::resource_uri("temp://a");
    let details = Details {
        name: text("new"),
        description: text("All of it"),
        mime_type: text("text/markdown"),
        ..Details::default()
    };

    alice.store.update(owner, uri, "new".into(), details).await.expect("it lives");
    let entry = alice.get("temp://a").await.entry;
    assert_eq!((entry.name.as_str(), entry.title.as_deref()), ("new", Some("Title")));
    assert_eq!(entry.description.as_deref(), Some("All of it"));
    assert_eq!((entry.mime_type.as_str(), entry.revision), ("text/markdown", 2));
}

/// Of concurrent writers to one URI, one wins with both content and details. A concurrent reader gets
/// one write as a whole, or an error.
pub async fn one_of_many_writers_wins_as_a_whole(harness: &dyn Harness) {
    const WRITERS: usize = 100;
    let alice = Caller::alone(harness).await;
    let content = |writer: usize| format!("{writer} ").repeat(1000 * (writer % 7) + 1);

    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let alice = alice.clone();
        writers.spawn(async move {
            let details = Details {
                name: Some(writer.to_string()),
                mime_type: Some(format!("text/x-{writer}")),
                ..Details::default()
            };
            alice.create("temp://race", content(writer), details).await;
            let found = alice.get("temp://race").await;
            if let Ok(read) = found.bytes().await {
                let winner = found.entry.name.parse().expect("a writer's number");
                assert!(read == content(winner), "the content is not {winner}'s");
            }
        });
    }

    writers.join_all().await;
    let entry = alice.get("temp://race").await.entry;
    let winner: usize = entry.name.parse().expect("a writer's number");
    assert_eq!(entry.mime_type, format!("text/x-{winner}"));
    assert_eq!(entry.revision, WRITERS as u64);
    assert!(alice.read("temp://race").await == content(winner), "the content is not {winner}'s");
    assert_eq!(alice.list("").await, ["temp://race"]);
}

/// Content whose stream fails is not stored, and does not count towards the quota.
pub async fn content_that_fails_to_arrive_leaves_nothing(harness: &dyn Harness) {
    let alice = Caller::new(&harness.store(room_for(3)).await, "alice");
    let pieces = [Ok(block()), Ok(block()), Err(io::Error::other("cut off"))];
    let content = Content::byte_stream(stream::iter(pieces));
    let refused = refused(alice.try_create("temp://a", content, Details::default()).await);
    assert!(matches!(refused, StoreError::Input(_)), "{refused:?}");

    has_room_for(3, &alice).await;
}

/// Text that is not UTF-8 is refused with the offset of the first invalid byte, and does not count
/// towards the quota.
pub async fn text_that_is_not_utf8_leaves_nothing(harness: &dyn Harness) {
    let alice = Caller::new(&harness.store(room_for(3)).await, "alice");
    let at_end: &[u8] = b"cut short: \xe2\x82";
    let inside: &[u8] = b"caf\xe9 au lait";
    for (wrong, offset) in [(at_end, 11), (inside, 3)] {
        let pieces = [Ok(block()), Ok(Bytes::from_static(wrong))];
        let content = Content::text_stream(stream::iter(pieces));
        match refused(alice.try_create("temp://a", content, Details::default()).await) {
            StoreError::NotText { offset: found } => {
                assert_eq!(found, BLOCK_BYTES as u64 + offset);
            }
            other => panic!("another error: {other:?}"),
        }
    }

    has_room_for(3, &alice).await;
}

/// A creation whose future is dropped midway stores nothing, and does not count towards the quota.
pub async fn a_create_that_is_dropped_leaves_nothing(harness: &dyn Harness) {
    let alice = Caller::new(&harness.store(room_for(3)).await, "alice");
    let (content, requested, _resume) = paused([block(), block()].concat());
    tokio::select! {
        _ = alice.create("temp://a", content, Details::default()) => panic!("content is missing"),
        requested = requested => requested.expect("the content is requested"),
    }

    has_room_for(3, &alice).await;
}

/// A reader that has started gets all of the content that existed then, or an error, but never
/// truncated or mixed content without an error.
pub async fn a_started_read_is_whole_or_fails(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let text = long_text();
    for way in ["delete", "replace", "update", "expire"] {
        alice.create("temp://a", text.as_str(), with_ttl(harness.tick() * 4)).await;
        let found = alice.get("temp://a").await;
        let mut blocks = std::pin::pin!(found.stream());
        let first = blocks.next().await.expect("it has blocks").expect("it can be read");

        match way {
            "delete" => _ = alice.delete("temp://a").await,
            "replace" => _ = alice.put("temp://a", "€".repeat(BLOCK_BYTES)).await,
            "update" => _ = alice.update("temp://a", "short").await,
            _ => harness.pass(harness.tick() * 4).await,
        }

        let mut read = first.to_vec();
        let whole = loop {
            match blocks.next().await {
                Some(Ok(block)) => read.extend_from_slice(&block),
                Some(Err(_)) => break false,
                None => break true,
            }
        };

        assert!(!whole || read == text.as_bytes(), "{way}: the stream ends with other content");
        let again = found.bytes().await;
        assert!(again.map_or(true, |again| again == text), "{way}: other content is read");
    }
}

/// The most bytes that metadata count in these checks: less than a block.
const ROOM_FOR_METADATA: u64 = 2048;

fn block() -> Bytes {
    Bytes::from(vec![b'x'; BLOCK_BYTES])
}

fn room_for(blocks: u64) -> Setup {
    Setup::default().max_bytes(blocks * BLOCK_BYTES as u64 + ROOM_FOR_METADATA)
}

/// Checks that `temp://a` does not exist, and that the quota is free for `blocks` blocks.
async fn has_room_for(blocks: usize, alice: &Caller) {
    alice.assert_missing("temp://a").await;
    let content = block().repeat(blocks);
    // An upload that was dropped releases its quota in the background.
    super::patiently(async || {
        alice.try_create("temp://room", content.clone(), Details::default()).await.ok()
    })
    .await;
}

/// Content that signals when its second half is requested, and then waits to be resumed.
fn paused(content: impl Into<Bytes>) -> (Content, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let (request, requested) = oneshot::channel();
    let (resume, resumed) = oneshot::channel();

    let mut first: Bytes = content.into();
    let rest = first.split_off(first.len() / 2);
    let rest = stream::once(async move {
        request.send(()).expect("the check waits for this");
        resumed.await.map_err(io::Error::other)?;
        Ok(rest)
    });

    (Content::byte_stream(stream::iter([Ok(first)]).chain(rest)), requested, resume)
}

/// If text or bytes may come, the last byte decides, and the media type follows.
pub async fn text_that_turns_out_as_bytes_is_stored_as_bytes(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let mut bytes = "a line\n".repeat(BLOCK_BYTES).into_bytes();
    let text = alice.put("temp://text", Content::text_or_bytes(in_pieces(bytes.clone()))).await;
    assert_eq!((text.kind, &*text.mime_type), (Kind::Text, "text/plain"));
    assert_eq!(text.lines, BLOCK_BYTES as u64);

    bytes.push(0xff);
    let found = alice.put("temp://bytes", Content::text_or_bytes(in_pieces(bytes.clone()))).await;
    assert_eq!((found.kind, &*found.mime_type), (Kind::Binary, "application/octet-stream"));
    assert_eq!((found.lines, found.records.is_none()), (0, true));
    assert!(found.blocks.iter().all(|block| block.first_line == 0));

    assert_eq!(alice.read("temp://bytes").await, bytes);
}

/// Content of another size or digest than announced is not stored, and replaces nothing.
pub async fn content_that_differs_from_its_announcement_leaves_nothing(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let before = alice.put("temp://a", "ten bytes.").await;
    let expected = |size, sha256: &str| Expected { size, sha256: Some(sha256.to_owned()) };

    for (expected, problem) in [
        (expected(Some(12), &before.sha256), "Size is 10, announced 12: nothing was stored."),
        (expected(None, "00"), "announced 00: nothing was stored."),
    ] {
        for uri in ["temp://a", "temp://b"] {
            let content = Content::from("TEN BYTES.").expecting(expected.clone());
            let error = refused(alice.try_create(uri, content, Details::default()).await);
            assert!(matches!(error, StoreError::NotAsAnnounced(_)), "{error:?}");
            assert!(error.to_string().ends_with(problem), "{error}");
        }
    }

    assert_eq!(alice.get("temp://a").await.entry, before);
    assert_eq!(alice.list("").await, ["temp://a"]);

    let content = Content::from("ten bytes.").expecting(expected(Some(10), &before.sha256));
    assert_eq!(alice.put("temp://b", content).await.sha256, before.sha256);
}

/// Of several updates of one version, one wins, and the others are told.
pub async fn a_resource_that_changed_since_it_was_read_is_not_updated(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let read = alice.put("temp://a", "first").await;

    let mut writers = JoinSet::new();
    for n in 0..8 {
        let store = alice.store.clone();
        let read = Arc::clone(&read);
        writers.spawn(async move {
            let content = Content::from(format!("writer {n}"));
            let updated = store.update_unchanged(&read, content, Details::default()).await;
            updated.expect("it is no error").map(|entry| (n, entry.revision))
        });
    }

    let updated: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    let [(winner, 2)] = updated[..] else { panic!("{updated:?}") };
    assert_eq!(alice.read("temp://a").await, format!("writer {winner}"));

    // A resource that was deleted and created again is another one.
    alice.delete("temp://a").await;
    harness.pass(harness.tick()).await;
    alice.put("temp://a", "again").await;

    let stale = alice.store.update_unchanged(&read, "old".into(), Details::default()).await;
    assert!(stale.expect("it is no error").is_none());
    assert_eq!(alice.read("temp://a").await, "again");
}
