//! [`Classes`]: what the bytes of JSON may be, for 64 of them at once.

use wide::u8x16;

/// The number of bytes that are classified at once.
pub(in crate::records) const WORD: usize = 64;
/// The number of bytes of one vector.
const LANE: usize = 16;

/// A bit for each byte of a word; the lowest is the first byte.
#[derive(Default)]
pub(super) struct Classes {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    /// `{` and `[`.
    pub(super) opens: u64,
    /// `}` and `]`.
    pub(super) closes: u64,
    pub(super) commas: u64,
    pub(super) colons: u64,
    pub(super) spaces: u64,
    /// The bytes with which numbers, `true`, `false` and `null` may begin.
    pub(super) starts: u64,
}

impl Classes {
    #[inline]
    pub(super) fn of(word: &[u8; WORD]) -> Self {
        let mut all = Self::default();
        for (index, lane) in word.as_chunks::<LANE>().0.iter().enumerate() {
            let lane = u8x16::new(*lane);
            let is = |byte: u8| lane.simd_eq(u8x16::splat(byte));
            let is_within = |lane: u8x16, first: u8, last: u8| {
                let above = lane - u8x16::splat(first);
                above.min(u8x16::splat(last - first)).simd_eq(above)
            };
            // This bit is what `{` and `}` have and `[` and `]` lack.
            let curly = lane | u8x16::splat(0x20);
            let add = |bits: &mut u64, found: u8x16| {
                *bits |= u64::from(found.to_bitmask()) << (index * LANE);
            };
            add(&mut all.quotes, is(b'"'));
            add(&mut all.backslashes, is(b'\\'));
            add(&mut all.opens, curly.simd_eq(u8x16::splat(b'{')));
            add(&mut all.closes, curly.simd_eq(u8x16::splat(b'}')));
            add(&mut all.commas, is(b','));
            add(&mut all.colons, is(b':'));
            add(&mut all.spaces, is(b' ') | is(b'\n') | is(b'\r') | is(b'\t'));
            let digit = is_within(lane, b'0', b'9');
            add(&mut all.starts, is_within(lane, b'a', b'z') | digit | is(b'-'));
        }
        all
    }
}
