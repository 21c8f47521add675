//! [`BlockFilter`]: tells which texts a block certainly does not contain, so that a search
//! can leave the block out without decompressing it.
//!
//! The filter is a Bloom filter with one hash function. Its elements are the sequences of
//! [`SEQUENCE_BYTES`] bytes that begin at even offsets of the block. Every second sequence takes
//! half the time to add, and is enough: a text in the block has every second of its own
//! sequences at even offsets. Letters count without their case.

use std::ops::Range;

/// The length of the sequences. Shorter sequences occur in nearly every block.
const SEQUENCE_BYTES: usize = 4;

/// The shortest text that a filter can exclude: wherever it begins, it contains a sequence
/// that begins at an even offset.
pub(super) const MIN_TEXT_BYTES: usize = SEQUENCE_BYTES + 1;

/// The bytes kept of both ends of a block, which decide whether a text may cross two blocks.
const EDGE_BYTES: usize = SEQUENCE_BYTES - 1;

/// The bytes of a block for each bit of its filter, so that less than half of the bits of a
/// log are set.
const BYTES_PER_BIT: usize = 4;

/// Bounds of the number of bits of a filter, which is a power of two.
const MIN_BITS: usize = 1 << 10;
const MAX_BITS: usize = 1 << 16;

/// The size below which searching a block is faster than finding its filter.
pub(super) const MIN_BLOCK_BYTES: usize = 4 << 10;

/// Characters that match an ASCII letter (s and k) where case is ignored.
const FOLDED_TO_ASCII: [&[u8]; 2] = ["\u{17F}".as_bytes(), "\u{212A}".as_bytes()];

/// Makes letters that differ only in case equal; also merges a few other bytes.
pub(super) fn fold(byte: u8) -> u8 {
    byte | 0x20
}

/// The filter of a block: the texts that the block may contain.
#[derive(Debug)]
pub(super) struct BlockFilter {
    bits: Box<[u64]>,
    len: usize,

    /// The first and the last bytes of the block, folded.
    first: [u8; EDGE_BYTES],
    last: [u8; EDGE_BYTES],
    /// Whether the block has characters that match ASCII letters where case is ignored.
    has_folded_to_ascii: bool,
    /// Whether the block has terminal escapes, which may divide a text that a search without
    /// colours finds.
    has_escapes: bool,
}

impl BlockFilter {
    /// The filter of a block of text, or `None` if the block is too small for one.
    pub(super) fn new(block: &[u8]) -> Option<Self> {
        if block.len() < MIN_BLOCK_BYTES {
            return None;
        }

        let bits = (block.len() / BYTES_PER_BIT).next_power_of_two().clamp(MIN_BITS, MAX_BITS);

        // A byte for each bit is faster to set.
        let shift = slot_shift(bits);
        let mut is_set = vec![0; MAX_BITS];
        let is_ascii = mark(block, shift, is_set.first_chunk_mut()?);
        let (eights, _) = is_set[..bits].as_chunks::<8>();
        let (words, _) = eights.as_chunks::<8>();
        let word = |bytes: &[[u8; 8]; 8]| u64::from_le_bytes(bytes.map(bits_of));

        let folded = |edge: &[u8]| std::array::from_fn(|index| fold(edge[index]));
        let has = |text: &&[u8]| memchr::memmem::find(block, text).is_some();
        Some(Self {
            bits: words.iter().map(word).collect(),
            len: block.len(),
            first: folded(&block[..EDGE_BYTES]),
            last: folded(&block[block.len() - EDGE_BYTES..]),
            has_folded_to_ascii: !is_ascii && FOLDED_TO_ASCII.iter().any(has),
            has_escapes: larder_records::has_escapes(block),
        })
    }

    /// The approximate memory of the filter, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.bits)
    }

    /// The length of the block in bytes.
    pub(super) fn block_bytes(&self) -> usize {
        self.len
    }

    /// Whether the block may contain `text`, which is folded and has at least
    /// [`MIN_TEXT_BYTES`].
    pub(super) fn may_contain(&self, text: &[u8]) -> bool {
        self.may_have_any() || (0..2).any(|first| self.has_sequences(text, first..text.len()))
    }

    /// Whether `text`, as in [`may_contain`](Self::may_contain), may begin in this block and end
    /// in the next block.
    pub(super) fn may_cross(&self, next: &Self, text: &[u8]) -> bool {
        if self.may_have_any() || next.may_have_any() {
            return true;
        }

        // The bytes before the cut are in this block, the bytes after it in the next block.
        (1..text.len()).any(|cut| {
            let (before, after) = text.split_at(cut);
            let head = before.len().min(EDGE_BYTES);
            let tail = after.len().min(EDGE_BYTES);

            before[cut - head..] == self.last[EDGE_BYTES - head..]
                && after[..tail] == next.first[..tail]
                && before.len() <= self.len
                && after.len() <= next.len
                && self.has_sequences(text, (self.len - cut) % 2..cut)
                && next.has_sequences(text, cut..text.len())
        })
    }

    /// Whether the sequences of a text do not tell if the block has it.
    fn may_have_any(&self) -> bool {
        self.has_folded_to_ascii || self.has_escapes
    }

    /// Whether the filter has every second sequence of this range of the text.
    fn has_sequences(&self, text: &[u8], range: Range<usize>) -> bool {
        let sequences = text[range.start.min(range.end)..range.end].windows(SEQUENCE_BYTES);
        sequences.step_by(2).all(|sequence| self.has(sequence_at(sequence)))
    }

    fn has(&self, sequence: u32) -> bool {
        let slot = usize::from(slot(sequence, slot_shift(self.bits.len() * 64)));
        self.bits[slot / 64] >> (slot % 64) & 1 == 1
    }
}

/// Sets the bytes of the sequences at even offsets of the block. Returns whether the block is
/// ASCII.
fn mark(block: &[u8], shift: u32, is_set: &mut [u8; MAX_BITS]) -> bool {
    let mut start = 0;
    let mut all = 0;
    while let Some(eight) = block.get(start..).and_then(|rest| rest.first_chunk()) {
        let bytes = u64::from_le_bytes(*eight);
        is_set[usize::from(slot(low(bytes), shift))] = 1;
        is_set[usize::from(slot(low(bytes >> 16), shift))] = 1;
        is_set[usize::from(slot(low(bytes >> 32), shift))] = 1;
        all |= bytes;
        start += 6;
    }

    let rest = &block[start..];
    for sequence in rest.windows(SEQUENCE_BYTES).step_by(2) {
        is_set[usize::from(slot(sequence_at(sequence), shift))] = 1;
    }

    all & 0x8080_8080_8080_8080 == 0 && rest.is_ascii()
}

/// Packs eight bytes, each 0 or 1, into the bits of one byte: the product has the bit of byte `i`
/// at `56 + i`, and no two of its terms meet.
fn bits_of(bytes: [u8; 8]) -> u8 {
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080).to_be_bytes()[0]
}

/// The sequence in the lowest bytes.
fn low(bytes: u64) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "the other bytes are of other sequences")]
    let sequence = bytes as u32;
    sequence
}

fn sequence_at(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[index]))
}

/// The bit of a sequence among `2^(32 - shift)` bits, which are [`MAX_BITS`] at most.
fn slot(sequence: u32, shift: u32) -> u16 {
    let folded = sequence | 0x2020_2020;

    // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    let hash = folded.wrapping_mul(0x9E37_79B1) >> shift;
    #[allow(clippy::cast_possible_truncation, reason = "the shift leaves 16 bits at most")]
    let slot = hash as u16;
    slot
}

fn slot_shift(bits: usize) -> u32 {
    32 - bits.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(text: &[u8]) -> Vec<u8> {
        text.iter().copied().map(fold).collect()
    }

    fn log() -> Vec<u8> {
        let line = |n: u32| format!("line {n} has user={} and took {}ms\n", n * 31 % 1009, n * 7);
        (0..900).flat_map(|n| line(n).into_bytes()).collect()
    }

    fn filter(block: &[u8]) -> BlockFilter {
        BlockFilter::new(block).expect("the block is large enough")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_text_of_a_block_is_excluded(
            block in prop::collection::vec(any::<u8>(), MIN_BLOCK_BYTES..MIN_BLOCK_BYTES + 40),
            start in any::<prop::sample::Index>(),
            len in MIN_TEXT_BYTES..64,
        ) {
            let start = start.index(block.len() - len);
            prop_assert!(filter(&block).may_contain(&folded(&block[start..start + len])));
        }

        #[test]
        fn no_text_across_two_blocks_is_excluded(
            content in prop::collection::vec(any::<u8>(), 3 * MIN_BLOCK_BYTES),
            cut in MIN_BLOCK_BYTES..2 * MIN_BLOCK_BYTES,
            before in 1_usize..70,
            after in 1_usize..70,
        ) {
            prop_assume!(before + after >= MIN_TEXT_BYTES);

            let (first, second) = content.split_at(cut);
            let text = folded(&content[cut - before..cut + after]);
            prop_assert!(filter(first).may_cross(&filter(second), &text));
        }
    }

    #[test]
    fn a_text_that_a_log_does_not_have_is_excluded() {
        let log = log();
        let (first, second) = log.split_at(log.len() / 2);
        let whole = filter(&log);
        let first = filter(first);
        let second = filter(second);

        for text in ["timeout of the disk", "9d5f0f6c-21ab", "USER=X100Y", "a herd of zebras"] {
            let text = folded(text.as_bytes());
            assert!(!whole.may_contain(&text), "{text:?}");
            assert!(!first.may_cross(&second, &text), "{text:?}");
        }

        for text in ["LINE 77 has", "and took", "user=1000"] {
            assert!(whole.may_contain(&folded(text.as_bytes())), "{text:?}");
        }

        assert!(whole.memory_bytes() <= log.len() / 16);
    }

    #[test]
    fn characters_that_match_ascii_letters_exclude_nothing() {
        const ABSENT: &[u8] = b"herd/of/zebras";
        for unusual in ["\u{17F}", "\u{212A}"] {
            let block = [log(), unusual.into()].concat();
            assert!(filter(&block).may_contain(ABSENT));
            assert!(filter(&log()).may_cross(&filter(&block), ABSENT));
        }

        assert!(!filter(&[log(), "\u{E9}".into()].concat()).may_contain(ABSENT));
    }

    #[test]
    fn small_blocks_have_no_filter() {
        assert!(BlockFilter::new(&[b'a'; MIN_BLOCK_BYTES - 1]).is_none());
    }
}
