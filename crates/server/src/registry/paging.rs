//! Pages of lists, and their cursors: opaque to clients, validated on return
//! (2026-07-28, utilities: Pagination).

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use larder_protocol::Fault;
use serde::{Deserialize, Serialize};

/// A position in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The list's name. A cursor of another list is refused.
    #[serde(rename = "l")]
    list: String,
    /// The number of items of the server's definition before the position.
    #[serde(rename = "n")]
    pub offset: usize,
    /// Exclusive lower bound for the dynamic items; `None` before the first one.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl Cursor {
    /// A position in this list.
    pub fn new(list: &str, offset: usize, after: Option<String>) -> Self {
        Self { list: list.to_owned(), offset, after }
    }

    /// The text that the client gets.
    pub fn encode(&self) -> String {
        // A struct of strings and numbers always serializes.
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Parses the client's cursor. No cursor means the start of the list.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] if it is not a cursor of this list.
    pub fn decode(list: &str, cursor: Option<&str>) -> Result<Self, Fault> {
        // Some hosts send an empty cursor with the first page.
        let Some(text) = cursor.filter(|text| !text.is_empty()) else {
            return Ok(Self::new(list, 0, None));
        };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let cursor: Option<Self> = bytes.and_then(|b| serde_json::from_slice(&b).ok());
        cursor.filter(|c| c.list == list).ok_or_else(|| {
            Fault::invalid_params(
                "Invalid cursor: pass the nextCursor of the last page unchanged, or none to start again.",
            )
        })
    }
}

/// A page of a list.
#[derive(Debug)]
pub struct ListPage<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The page at a cursor. `show` gives an item's list entry, or `None` to hide it.
pub(super) fn page<T, U>(
    all: &[T],
    show: impl Fn(&T) -> Option<U>,
    list: &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<ListPage<U>, Fault> {
    // Positions count hidden items, so that they stay valid if the caller's
    // scopes change between two pages.
    let start = Cursor::decode(list, cursor)?.offset;

    let mut items = Vec::new();
    for (position, item) in all.iter().enumerate().skip(start) {
        let Some(shown) = show(item) else { continue };
        if items.len() == size {
            return Ok(ListPage { items, next: Some(Cursor::new(list, position, None).encode()) });
        }
        items.push(shown);
    }

    Ok(ListPage { items, next: None })
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
    fn a_cursor_of_another_list_is_refused() {
        let other = Cursor::new("tools", 3, None).encode();
        let start = Cursor::new("numbers", 0, None);
        assert!(Cursor::decode("numbers", Some("")).is_ok_and(|cursor| cursor == start));
        for bad in ["x", "!!", &other] {
            let refused = Cursor::decode("numbers", Some(bad));
            assert!(matches!(refused, Err(Fault::InvalidParams { .. })), "{bad:?}");
        }
    }
}
