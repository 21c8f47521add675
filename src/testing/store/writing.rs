//! Replacing, removing, racing, failing.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::{sync::oneshot, task::JoinSet};

use super::{Caller, Harness, Setup, lasting, long_text, refused};
use crate::store::{BLOCK_BYTES, Content, Details, StoreError};

/// An update gives new content and a new revision; who and what the resource
/// is, and when it was created and expires, stay.
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

/// A resource that is updated on the way expires when it would have expired.
pub async fn an_update_keeps_the_expiry(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.create("temp://a", "old", lasting(4 * harness.tick())).await;
    harness.pass(2 * harness.tick()).await;
    alice.update("temp://a", "new").await;
    harness.pass(harness.tick()).await;
    assert_eq!(alice.read("temp://a").await, "new");
    harness.pass(harness.tick()).await;
    alice.sees_nothing_at("temp://a").await;
}

/// An update with a time to live counts it from then on, be that longer or
/// shorter than what was left.
pub async fn an_update_with_a_ttl_moves_the_expiry(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let tick = harness.tick();
    alice.create("temp://longer", "old", lasting(2 * tick)).await;
    alice.create("temp://shorter", "old", lasting(100 * tick)).await;
    alice.try_update("temp://longer", "new", Some(100 * tick)).await.expect("it lives");
    let entry = alice.try_update("temp://shorter", "new", Some(2 * tick)).await.expect("it lives");
    assert_eq!(entry.expires.since(entry.updated), 2 * tick);
    harness.pass(2 * tick).await;
    assert_eq!(alice.list("temp://").await, ["temp://longer"]);
    assert_eq!(alice.read("temp://longer").await, "new");
    alice.sees_nothing_at("temp://shorter").await;
}

/// Where text becomes binary, a media type that nobody chose follows, and one
/// that somebody chose stays.
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

/// What never was, was deleted or has expired cannot be updated, and is not
/// there afterwards either.
pub async fn an_update_needs_a_living_resource(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("temp://deleted", "old").await;
    alice.delete("temp://deleted").await;
    alice.create("temp://expired", "old", lasting(harness.tick())).await;
    harness.pass(harness.tick()).await;
    for uri in ["temp://never", "temp://deleted", "temp://expired"] {
        let refused = refused(alice.try_update(uri, "new", None).await);
        assert!(refused.is_not_found(), "{uri}: {refused:?}");
        assert!(refused.to_string().contains(uri), "{refused} does not say which");
        alice.sees_nothing_at(uri).await;
    }

    // The resource may also go while the new content is on its way.
    alice.put("temp://going", "old").await;
    let (content, arriving, go_on) = paused("new content");
    let deleting = async {
        arriving.await.expect("the content is asked for");
        alice.delete("temp://going").await;
        go_on.send(()).expect("the rest is awaited");
    };
    let (updated, ()) = tokio::join!(alice.try_update("temp://going", content, None), deleting);
    let refused = refused(updated);
    assert!(refused.is_not_found(), "{refused:?}");
    alice.sees_nothing_at("temp://going").await;
}

/// An update that is refused or fails leaves the resource as it was.
pub async fn a_refused_update_leaves_what_was_there(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let before = alice.put("temp://a", "old").await;
    let failing = stream::iter([Ok("new".into()), Err(io::Error::other("cut off"))]);
    refused(alice.try_update("temp://a", Content::text_stream(failing), None).await);
    let no_text = stream::iter([Ok(b"\xff".as_slice().into())]);
    refused(alice.try_update("temp://a", Content::text_stream(no_text), None).await);
    refused(alice.try_update("temp://a", "new", Some(std::time::Duration::ZERO)).await);
    assert_eq!(alice.get("temp://a").await.entry, before);
    assert_eq!(alice.read("temp://a").await, "old");
}

/// Of what was there before, a creation keeps the count of revisions only.
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
    alice.create("temp://a", b"\x00new".to_vec(), lasting(100 * tick)).await;
    harness.pass(tick).await;
    let after = alice.get("temp://a").await.entry;
    assert_eq!((after.name.as_str(), &after.title, &after.description), ("a", &None, &None));
    assert_eq!((after.mime_type.as_str(), after.size), ("application/octet-stream", 4));
    assert_eq!(after.revision, before.revision + 1);
    assert!(after.created > before.created, "it was created later");
    assert_eq!(alice.read("temp://a").await, b"\x00new".as_slice());
    assert_eq!(alice.list("").await, ["temp://a"]);
}

/// Deleting says whether there was something; where there is nothing it is no
/// error.
pub async fn deleting_twice_is_no_error(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("temp://a", "text").await;
    assert!(alice.delete("temp://a").await, "it was there");
    alice.sees_nothing_at("temp://a").await;
    assert!(!alice.delete("temp://a").await, "it was deleted");
    assert!(!alice.delete("temp://never").await, "it never was there");
}

/// Of writers to one name at the same time, one wins with content and details
/// alike; and whoever reads meanwhile sees one of them, or an error.
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

/// Content whose source fails is not stored, and takes no room.
pub async fn content_that_fails_to_arrive_leaves_nothing(harness: &dyn Harness) {
    let alice = Caller::new(&harness.store(room_for(3)).await, "alice");
    let pieces = [Ok(block()), Ok(block()), Err(io::Error::other("cut off"))];
    let content = Content::byte_stream(stream::iter(pieces));
    let refused = refused(alice.try_create("temp://a", content, Details::default()).await);
    assert!(matches!(refused, StoreError::Input(_)), "{refused:?}");
    has_room_for(3, &alice).await;
}

/// Text that is not UTF-8 is refused with the place where it is not, and takes
/// no room.
pub async fn text_that_is_not_utf8_leaves_nothing(harness: &dyn Harness) {
    let alice = Caller::new(&harness.store(room_for(3)).await, "alice");
    let at_end: &[u8] = b"cut short: \xe2\x82";
    let inside: &[u8] = b"caf\xe9 au lait";
    for (wrong, at) in [(at_end, 11), (inside, 3)] {
        let pieces = [Ok(block()), Ok(Bytes::from_static(wrong))];
        let content = Content::text_stream(stream::iter(pieces));
        match refused(alice.try_create("temp://a", content, Details::default()).await) {
            StoreError::NotText { at: found } => assert_eq!(found, BLOCK_BYTES as u64 + at),
            other => panic!("it is refused because {other:?}"),
        }
    }
    has_room_for(3, &alice).await;
}

/// A creation whose future is dropped midway leaves nothing, and takes no
/// room.
pub async fn a_create_that_is_dropped_leaves_nothing(harness: &dyn Harness) {
    let alice = Caller::new(&harness.store(room_for(3)).await, "alice");
    let (content, arriving, _go_on) = paused([block(), block()].concat());
    tokio::select! {
        _ = alice.create("temp://a", content, Details::default()) => panic!("content is missing"),
        arriving = arriving => arriving.expect("the content is asked for"),
    }
    has_room_for(3, &alice).await;
}

/// A reader who has begun gets all of what was there then, or an error; never
/// a part that looks like the whole, never a mixture.
pub async fn a_started_read_is_whole_or_fails(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let text = long_text();
    for way in ["delete", "replace", "update", "expire"] {
        alice.create("temp://a", text.as_str(), lasting(harness.tick() * 4)).await;
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

fn block() -> Bytes {
    Bytes::from(vec![b'x'; BLOCK_BYTES])
}

fn room_for(blocks: u64) -> Setup {
    Setup::default().max_bytes(blocks * BLOCK_BYTES as u64)
}

/// That there is nothing, and nothing is in the way.
async fn has_room_for(blocks: usize, alice: &Caller) {
    alice.sees_nothing_at("temp://a").await;
    alice.put("temp://room", block().repeat(blocks)).await;
}

/// Content that gives notice when its second half is asked for, and gives
/// that only when told to.
fn paused(content: impl Into<Bytes>) -> (Content, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let (arrive, arriving) = oneshot::channel();
    let (go_on, going_on) = oneshot::channel();
    let mut first: Bytes = content.into();
    let rest = first.split_off(first.len() / 2);
    let rest = stream::once(async move {
        arrive.send(()).expect("the check waits for this");
        going_on.await.map_err(io::Error::other)?;
        Ok(rest)
    });
    (Content::byte_stream(stream::iter([Ok(first)]).chain(rest)), arriving, go_on)
}
