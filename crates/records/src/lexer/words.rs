//! The items of a list, 64 bytes at a time.
//!
//! A word of bytes becomes a bit mask for each kind of token, and the grammar is
//! checked by arithmetic on the masks. A word that is not certainly correct is left to
//! the lexer that goes byte by byte, so that both decide alike.

use super::{
    Expected, Lexer, Mode,
    classes::{CURLY, Classes, WORD},
};

/// The depth up to which words are passed: the bits of a mask.
const MAX_DEPTH: u32 = u64::BITS;

impl Lexer {
    /// Passes as many whole words of a block as it can without leaving the list at
    /// this depth. Calls `items` with the offset of each word and a mask of the items
    /// of the list that begin in it.
    pub(crate) fn pass_words(
        &mut self,
        block: &[u8],
        at: &mut usize,
        level: usize,
        mut items: impl FnMut(u64, u64),
    ) {
        let Some(mut state) = WordState::from_lexer(self, level) else { return };
        let from = *at;
        while let Some(word) = block[*at..].first_chunk::<WORD>() {
            let Some((next, starts)) = state.after(word) else { break };
            items(self.offset + (*at - from) as u64, starts);
            state = next;
            *at += WORD;
        }
        self.offset += (*at - from) as u64;
        state.apply_to(self);
    }
}

/// The state of a lexer between two words. A flag is the lowest bit of a word.
#[derive(Clone, Copy)]
struct WordState {
    /// Whether the next byte follows a backslash.
    escaped: u64,
    /// All bits, within a string.
    in_string: u64,
    in_atom: u64,
    /// Whether a value or a key is expected.
    value: u64,
    /// Whether a key is expected, and no value.
    key: u64,
    /// Whether a container may end there instead.
    opened: u64,
    /// Whether a colon is expected, if necessary after the end of a key.
    colon: u64,
    depth: u32,
    /// The depth of the items.
    level: u32,
    /// The open containers, the innermost in the lowest bit: whether each is an object.
    objects: u64,
}

impl WordState {
    fn from_lexer(lexer: &Lexer, level: usize) -> Option<Self> {
        let depth = u32::try_from(lexer.open.len()).ok().filter(|depth| *depth <= MAX_DEPTH)?;
        let level = u32::try_from(level).ok().filter(|level| (1..=depth).contains(level))?;

        let in_string = matches!(lexer.mode, Mode::Key | Mode::Text);
        if in_string && lexer.capturing {
            return None;
        }

        let (value, key, opened, colon) = match (lexer.mode, lexer.expected) {
            (Mode::Key, _) | (Mode::Between, Expected::Colon) => (0, 0, 0, 1),
            (Mode::Text | Mode::Atom, _) | (_, Expected::CommaOrEnd) => (0, 0, 0, 0),
            (_, Expected::Value) => (1, 0, 0, 0),
            (_, Expected::ValueOrEnd) => (1, 0, 1, 0),
            (_, Expected::Key) => (1, 1, 0, 0),
            (_, Expected::KeyOrEnd) => (1, 1, 1, 0),
            (_, Expected::Nothing) => return None,
        };

        Some(Self {
            escaped: lexer.escaped.into(),
            in_string: fill(in_string.into()),
            in_atom: (lexer.mode == Mode::Atom).into(),
            value,
            key,
            opened,
            colon,
            depth,
            level,
            objects: lexer.open.iter().fold(0, |bits, object| bits << 1 | u64::from(*object)),
        })
    }

    fn apply_to(self, lexer: &mut Lexer) {
        lexer.escaped = self.escaped == 1;
        lexer.mode = match (self.in_string, self.in_atom, self.colon) {
            (0, 0, _) => Mode::Between,
            (0, _, _) => Mode::Atom,
            (_, _, 0) => Mode::Text,
            _ => Mode::Key,
        };

        lexer.expected = match (self.value, self.key, self.opened) {
            (0, ..) if self.colon == 1 => Expected::Colon,
            (0, ..) => Expected::CommaOrEnd,
            (_, 0, 0) => Expected::Value,
            (_, 0, _) => Expected::ValueOrEnd,
            (_, _, 0) => Expected::Key,
            _ => Expected::KeyOrEnd,
        };

        lexer.open.clear();
        lexer.open.extend((0..self.depth).rev().map(|bit| self.objects >> bit & 1 == 1));
    }

    /// The state after a word, and the items that begin in it. `None` if the list ends
    /// in the word, or if it may be malformed.
    #[inline]
    fn after(self, word: &[u8; WORD]) -> Option<(Self, u64)> {
        let class = Classes::new(word);
        let (escaped, next_escaped) = escaped(class.backslashes, self.escaped);
        let quotes = class.quotes & !escaped;

        let in_string = up_to_next(quotes) ^ self.in_string;
        let strings = in_string | quotes;
        let [opens, closes, commas, colons, spaces] =
            [class.opens, class.closes, class.commas, class.colons, class.spaces]
                .map(|bits| bits & !strings);

        let atoms = !(strings | opens | closes | commas | colons | spaces);
        let atom_starts = atoms & !(atoms << 1 | self.in_atom);
        let rare = atoms & !class.starts;
        if rare != 0 && (rare & atom_starts != 0 || !are_within_atoms(word, rare)) {
            return None;
        }

        let nested = self.nest(word, opens, closes)?;

        let quoted = quotes & in_string;
        let values = quoted | atom_starts | opens;
        let (expected, value) = follow(opens | commas | colons, spaces, self.value);
        let (after_open, opened) = follow(opens, spaces, self.opened);
        let begun = (opens | commas) & nested.in_object;
        let (key_expected, key) = follow(begun, spaces, self.key);

        // Keys, and the white space after them.
        let passed = strings | spaces;
        let (sum, colon) = (key_expected & quoted | self.colon).overflowing_add(passed);

        let faults = (values & !expected)
            | (commas | colons) & expected
            | closes & expected & !after_open
            | key_expected & !(quoted | closes)
            | (sum & !passed) ^ colons;
        if faults != 0 {
            return None;
        }

        let next = Self {
            escaped: next_escaped,
            in_string: fill(in_string >> 63),
            in_atom: atoms >> 63,
            value,
            key,
            opened,
            colon: colon.into(),
            depth: nested.depth,
            level: self.level,
            objects: nested.objects,
        };

        // The mask has the level after each byte, and an item begins at the level before it.
        let at_level = nested.at_level << 1 | u64::from(self.depth == self.level);
        Some((next, values & at_level))
    }

    /// Follows the brackets of a word. `None` if they do not match, or leave the list.
    #[inline]
    fn nest(self, word: &[u8; WORD], opens: u64, closes: u64) -> Option<Nested> {
        let Self { mut depth, level, mut objects, .. } = self;
        let mut in_object = fill(objects & 1);
        let mut at_level = fill((depth == level).into());
        let mut brackets = opens | closes;

        while brackets != 0 {
            let at = brackets.trailing_zeros();
            let object = u64::from(word[at as usize] & CURLY != 0);
            if opens >> at & 1 == 1 {
                if depth == MAX_DEPTH {
                    return None;
                }
                objects = objects << 1 | object;
                depth += 1;
            } else {
                if depth == level || objects & 1 != object {
                    return None;
                }
                objects >>= 1;
                depth -= 1;
            }

            let before = (1 << at) - 1;
            in_object = in_object & before | fill(objects & 1) & !before;
            at_level = at_level & before | fill((depth == level).into()) & !before;
            brackets &= brackets - 1;
        }

        Some(Nested { depth, objects, in_object, at_level })
    }
}

/// The containers of a word.
struct Nested {
    /// The depth after the word.
    depth: u32,
    /// The open containers after the word.
    objects: u64,
    /// The bytes in an object, from its opening bracket on.
    in_object: u64,
    /// The bytes in the list with the items, outside of the items.
    at_level: u64,
}

/// All bits, or none.
fn fill(flag: u64) -> u64 {
    flag.wrapping_neg()
}

/// Fills from the first, third, … set bit up to the next set bit, which is left out.
#[inline]
fn up_to_next(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].iter().fold(bits, |bits, shift| bits ^ bits << shift)
}

/// The bytes that follow a backslash which is not itself escaped, and whether the first
/// byte of the next word is one.
#[inline]
fn escaped(backslashes: u64, carry: u64) -> (u64, u64) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    if backslashes == 0 {
        return (carry, 0);
    }

    let backslashes = backslashes & !carry;
    let follows = backslashes << 1 | carry;

    // Adding its start to a run carries to the byte after the run. That byte is odd if a run
    // that begins at an odd byte has an even length.
    let odd_starts = backslashes & !EVEN & !follows;
    let (even_runs, overflow) = odd_starts.overflowing_add(backslashes);
    ((EVEN ^ even_runs << 1) & follows, overflow.into())
}

/// The first byte after each of `bits` that is no white space, and whether the last such byte
/// comes in a later word. `carry`: an earlier word left its byte to this word.
#[inline]
fn follow(bits: u64, spaces: u64, carry: u64) -> (u64, u64) {
    let (sum, overflow) = (bits << 1 | carry).overflowing_add(spaces);
    (sum & !spaces, bits >> 63 | u64::from(overflow))
}

/// Whether these bytes may be in a number, but not at its start.
#[cold]
fn are_within_atoms(word: &[u8; WORD], mut bits: u64) -> bool {
    while bits != 0 {
        let byte = word[bits.trailing_zeros() as usize];
        if !matches!(byte, b'A'..=b'Z' | b'+' | b'.') {
            return false;
        }
        bits &= bits - 1;
    }
    true
}
