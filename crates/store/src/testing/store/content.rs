//! Content is read back unchanged.

use bytes::Bytes;
use futures_util::TryStreamExt;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Caller, Harness, in_pieces, long_text, noise, with_ttl};
use crate::store::{BLOCK_BYTES, Block, Content, Details, Kind, StoredResource, WindowEnd};

/// Text of any characters is read back byte for byte, as `text/plain`.
pub async fn text_comes_back_as_it_went_in(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let texts =
        ["plain", "tab\tand\r\nlines\n", "\n", " ", "\u{feff}mark", "nul \0", "日本語 🦀 é"];

    for text in texts {
        let entry = alice.put("test://text", text).await;
        assert_eq!((entry.kind, entry.mime_type.as_str()), (Kind::Text, "text/plain"));
        assert_eq!(alice.read("test://text").await, text);
    }
}

/// JSON is read back equal, as text of type `application/json`.
pub async fn json_comes_back_equal_with_its_media_type(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let json = json!({ "data": [1, 2.5, "drei", null, { "vier": true }] });
    let entry = alice.put("test://json", json.clone()).await;

    assert_eq!((entry.kind, entry.mime_type.as_str()), (Kind::Text, "application/json"));
    let read: serde_json::Value =
        serde_json::from_slice(&alice.read("test://json").await).expect("it is JSON");
    assert_eq!(read, json);
}

/// Bytes are read back byte for byte, and stay binary even if they are valid text.
pub async fn bytes_come_back_as_they_went_in(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    for bytes in [(0..=u8::MAX).collect(), b"\xff\xfe\x00".to_vec(), b"could\nbe text".to_vec()] {
        let entry = alice.put("test://bytes", bytes.clone()).await;
        assert_eq!((entry.kind, entry.lines), (Kind::Binary, 0));
        assert_eq!(entry.mime_type, "application/octet-stream");
        assert_eq!(alice.read("test://bytes").await, bytes);
    }
}

/// A resource of either kind may be empty.
pub async fn empty_content_is_content(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("test://text", "").await;
    alice.put("test://bytes", Vec::new()).await;
    assert_eq!(alice.list("").await, ["test://bytes", "test://text"]);

    for uri in ["test://text", "test://bytes"] {
        let found = alice.get(uri).await;
        assert_eq!((found.entry.size, found.entry.lines), (0, 0));
        assert_eq!(found.entry.sha256, digest(b""));
        assert!(alice.read(uri).await.is_empty());
        assert!(whole_stream(&found).await.is_empty());
        let window = found.bytes_from(0, 10).await.expect("it can be read");
        assert_eq!((window.bytes.len(), window.end), (0, WindowEnd::Content));
    }
}

/// Empty resources are replaced, deleted and expire like others.
pub async fn empty_content_is_replaced_deleted_and_expires(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    alice.put("test://a", "").await;
    alice.put("test://a", "").await;
    assert!(alice.delete("test://a").await, "it existed");

    alice.create("test://b", "", with_ttl(harness.tick())).await;
    harness.pass(harness.tick()).await;
    alice.assert_missing("test://b").await;

    // The next write finds the resource expired.
    alice.put("test://b", "").await;
    assert!(alice.delete("test://b").await, "it existed");
    assert!(alice.list("").await.is_empty());
}

/// Text of many blocks, written in pieces that split characters, is read back whole, at once or
/// block by block. No block splits a character.
pub async fn long_text_in_pieces_comes_back_whole(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let text = long_text();
    alice.put("test://long", Content::text_stream(in_pieces(text.clone()))).await;
    assert!(alice.read("test://long").await == text, "the content differs");

    let found = alice.get("test://long").await;

    let blocks: Vec<Bytes> = found.stream().try_collect().await.expect("it can be read");
    assert!(blocks.len() > 3, "it has many blocks");
    assert!(blocks.iter().all(|block| std::str::from_utf8(block).is_ok()), "a character is split");
    assert!(blocks.concat() == text.as_bytes(), "the stream differs");
}

/// Bytes of many blocks, written in pieces of any size, are read back whole.
pub async fn long_bytes_in_pieces_come_back_whole(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    // No two blocks are equal, so a backend that confuses them fails.
    let bytes: Vec<u8> = (0u32..).flat_map(u32::to_be_bytes).take(3 * BLOCK_BYTES + 5).collect();
    alice.put("test://long", Content::byte_stream(in_pieces(bytes.clone()))).await;
    assert!(alice.read("test://long").await == bytes, "the content differs");
    assert!(whole_stream(&alice.get("test://long").await).await == bytes, "the stream differs");
}

/// Size, number of lines and SHA-256 do not depend on the pieces in which content arrives. Creation,
/// lookup and listing return equal entries.
pub async fn size_lines_and_digest_are_those_of_the_content(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let long = long_text();

    for text in ["one", "one\n", "one\ntwo", "one\r\n\r\nthree\n", "\n\n", &long] {
        let content = Content::text_stream(in_pieces(text.to_owned()));
        let entry = alice.put("test://text", content).await;
        assert_eq!(entry.size, text.len() as u64);
        assert_eq!(entry.lines, text.split_inclusive('\n').count() as u64);
        assert_eq!(entry.sha256, digest(text.as_bytes()));
        assert_eq!(alice.get("test://text").await.entry, entry);
        let page = alice.store.list(&alice.owner, "", None, 10).await.expect("it can be listed");
        assert_eq!(page.entries, [entry]);
    }
}

/// Windows by bytes and by lines are right at the beginning, across block boundaries and at the end.
pub async fn windows_reach_every_part_of_long_content(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let text = long_text();
    alice.put("test://long", text.as_str()).await;
    let found = alice.get("test://long").await;

    for border in found.entry.blocks.iter().map(|block| block.offset).chain([found.entry.size]) {
        for first in border.saturating_sub(5)..=border + 5 {
            let window = found.bytes_from(first, 20).await.expect("it can be read");
            let start = text.floor_char_boundary(usize::try_from(first).expect("it is small"));
            let end = text.floor_char_boundary(start + 20);
            assert_eq!(window.bytes, &text.as_bytes()[start..end], "from byte {first}");
        }
    }

    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at_borders = found.entry.blocks.iter().map(|block| block.first_line);

    for first in at_borders.flat_map(|line| [line.saturating_sub(1), line]) {
        let window = found.lines(first, 3, usize::MAX).await.expect("it can be read");
        let first = usize::try_from(first).expect("it is small");
        let expected = lines.iter().skip(first).take(3).copied().collect::<String>();
        assert!(window.bytes == expected.as_bytes(), "the lines from {first} differ");
    }
}

/// Text is stored in a fraction of its size, incompressible bytes in hardly more than theirs.
/// Windows are right in both, and across both.
pub async fn compressible_content_takes_less_space(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let mut log = String::new();
    for n in 0..60_000u32 {
        let second = n % 60;
        let took = n.wrapping_mul(2_654_435_761) % 5000;
        let user = n % 977;
        log += &format!("2026-07-28T12:00:{second:02}Z INFO {n} took {took} ms for user {user}\n");
    }

    let entry = alice.put("test://log", log.as_str()).await;
    let stored = entry.stored_size();
    assert!(stored < entry.size * 3 / 10, "{stored} of {} bytes are stored", entry.size);
    assert!(alice.read("test://log").await == log, "the content differs");

    let noise = noise(3 * BLOCK_BYTES + 5);
    let entry = alice.put("test://noise", noise.clone()).await;
    assert!(entry.stored_size() <= entry.size + entry.size / 100, "it has grown");
    assert!(alice.read("test://noise").await == noise, "the content differs");

    let mixed = [log.as_bytes(), &noise, log.as_bytes()].concat();
    let entry = alice.put("test://mixed", mixed.clone()).await;
    let found = alice.get("test://mixed").await;
    let compressed: Vec<bool> = entry.blocks.iter().map(Block::is_compressed).collect();
    assert!(compressed.contains(&true) && compressed.contains(&false), "{compressed:?}");

    for border in entry.blocks.iter().map(|block| block.offset) {
        let first = border.saturating_sub(7);
        let window = found.bytes_from(first, 20).await.expect("it can be read");
        let first = usize::try_from(first).expect("it is small");
        assert_eq!(window.bytes, mixed[first..first + 20], "from byte {first}");
    }
}

/// Name, title, description and media type are stored as given. The default name is the last segment
/// of the URI.
pub async fn details_are_kept_and_have_defaults(harness: &dyn Harness) {
    let alice = Caller::alone(harness).await;
    let details = Details {
        name: Some("Analysis Results".into()),
        title: Some("Résultats 🦀".into()),
        description: Some("Detailed analysis \"output\"".into()),
        mime_type: Some("application/x-analysis; charset=utf-8".into()),
        ttl: None,
        ..Details::default()
    };
    alice.create("results://analysis/7", "text", details.clone()).await;

    let entry = alice.get("results://analysis/7").await.entry;
    assert_eq!(Some(&entry.name), details.name.as_ref());
    assert_eq!(entry.title, details.title);
    assert_eq!(entry.description, details.description);
    assert_eq!(Some(&entry.mime_type), details.mime_type.as_ref());
    assert_eq!((&entry.owner, entry.revision), (&alice.owner, 1));

    let entry = alice.put("results://analysis/8", "text").await;
    assert_eq!((entry.name.as_str(), &entry.title, &entry.description), ("8", &None, &None));
}

async fn whole_stream(found: &StoredResource) -> Vec<u8> {
    let blocks: Vec<Bytes> = found.stream().try_collect().await.expect("it can be read");
    blocks.concat()
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
