//! [`Lists`]: finds the lists of a JSON value, and the list that has the records.

use super::{
    Container, Fault, Pointer, RecordIndex,
    lexer::{Lexer, Token, TokenKind, WORD},
    maps::{Maps, ValueKind},
};

/// The maximum number of lists that are reported.
const MAX_LISTS: usize = 64;
/// Deeper lists are not reported.
const MAX_LIST_DEPTH: usize = 8;

/// A list, or an object that has a member for each record, that is in no other list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The pointer to it.
    pub at: Pointer,
    /// The number of its items or members.
    pub items: u64,
}

/// Finds the lists of a JSON value that comes in blocks. Finds lists within objects, not within
/// other lists.
#[derive(Debug, Clone)]
pub struct Lists {
    lexer: Lexer,
    path: Pointer,
    /// The depth of the items of the list that is open.
    inside: Option<usize>,
    /// The items of the open list.
    items: RecordIndex,
    found: Vec<List>,
    /// The list that has the records, judging by what was scanned: its level, and the index of
    /// its items.
    outermost: Option<(usize, RecordIndex)>,
    /// Whether another list has the same level, below the first level: then none has the records.
    ambiguous: bool,
    /// The whole value's own members, or the value itself.
    root: RecordIndex,
    /// The maps, if they are looked for.
    maps: Option<Maps>,
    /// The bytes of the blocks before the current one.
    scanned: u64,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            lexer: Lexer::new(),
            path: Pointer::default(),
            inside: None,
            items: RecordIndex::of_json(Container::List),
            found: Vec::new(),
            outermost: None,
            ambiguous: false,
            root: RecordIndex::of_json(Container::Object),
            maps: None,
            scanned: 0,
        }
    }
}

impl Lists {
    /// Finds maps as well: objects with many members of like values.
    #[must_use]
    pub fn with_maps(self) -> Self {
        Self { maps: Some(Maps::default()), ..self }
    }

    /// Scans the next block.
    ///
    /// # Errors
    /// The content is not JSON, or is nested too deeply.
    pub fn feed(&mut self, block: &[u8]) -> Result<(), Fault> {
        let mut at = 0;
        let mut retry = 0;

        loop {
            if let Some(inside) = self.inside
                && at >= retry
            {
                let items = &mut self.items;
                self.lexer.pass_words(block, &mut at, inside, |offset, starts| {
                    items.add_starts(offset, starts);
                });
                // The list ends in the next word, or its JSON is malformed there.
                retry = at + WORD;
            }

            let Some(token) = self.lexer.next(block, &mut at)? else {
                self.scanned += block.len() as u64;
                return Ok(());
            };
            if self.maps.is_some() && self.inside.is_none() {
                self.note_member(token, block);
            }
            self.token(token);
        }
    }

    /// Ends the content. The lists, in their order.
    ///
    /// # Errors
    /// The content ends within a JSON value.
    pub fn finish(self) -> Result<Vec<List>, Fault> {
        self.finish_with_index().map(|(lists, _)| lists)
    }

    /// Ends the content. The lists and the maps, each the largest first.
    ///
    /// # Errors
    /// The content ends within a JSON value.
    pub fn finish_with_maps(mut self) -> Result<(Vec<List>, Vec<List>), Fault> {
        let maps = self.maps.take().map(Maps::finish).unwrap_or_default();
        let mut lists = self.finish()?;
        lists.sort_by_key(|list| std::cmp::Reverse(list.items));
        Ok((lists, maps))
    }

    /// Ends the content. The lists, and the index of the records: the items of the
    /// value if it is a list; else of the longest list among its members; else of
    /// the only list of its level; else its own members.
    ///
    /// # Errors
    /// The content ends within a JSON value.
    pub fn finish_with_index(mut self) -> Result<(Vec<List>, RecordIndex), Fault> {
        self.lexer.finish()?;
        if self.found.len() > MAX_LISTS {
            self.keep_largest();
        }
        let outermost = self.outermost.filter(|_| !self.ambiguous);
        Ok((self.found, outermost.map_or(self.root, |(_, index)| index)))
    }

    /// Tells the maps of a token outside of lists.
    fn note_member(&mut self, token: Token, block: &[u8]) {
        let Some(maps) = &mut self.maps else { return };
        let depth = self.lexer.depth();
        let key = if maps.wants_key() { self.lexer.key() } else { None };

        match token.kind {
            TokenKind::Object => maps.begin(key),
            TokenKind::List => maps.add(ValueKind::List, key),
            TokenKind::Scalar => {
                let first = usize::try_from(token.offset - self.scanned).ok();
                let first = first.and_then(|at| block.get(at)).copied().unwrap_or_default();
                maps.add(ValueKind::of_scalar(first), key);
            }
            // The ends of scalars leave the object around them open.
            TokenKind::End if maps.depth() > depth => {
                let at = (self.path.len() == depth).then_some(&self.path);
                maps.end(at);
            }
            TokenKind::Key | TokenKind::End => {}
        }
    }

    fn token(&mut self, token: Token) {
        let depth = self.lexer.depth();
        if let Some(inside) = self.inside {
            match token.kind {
                TokenKind::Scalar if depth == inside => self.items.add_start(token.offset),
                TokenKind::List | TokenKind::Object if depth == inside + 1 => {
                    self.items.add_start(token.offset);
                }
                TokenKind::End if depth < inside => {
                    self.inside = None;
                    self.close(depth);
                }
                _ => {}
            }
            return;
        }

        match token.kind {
            TokenKind::Key => {
                if depth == 1 {
                    self.root.add_start(token.offset);
                }
                self.lexer.capture_key();
            }
            TokenKind::List | TokenKind::Object => {
                // All open containers but this one are objects with a key.
                if depth > 1 && depth <= MAX_LIST_DEPTH {
                    self.path.push(self.lexer.key().unwrap_or_default());
                }
                if token.kind == TokenKind::List {
                    self.inside = Some(depth);
                    self.items = RecordIndex::of_json(Container::List);
                }
            }
            TokenKind::End => {
                // The depth after a scalar is the depth of the object around it.
                while self.path.len() >= depth.max(1) {
                    self.path.pop();
                }
            }
            TokenKind::Scalar if depth == 0 => {
                self.root = RecordIndex::of_json(Container::Scalar);
                self.root.add_start(token.offset);
            }
            TokenKind::Scalar => {}
        }
    }

    /// Notes the list that has just ended.
    fn close(&mut self, depth: usize) {
        if depth < MAX_LIST_DEPTH {
            let empty = RecordIndex::of_json(Container::List);
            let index = std::mem::replace(&mut self.items, empty).moved_to(&self.path);
            self.found.push(List { at: self.path.clone(), items: index.total() });
            self.consider(index);
        }
        if self.found.len() > 2 * MAX_LISTS {
            self.keep_largest();
        }

        while self.path.len() >= depth.max(1) {
            self.path.pop();
        }
    }

    /// Keeps the largest lists, in their order.
    fn keep_largest(&mut self) {
        let mut items: Vec<u64> = self.found.iter().map(|list| list.items).collect();
        items.sort_unstable_by_key(|items| std::cmp::Reverse(*items));

        let least = items.get(MAX_LISTS - 1).copied().unwrap_or_default();
        let mut equal = MAX_LISTS - items.iter().take_while(|items| **items > least).count();
        self.found.retain(|list| {
            let is_kept = list.items > least || (list.items == least && equal > 0);
            equal -= usize::from(is_kept && list.items == least);
            is_kept
        });
    }

    /// Decides whether the list that has just ended has the records.
    fn consider(&mut self, index: RecordIndex) {
        let level = self.path.len();

        match &self.outermost {
            Some((known, _)) if *known < level => return,
            Some((known, _)) if *known == level && level > 1 => {
                self.ambiguous = true;
                return;
            }
            Some((known, longest)) if *known == level && longest.total() >= index.total() => return,
            _ => {}
        }

        self.outermost = Some((level, index));
        self.ambiguous = false;
    }
}
