//! Cursors: opaque to clients, checked when they come back
//! (2026-07-28, utilities: Pagination).

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::protocol::Fault;

/// A position in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Which listing; a cursor of another one is refused.
    #[serde(rename = "l")]
    list: String,
    /// How many items that the server's definition lists are done.
    #[serde(rename = "n")]
    pub done: usize,
    /// The last dynamic item that is done, if that far.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl Cursor {
    /// A position in that listing.
    pub fn new(list: &str, done: usize, after: Option<String>) -> Self {
        Self { list: list.to_owned(), done, after }
    }

    /// What the client is given.
    pub fn encode(&self) -> String {
        // A struct of strings and numbers always serializes.
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// The position that the client gave back; the beginning when it gave none.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] for what is no cursor of this listing.
    pub fn decode(list: &str, cursor: Option<&str>) -> Result<Self, Fault> {
        let Some(text) = cursor else { return Ok(Self::new(list, 0, None)) };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let cursor: Option<Self> = bytes.and_then(|b| serde_json::from_slice(&b).ok());
        cursor.filter(|c| c.list == list).ok_or_else(|| {
            Fault::invalid_params(
                "Invalid cursor: pass nextCursor of an earlier page as it was, or none to begin anew.",
            )
        })
    }
}

/// Some items of a listing.
#[derive(Debug)]
pub struct PageOf<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

pub(super) fn page<T, U>(
    all: &[T],
    show: impl Fn(&T) -> Option<U>,
    list: &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<PageOf<U>, Fault> {
    // Positions count what is hidden, too: they hold for a caller whose scopes
    // change between two pages.
    let start = Cursor::decode(list, cursor)?.done;
    let mut items = Vec::new();
    for (at, item) in all.iter().enumerate().skip(start) {
        let Some(shown) = show(item) else { continue };
        if items.len() == size {
            return Ok(PageOf { items, next: Some(Cursor::new(list, at, None).encode()) });
        }
        items.push(shown);
    }
    Ok(PageOf { items, next: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_everything_once() {
        let all: Vec<u32> = (0..7).collect();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = page(&all, |n| Some(*n), "numbers", cursor.as_deref(), 3).expect("a page");
            seen.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn what_is_no_cursor_of_this_list_is_refused() {
        let other = Cursor::new("tools", 3, None).encode();
        for bad in ["", "x", "!!", &other] {
            let refused = Cursor::decode("numbers", Some(bad));
            assert!(matches!(refused, Err(Fault::InvalidParams { .. })), "{bad:?}");
        }
    }
}
