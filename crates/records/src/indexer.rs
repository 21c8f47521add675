//! [`Indexer`]: makes the index of content that comes in blocks.

use super::{Fault, Layout, Lists, Pointer, RecordIndex, Scanner};

/// Makes a [`RecordIndex`] in one pass over the content.
#[derive(Debug, Clone)]
pub struct Indexer(Pass);

#[derive(Debug, Clone)]
enum Pass {
    /// JSON: which list has the records is decided at the end.
    Outermost(Box<Lists>),
    /// The pointer to the records is known.
    Known(Box<(Scanner, RecordIndex)>),
}

impl Indexer {
    /// Indexes the records of the content: in JSON those of the outermost list, as
    /// [`Lists::finish_with_index`] says.
    pub fn new(layout: Layout) -> Self {
        match layout {
            Layout::Json => Self(Pass::Outermost(Box::default())),
            _ => Self::at(layout, Pointer::default()),
        }
    }

    /// Indexes the records at this pointer, in JSON.
    pub fn at(layout: Layout, at: Pointer) -> Self {
        let index = RecordIndex::new(layout, &at);
        Self(Pass::Known(Box::new((Scanner::new(layout, at), index))))
    }

    /// Scans the next block.
    ///
    /// # Errors
    /// The content is not JSON, or is nested too deeply.
    pub fn feed(&mut self, block: &[u8]) -> Result<(), Fault> {
        match &mut self.0 {
            Pass::Outermost(lists) => lists.feed(block),
            Pass::Known(known) => {
                let (scanner, index) = &mut **known;
                scanner.feed(block, |record| index.add(record))
            }
        }
    }

    /// Ends the content. `None` if there is no value at the pointer.
    ///
    /// # Errors
    /// The content ends within a JSON value.
    pub fn finish(self) -> Result<Option<RecordIndex>, Fault> {
        match self.0 {
            Pass::Outermost(lists) => lists.finish_with_index().map(|(_, index)| Some(index)),
            Pass::Known(known) => {
                let (mut scanner, mut index) = *known;
                scanner.finish(|record| index.add(record))?;
                index.finish(&scanner);

                let found = index.layout() != Layout::Json || scanner.container().is_some();
                Ok(found.then_some(index))
            }
        }
    }
}
