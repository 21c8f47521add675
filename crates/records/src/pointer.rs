//! JSON Pointers (RFC 6901).

use std::{fmt, str::FromStr};

/// A path to a value within a JSON value; empty for the whole value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Pointer(Vec<String>);

/// Text that is not a JSON Pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a JSON Pointer is empty or begins with /, such as /data/items")]
pub struct InvalidPointer;

impl Pointer {
    /// The number of segments.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it points at the whole value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A segment: a key, or the index of an item.
    pub fn segment(&self, index: usize) -> Option<&str> {
        self.0.get(index).map(String::as_str)
    }

    /// Appends a segment.
    pub fn push(&mut self, segment: impl Into<String>) {
        self.0.push(segment.into());
    }

    /// Removes the last segment.
    pub fn pop(&mut self) {
        self.0.pop();
    }
}

impl FromStr for Pointer {
    type Err = InvalidPointer;

    fn from_str(text: &str) -> Result<Self, InvalidPointer> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let segments = text.strip_prefix('/').ok_or(InvalidPointer)?.split('/');
        Ok(Self(segments.map(|s| s.replace("~1", "/").replace("~0", "~")).collect()))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}
