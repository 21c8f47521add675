//! The next page, as the result of a list names it.

use rmcp::model::JsonObject;
use serde_json::Value;

/// The members that have the cursor of the next page, the surest first.
const CURSORS: [&str; 12] = [
    "nextCursor",
    "next_cursor",
    "nextPageToken",
    "next_page_token",
    "nextToken",
    "next_token",
    "continuationToken",
    "endCursor",
    "next_page",
    "nextPage",
    "next_offset",
    "next",
];
/// The members that hold others about pages.
const PAGINGS: [&str; 8] =
    ["pageInfo", "page_info", "paging", "pagination", "meta", "metadata", "links", "data"];
/// The members that say whether there is a next page.
const FLAGS: [&str; 6] =
    ["has_more", "hasMore", "hasNextPage", "has_next_page", "has_next", "hasNext"];
/// The members that are true where the page itself is not whole.
const CUTS: [&str; 4] = ["incomplete_results", "incompleteResults", "incomplete", "partial"];
/// The members that have the number of the page.
const NUMBERS: [&str; 5] = ["page", "current_page", "currentPage", "page_number", "pageNumber"];
/// The arguments that take a cursor, and nothing else.
const ARGUMENTS: [&str; 9] = [
    "cursor",
    "next_cursor",
    "nextCursor",
    "page_token",
    "pageToken",
    "next_token",
    "nextToken",
    "continuation_token",
    "continuationToken",
];
/// The arguments that take a cursor, or something else, such as a date.
const UNSURE: [&str; 4] = ["after", "starting_after", "start_cursor", "next"];

/// The parts of a value that may speak of pages.
fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    let below = PAGINGS.iter().filter_map(|name| value.get(*name));
    let deeper = value
        .get("data")
        .into_iter()
        .flat_map(|data| PAGINGS.iter().filter_map(|name| data.get(*name)));
    [value].into_iter().chain(below).chain(deeper).filter(|part| part.is_object())
}

/// Whether there is a next page, if a member says so.
pub(super) fn flag(value: &Value) -> Option<bool> {
    parts(value).find_map(|part| FLAGS.iter().find_map(|name| part.get(*name)?.as_bool()))
}

/// The member that says that the page itself is not whole.
pub(super) fn cut(value: &Value) -> Option<String> {
    let is_true = |part: &Value, name: &str| part.get(name).is_some_and(|flag| *flag == true);
    let name = parts(value).find_map(|part| CUTS.into_iter().find(|name| is_true(part, name)))?;
    Some(format!("{name} is true"))
}

/// The member with the cursor of the next page.
pub(super) fn cursor(value: &Value) -> Option<(String, Value)> {
    let is_cursor = |value: &&Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_u64().is_some_and(|number| number > 0),
        _ => false,
    };
    parts(value).find_map(|part| {
        CURSORS.iter().find_map(|name| {
            let cursor = part.get(*name).filter(is_cursor)?;
            Some(((*name).to_owned(), cursor.clone()))
        })
    })
}

/// Whether a member for the cursor says that there is none: null or an empty text.
pub(super) fn has_null_cursor(value: &Value) -> bool {
    let is_null = |cursor: &Value| cursor.is_null() || cursor.as_str() == Some("");
    parts(value).any(|part| CURSORS.iter().any(|name| part.get(*name).is_some_and(is_null)))
}

/// The number of the page, if the value has it.
pub(super) fn page_number(value: &Value) -> Option<u64> {
    parts(value).find_map(|part| NUMBERS.iter().find_map(|name| whole_number(part.get(*name)?)))
}

/// A whole number, which some servers and hosts write as text.
pub(super) fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// The argument that takes the cursor of a member. `takes` says whether the tool has an argument,
/// `is_given` whether the caller has given it a meaning of its own.
pub(super) fn argument_of(
    member: &str,
    cursor: &Value,
    takes: &impl Fn(&str) -> bool,
    is_given: &impl Fn(&str) -> bool,
) -> Option<String> {
    let is_count = whole_number(cursor).is_some();
    let counted: &[&str] = match member {
        "next_page" | "nextPage" => &["page"],
        "next_offset" => &["offset"],
        "next" if is_count => &["page", "offset"],
        _ => &[],
    };

    let own = (!UNSURE.contains(&member) || !is_given(member)).then_some(member);
    let sure = own.into_iter().chain(counted.iter().copied()).chain(ARGUMENTS);
    let unsure = UNSURE.into_iter().filter(|name| !is_given(name));
    let last = is_count.then_some("page").filter(|name| !is_given(name));
    sure.chain(unsure).chain(last).find(|name| takes(name)).map(str::to_owned)
}

/// The arguments in the query of a URL of the next page.
pub(super) fn of_url(url: &str, takes: &impl Fn(&str) -> bool) -> Option<JsonObject> {
    let url = reqwest::Url::parse(url).ok()?;
    let pairs = url.query_pairs().filter(|(name, _)| takes(name));
    let arguments: JsonObject = pairs
        .map(|(name, value)| {
            let value = value.parse::<u64>().map_or_else(|_| value.into(), Value::from);
            (name.into_owned(), value)
        })
        .collect();
    (!arguments.is_empty()).then_some(arguments)
}

/// The path of the longest list of a page. `None` if it has no list, and is a record itself.
pub(super) fn list_of(value: &Value) -> Option<Vec<String>> {
    let mut longest: Option<(usize, Vec<String>)> = None;
    let mut offer = |path: &[&String], value: &Value| {
        let Value::Array(items) = value else { return };
        if longest.as_ref().is_none_or(|(length, _)| items.len() > *length) {
            longest = Some((items.len(), path.iter().map(|step| (*step).clone()).collect()));
        }
    };

    offer(&[], value);
    for (name, near) in value.as_object().into_iter().flatten() {
        offer(&[name], near);
        for (below, far) in near.as_object().into_iter().flatten() {
            offer(&[name, below], far);
        }
    }
    longest.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cursor_goes_into_its_own_argument_and_into_none_with_another_meaning() {
        for (member, cursor, takes, given, argument) in [
            ("next_token", json!("b"), vec!["cursor", "next_token"], vec![], Some("next_token")),
            ("nextCursor", json!("b"), vec!["token", "cursor"], vec![], Some("cursor")),
            ("nextCursor", json!("b"), vec!["token"], vec![], None),
            ("nextCursor", json!("b"), vec!["cursor"], vec!["cursor"], Some("cursor")),
            ("endCursor", json!("b"), vec!["after"], vec![], Some("after")),
            ("endCursor", json!("b"), vec!["after"], vec!["after"], None),
            ("next", json!("b"), vec!["next"], vec!["next"], None),
            ("next_page", json!(3), vec!["page", "cursor"], vec![], Some("page")),
            ("next_page", json!("3"), vec!["page"], vec!["page"], Some("page")),
            ("nextCursor", json!("b"), vec!["page"], vec![], None),
            ("next", json!(20), vec!["offset"], vec!["offset"], Some("offset")),
        ] {
            let found = argument_of(member, &cursor, &|name| takes.contains(&name), &|name| {
                given.contains(&name)
            });
            assert_eq!(found.as_deref(), argument, "{member} {takes:?} {given:?}");
        }
    }

    #[test]
    fn the_longest_list_and_the_number_of_a_page_are_found() {
        let path = |value: Value| list_of(&value).map(|path| path.join("."));
        assert_eq!(path(json!([1])).as_deref(), Some(""));
        assert_eq!(path(json!({ "a": [1], "b": { "c": [1, 2] } })).as_deref(), Some("b.c"));
        assert_eq!(path(json!({ "a": [], "b": [] })).as_deref(), Some("a"));
        assert_eq!(path(json!({ "a": 1 })), None);

        assert_eq!(page_number(&json!({ "page": "3" })), Some(3));
        assert_eq!(page_number(&json!({ "meta": { "current_page": 0 } })), Some(0));
        assert_eq!(page_number(&json!({ "items": [] })), None);
        assert!(has_null_cursor(&json!({ "links": { "next": null } })));
        assert!(!has_null_cursor(&json!({ "items": [] })));
    }
}
