//! [`Lists`]: where lists stand in a JSON value.

use super::{
    Fault, Pointer,
    lexer::{Kind, Lexer, Token},
};

/// The most lists that are listed.
const MAX_LISTS: usize = 64;
/// Lists below this depth are not listed.
const MAX_LIST_DEPTH: usize = 8;

/// A list that stands in no other list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Its place.
    pub at: Pointer,
    /// The number of its items.
    pub items: u64,
}

/// Finds the lists of a JSON value that comes in blocks: those that stand in
/// objects, not in other lists.
#[derive(Debug, Clone)]
pub struct Lists {
    lexer: Lexer,
    path: Pointer,
    /// The depth of the items of the list that is open.
    inside: Option<usize>,
    items: u64,
    found: Vec<List>,
}

impl Default for Lists {
    fn default() -> Self {
        let (path, found) = (Pointer::default(), Vec::new());
        Self { lexer: Lexer::new(), path, inside: None, items: 0, found }
    }
}

impl Lists {
    /// Scans the next block.
    ///
    /// # Errors
    /// The content is not JSON, or is nested too deeply.
    pub fn feed(&mut self, block: &[u8]) -> Result<(), Fault> {
        let mut at = 0;
        while let Some(token) = self.lexer.next(block, &mut at)? {
            self.token(token);
        }
        Ok(())
    }

    /// Ends the content. The lists, in their order.
    ///
    /// # Errors
    /// The content ends within a JSON value.
    pub fn finish(mut self) -> Result<Vec<List>, Fault> {
        self.lexer.finish()?;
        Ok(self.found)
    }

    fn token(&mut self, token: Token) {
        let depth = self.lexer.depth();
        if let Some(inside) = self.inside {
            match token.kind {
                Kind::Scalar if depth == inside => self.items += 1,
                Kind::List | Kind::Object if depth == inside + 1 => self.items += 1,
                Kind::End if depth < inside => {
                    self.inside = None;
                    self.close(depth);
                }
                _ => {}
            }
            return;
        }
        match token.kind {
            Kind::Key => self.lexer.capture_key(),
            Kind::List | Kind::Object => {
                // All open containers but this one are objects with a key.
                if depth > 1 && depth <= MAX_LIST_DEPTH {
                    self.path.push(self.lexer.key().unwrap_or_default());
                }
                if token.kind == Kind::List {
                    (self.inside, self.items) = (Some(depth), 0);
                }
            }
            Kind::End => {
                // Of a scalar the depth is that of the object around it.
                while self.path.len() >= depth.max(1) {
                    self.path.pop();
                }
            }
            Kind::Scalar => {}
        }
    }

    /// Notes the list that has just ended.
    fn close(&mut self, depth: usize) {
        if depth < MAX_LIST_DEPTH && self.found.len() < MAX_LISTS {
            self.found.push(List { at: self.path.clone(), items: self.items });
        }
        while self.path.len() >= depth.max(1) {
            self.path.pop();
        }
    }
}
