//! The keys of content. Content of more than a mebibyte has several keys: Redis copies a string
//! that grows, and a string has at most 512 MiB.

use std::ops::Range;

use super::entry;
use crate::redis::Shard;

/// The size in bytes of each part of content but the last.
pub(super) const PART_BYTES: usize = 1 << 20;
/// The most bytes that go as an argument of the script, which copies them a few times. More bytes
/// are cheaper in a separate command.
pub(super) const MAX_INLINE: usize = 16 * 1024;

/// The parts of one revision's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContentParts {
    /// The ID without the number of parts.
    base: String,
    count: usize,
}

impl ContentParts {
    /// `count` parts whose IDs begin with `base`, which has no `.`.
    pub(super) fn new(base: &str, count: usize) -> Self {
        Self { base: base.to_owned(), count }
    }

    /// Parses the ID of content: `<base>` for one part, `<base>.<count>` for several.
    pub(super) fn of(id: &str) -> Self {
        let several =
            id.rsplit_once('.').and_then(|(base, count)| Some((base, count.parse().ok()?)));
        let (base, count) = several.unwrap_or((id, 1));

        Self::new(base, count)
    }

    pub(super) fn id(&self) -> String {
        if self.count > 1 { format!("{}.{}", self.base, self.count) } else { self.base.clone() }
    }

    /// Whether no part of content of `stored` bytes exceeds [`PART_BYTES`].
    pub(super) fn are_short(&self, stored: u64) -> bool {
        stored <= self.count as u64 * PART_BYTES as u64
    }

    pub(super) fn keys(&self, shard: &Shard) -> impl Iterator<Item = String> {
        (0..self.count).map(|part| self.key(shard, part))
    }

    /// The key of the part with this number.
    pub(super) fn key(&self, shard: &Shard, part: usize) -> String {
        match part {
            0 => entry::blob_key(shard, &self.base),
            _ => entry::blob_key(shard, &format!("{}.{part}", self.base)),
        }
    }

    /// Splits a range of the content into (part number, range in that part).
    pub(super) fn split(&self, range: Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> {
        let part_bytes = PART_BYTES as u64;
        // Content in one key may be longer: earlier versions had no parts.
        let last = self.count.saturating_sub(1);
        let mut start = range.start;

        std::iter::from_fn(move || {
            if start >= range.end {
                return None;
            }

            let part = usize::try_from(start / part_bytes).unwrap_or(last).min(last);
            let offset = part as u64 * part_bytes;
            let end = if part == last { range.end } else { range.end.min(offset + part_bytes) };
            let within = start - offset..end - offset;

            start = end;
            Some((part, within))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::Keys;

    const PART: u64 = PART_BYTES as u64;

    #[test]
    fn an_id_says_how_many_keys_there_are() {
        let shard = Keys::new("larder").expect("it is a prefix").shard_of("alice");
        let start = shard.start().to_owned();
        for (id, keys) in
            [("ab", &["ab"][..]), ("ab.3", &["ab", "ab.1", "ab.2"]), ("o-ab", &["o-ab"])]
        {
            let parts = ContentParts::of(id);
            let expected: Vec<_> = keys.iter().map(|key| format!("{start}blob:{key}")).collect();
            assert_eq!(parts.keys(&shard).collect::<Vec<_>>(), expected);
            assert_eq!(parts.id(), id);
        }
        assert_eq!(ContentParts::new("ab", 1).id(), "ab");
    }

    #[test]
    fn content_of_earlier_versions_has_a_long_part() {
        for (id, longest) in [("ab", PART), ("ab.3", 3 * PART)] {
            assert!(ContentParts::of(id).are_short(longest));
            assert!(!ContentParts::of(id).are_short(longest + 1));
        }
    }

    #[test]
    fn a_range_is_split_where_parts_end() {
        let split = |id, range| ContentParts::of(id).split(range).collect::<Vec<_>>();

        assert_eq!(split("ab", 5..7), [(0, 5..7)]);
        assert_eq!(split("ab", 5..3 * PART), [(0, 5..3 * PART)], "content of an earlier version");
        assert_eq!(split("ab.3", 0..PART), [(0, 0..PART)]);
        assert_eq!(split("ab.3", PART - 1..PART + 2), [(0, PART - 1..PART), (1, 0..2)]);
        assert_eq!(split("ab.3", 1..2 * PART + 9), [(0, 1..PART), (1, 0..PART), (2, 0..9)]);
        assert!(split("ab.3", 4..4).is_empty());
    }
}
