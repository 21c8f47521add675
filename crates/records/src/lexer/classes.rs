//! [`Classes`]: classifies 64 bytes of JSON at once.

use wide::u8x16;

/// The number of bytes that are classified at once.
pub(crate) const WORD: usize = 64;
/// The number of bytes of one vector.
const LANE: usize = 16;

/// A bit for each byte of a word; the lowest is the first byte.
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
    pub(super) fn new(word: &[u8; WORD]) -> Self {
        let lane = |index| {
            let bytes = word[index * LANE..].first_chunk();
            u8x16::new(*bytes.expect("a word has four lanes"))
        };
        let lanes: [u8x16; WORD / LANE] = std::array::from_fn(lane);

        let bits = |is_found: &dyn Fn(u8x16) -> u8x16| {
            let bits = |index| u64::from(is_found(lanes[index]).to_bitmask()) << (index * LANE);
            bits(0) | bits(1) | bits(2) | bits(3)
        };

        Self {
            quotes: bits(&|lane| is(lane, b'"')),
            backslashes: bits(&|lane| is(lane, b'\\')),
            opens: bits(&|lane| is(lane | u8x16::splat(CURLY), b'{')),
            closes: bits(&|lane| is(lane | u8x16::splat(CURLY), b'}')),
            commas: bits(&|lane| is(lane, b',')),
            colons: bits(&|lane| is(lane, b':')),
            spaces: bits(&|lane| {
                is(lane, b' ') | is(lane, b'\n') | is(lane, b'\r') | is(lane, b'\t')
            }),
            starts: bits(&|lane| {
                is_within(lane, b'a', b'z') | is_within(lane, b'0', b'9') | is(lane, b'-')
            }),
        }
    }
}

/// The bit that `{` and `}` have, and `[` and `]` lack.
pub(super) const CURLY: u8 = 0x20;

#[inline]
fn is(lane: u8x16, byte: u8) -> u8x16 {
    lane.simd_eq(u8x16::splat(byte))
}

#[inline]
fn is_within(lane: u8x16, first: u8, last: u8) -> u8x16 {
    let above = lane - u8x16::splat(first);
    above.min(u8x16::splat(last - first)).simd_eq(above)
}
