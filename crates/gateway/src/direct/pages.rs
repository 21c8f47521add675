//! [`ListPages`]: a list that a server sends page after page.

use std::collections::HashSet;

use serde_json::Value;

use crate::received::NextPage;

/// The most pages of a list.
const MAX_PAGES: usize = 1_000;
/// The most items of a list.
const MAX_ITEMS: usize = 100_000;

/// The pages of a list so far.
#[derive(Debug, Default)]
pub(super) struct ListPages {
    pub(super) items: Vec<Value>,
    /// The cursors of the pages that were asked for.
    cursors: HashSet<String>,
}

impl ListPages {
    /// Adds a page, whose items are in this member. Returns the cursor of the next page.
    ///
    /// # Errors
    /// The list does not end, or its cursor cannot be sent back.
    pub(super) fn add(&mut self, mut page: Value, member: &str) -> Result<Option<Value>, String> {
        if let Some(Value::Array(found)) = page.get_mut(member).map(Value::take) {
            self.items.extend(found);
        }
        if self.items.len() > MAX_ITEMS {
            return Err(format!("its list has more than {MAX_ITEMS} {member}"));
        }

        let named = page.get_mut("nextCursor").map(Value::take).filter(|cursor| !cursor.is_null());
        let cursor = match NextPage::of(named) {
            NextPage::End => return Ok(None),
            NextPage::Cursor(cursor) => cursor,
            NextPage::Unclear(problem) => return Err(problem.to_string()),
        };
        if !self.cursors.insert(cursor.to_string()) {
            return Err("its list has the same page again (nextCursor)".into());
        }
        if self.cursors.len() >= MAX_PAGES {
            return Err(format!("its list has more than {MAX_PAGES} pages"));
        }
        Ok(Some(cursor))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_ends_at_its_last_page() {
        let mut pages = ListPages::default();
        let first = json!({ "tools": [1, 2], "nextCursor": "a" });
        assert_eq!(pages.add(first, "tools").unwrap(), Some(json!("a")));
        assert_eq!(pages.add(json!({ "tools": [3], "nextCursor": null }), "tools"), Ok(None));
        assert_eq!(pages.items, [1, 2, 3]);
    }

    #[test]
    fn cursors_are_read_as_those_of_servers_behind_this_one() {
        let next = |cursor: Value| {
            let added =
                ListPages::default().add(json!({ "tools": [], "nextCursor": cursor }), "tools");
            added.map(Option::unwrap_or_default)
        };
        assert_eq!(next(json!(2)), Ok(json!(2)));
        for end in [json!(""), json!(false), Value::Null] {
            assert_eq!(next(end.clone()), Ok(Value::Null), "{end}");
        }
        assert!(next(json!({ "page": 2 })).is_err());
    }

    #[test]
    fn a_list_without_an_end_is_an_error() {
        let mut pages = ListPages::default();
        for cursor in ["a", "b"] {
            pages.add(json!({ "tools": [], "nextCursor": cursor }), "tools").unwrap();
        }
        assert!(pages.add(json!({ "nextCursor": "a" }), "tools").is_err(), "a cycle of two");

        let mut pages = ListPages::default();
        let added = (0..MAX_PAGES)
            .map(|page| pages.add(json!({ "nextCursor": page.to_string() }), "tools"))
            .collect::<Result<Vec<_>, _>>();
        assert!(added.is_err(), "new cursors for ever");

        let many = json!({ "tools": vec![0; MAX_ITEMS + 1] });
        assert!(ListPages::default().add(many, "tools").is_err());
    }
}
