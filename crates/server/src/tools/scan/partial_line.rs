//! A line that ends in a later block. A long one is searched in pieces, so that it
//! needs bounded memory.

use std::ops::Range;

use bytes::Bytes;
use larder_runtime::compute::Stop;

use super::matches::{Matches, without_break};
use crate::tools::regex::LineMatcher;

/// Longer lines are searched in pieces, in bytes.
pub(in crate::tools) const WHOLE_LINE_BYTES: usize = 1 << 20;
/// The longest match that is certainly found in such a line, in bytes.
pub(in crate::tools) const PIECE_MATCH_BYTES: usize = 64 << 10;
/// The bytes that are kept before a piece: the text to show before a match in it.
const LOOK_BEHIND: usize = 1 << 10;
/// The bytes that are kept of the beginning of such a line, to show it as context.
const HEAD_BYTES: usize = 4 << 10;

/// The part of a line that is in memory.
#[derive(Default)]
pub(super) struct PartialLine {
    pub(super) text: Vec<u8>,
    /// The offset of `text` in the content.
    pub(super) offset: u64,
    /// The offset of the line in the content.
    pub(super) start: u64,
    /// The line's beginning, once a part of the line has been searched.
    pub(super) head: Option<Bytes>,
    /// Whether a match has been found.
    pub(super) has_match: bool,
    /// The offset in `text` where the next match may begin.
    next_start: usize,
    /// The end of the last match in `text`.
    last_end: Option<usize>,
}

/// The matches in a piece of a long line.
pub(super) struct Piece {
    pub(super) starts: Range<usize>,
    pub(super) last_end: Option<usize>,
    /// Their number.
    pub(super) matches: u64,
    /// The end of the last one.
    end: Option<usize>,
}

impl PartialLine {
    /// Appends bytes that have this offset in the content.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) {
        if self.text.is_empty() && self.head.is_none() {
            (self.offset, self.start) = (offset, offset);
        }
        self.text.extend_from_slice(bytes);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.head.is_none()
    }

    /// Searches what is in memory. `ended`: the line has no further bytes.
    pub(super) fn search(&mut self, matcher: &LineMatcher, ended: bool, stop: &Stop) -> Piece {
        let text = if ended { without_break(matcher, &self.text) } else { &self.text };
        // Matches that begin before `until` are complete, unless they are too long.
        let until = if ended { text.len() + 1 } else { text.len() - PIECE_MATCH_BYTES };
        let starts = self.next_start..until.max(self.next_start);
        let last_end = self.last_end;

        if self.head.is_none() {
            self.head = Some(Bytes::copy_from_slice(&text[..text.len().min(HEAD_BYTES)]));
        }

        let mut piece = Piece { starts, last_end, matches: 0, end: None };
        for found in Matches::new(matcher, text, piece.starts.clone(), last_end, stop) {
            piece.matches += 1;
            piece.end = Some(found.end);
        }

        self.has_match |= piece.matches > 0;
        piece
    }

    /// Drops what has been searched.
    pub(super) fn advance(&mut self, piece: &Piece) {
        self.last_end = piece.end.or(self.last_end);
        self.next_start = piece.starts.end.max(piece.end.unwrap_or(0));

        let dropped = piece.starts.end.min(self.next_start).saturating_sub(LOOK_BEHIND);
        self.text.drain(..dropped);
        self.offset += dropped as u64;
        self.next_start -= dropped;
        self.last_end = self.last_end.and_then(|end| end.checked_sub(dropped));
    }
}
