//! The parts that a server says it has left out of its own result: a further page, or a cut.

use std::{borrow::Cow, fmt};

use larder_protocol::quote::quoted;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use super::received::Received;
#[cfg(feature = "query")]
use crate::handler::ReceivedResult;

/// The depth of the members that may speak of further pages: of the value, and of `pageInfo` in it.
const MAX_DEPTH: u8 = 3;
/// The last bytes of a text in which a sentence about the rest is looked for.
const TAIL_BYTES: usize = 400;
/// The lists at the end of JSON after which members are looked for.
const MAX_CLOSING: usize = 3;
/// The longest cursor that is named.
const MAX_SHOWN: usize = 60;

/// Members that are true where something is left out.
const FLAGS: [&str; 10] = [
    "hasmore",
    "hasnextpage",
    "hasnext",
    "truncated",
    "istruncated",
    "incompleteresults",
    "incomplete",
    "partial",
    "moreavailable",
    "moreresults",
];
/// Members that have a value where there is a further page.
const CURSORS: [&str; 10] = [
    "next",
    "nextcursor",
    "nextpage",
    "nextpagetoken",
    "nexttoken",
    "nextlink",
    "nexturl",
    "nextoffset",
    "continuationtoken",
    "odatanextlink",
];
/// Members that hold others about pages.
const PAGINGS: [&str; 9] = [
    "pageinfo",
    "paging",
    "pagination",
    "meta",
    "metadata",
    "links",
    "responsemetadata",
    "page",
    "data",
];

/// The reason to believe that the server did not send all: `has_more is true`.
pub(super) fn left_out(result: &CallToolResult, received: &Received) -> Option<String> {
    if let Some(value) = &result.structured_content
        && let Some(reason) = of_value(value)
    {
        return Some(reason);
    }

    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.into_iter().find_map(|text| match received.find(text) {
        None => of_text(text),
        Some(text) => of_ends(&text.head, &text.tail),
    })
}

/// The reason in a result that is wholly in memory.
#[cfg(feature = "query")]
pub(crate) fn of_result(result: &CallToolResult) -> Option<String> {
    left_out(result, &Received::new(ReceivedResult::default()))
}

/// The reason in a text of which only the ends are in memory.
fn of_ends(head: &[u8], tail: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let tail = String::from_utf8_lossy(tail);
    of_start(&head).or_else(|| of_closing(&tail)).or_else(|| of_end(&tail))
}

/// The reason in the members after the last lists of JSON.
fn of_closing(tail: &str) -> Option<String> {
    let ends = tail.rmatch_indices(']').take(MAX_CLOSING);
    ends.into_iter().find_map(|(at, _)| {
        let rest = tail[at + 1..].trim_start().strip_prefix(',')?;
        let mut found = None;
        let members = format!("{{{rest}");
        let mut reader = serde_json::Deserializer::from_str(&members);
        // The text may go on after the object.
        let _ = Members { found: &mut found, depth: 0 }.deserialize(&mut reader);
        found
    })
}

/// Says that a server did not send all.
pub(super) fn left_out_warning(reason: &str) -> String {
    format!("The server did not send all: {reason}.")
}

/// The reason in a structured value.
fn of_value(value: &Value) -> Option<String> {
    let mut found = None;
    // The deserializer stores nothing, so its errors say nothing.
    let _ = Members { found: &mut found, depth: 0 }.deserialize(value);
    found
}

fn of_text(text: &str) -> Option<String> {
    of_start(text).or_else(|| of_end(text))
}

/// The reason in the members of JSON, or in the headers of a response.
fn of_start(text: &str) -> Option<String> {
    let json = text.trim_start();
    if json.starts_with(['{', '[']) {
        let mut found = None;
        let mut reader = serde_json::Deserializer::from_str(json);
        // Text that is not JSON to its end may be cut.
        let _ = Members { found: &mut found, depth: 0 }.deserialize(&mut reader);
        if found.is_some() {
            return found;
        }
    }
    of_headers(text)
}

/// A header `Link` with a next page (RFC 8288), among the first lines.
fn of_headers(text: &str) -> Option<String> {
    let mut lines = text.lines().take(40);
    let is_next = |line: &str| {
        let lower = line.to_ascii_lowercase();
        lower.starts_with("link:") && (lower.contains("rel=\"next\"") || lower.contains("rel=next"))
    };
    lines.any(is_next).then(|| "a Link header names a next page".to_owned())
}

/// A sentence at the end about the rest: `… 40 more items`, `[truncated]`.
fn of_end(text: &str) -> Option<String> {
    let tail = text.len().saturating_sub(TAIL_BYTES);
    // A line that begins before the tail is not read from its middle on.
    let start = match tail {
        0 => 0,
        tail => memchr::memchr(b'\n', &text.as_bytes()[tail..])? + tail + 1,
    };
    let lines = text[start..].lines().rev().map(str::trim).filter(|line| !line.is_empty());

    let mut last = lines.take(3).filter(|line| line.len() <= 160);
    last.find(|line| speaks_of_more(line)).map(|line| format!("it ends with {}", quoted(line)))
}

fn speaks_of_more(line: &str) -> bool {
    let lower = line.to_lowercase();
    let words: Vec<_> = lower.split(|c: char| !c.is_alphanumeric() && c != ',').collect();
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || c == ',')
    };

    let marks = lower.starts_with(['…', '[', '(', '<']) || lower.starts_with("...");
    let has_more = words.windows(2).any(|pair| is_number(pair[0]) && pair[1] == "more");
    let is_cut = ["truncated", "omitted"].iter().any(|word| words.contains(word));
    let shows = words.first() == Some(&"showing") && words.contains(&"of") && !all_shown(&words);
    (marks && (has_more || is_cut)) || shows
}

/// Whether `showing 1-30 of 30` shows all.
fn all_shown(words: &[&str]) -> bool {
    let number = |word: &str| word.replace(',', "").parse::<u64>().ok();
    let Some(of) = words.iter().position(|word| *word == "of") else { return false };
    let total = words[of..].iter().find_map(|word| number(word));
    let shown = words[..of].iter().rev().find_map(|word| number(word));
    shown.is_some() && shown == total
}

/// Reads the members of a value that may speak of further pages, and skips all else.
struct Members<'a> {
    found: &'a mut Option<String>,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            let plain: String =
                name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();

            if FLAGS.contains(&&*plain) || CURSORS.contains(&&*plain) {
                let scalar = map.next_value::<Scalar>()?;
                if self.found.is_none() {
                    *self.found = reason(&name, FLAGS.contains(&&*plain), scalar);
                }
            } else if PAGINGS.contains(&&*plain) && self.depth < MAX_DEPTH {
                map.next_value_seed(Members { found: self.found, depth: self.depth + 1 })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A value of a member that speaks of further pages.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Scalar {
    Flag(bool),
    Number(i64),
    Text(String),
    Other(IgnoredAny),
}

fn reason(name: &str, is_flag: bool, value: Scalar) -> Option<String> {
    let name = quoted(name);
    match value {
        Scalar::Flag(true) if is_flag => Some(format!("{name} is true")),
        Scalar::Number(number) if !is_flag && number > 0 => Some(format!("{name} is {number}")),
        Scalar::Text(text) if !is_flag && !text.is_empty() && text.len() <= MAX_SHOWN => {
            Some(format!("{name} is {}", quoted(&text)))
        }
        Scalar::Text(text) if !is_flag && !text.is_empty() => Some(format!("{name} is given")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_json(value: &Value) -> Option<String> {
        let as_text = of_text(&value.to_string());
        assert_eq!(of_value(value), as_text, "{value}");
        as_text
    }

    #[test]
    fn members_about_further_pages_are_found() {
        for (value, reason) in [
            (json!({ "items": [1], "has_more": true }), "\"has_more\" is true"),
            (json!({ "hasMore": true }), "\"hasMore\" is true"),
            (json!({ "items": [], "nextCursor": "abc" }), "\"nextCursor\" is \"abc\""),
            (json!({ "pageInfo": { "hasNextPage": true } }), "\"hasNextPage\" is true"),
            (json!({ "data": { "paging": { "next": "u" } } }), "\"next\" is \"u\""),
            (json!({ "incomplete_results": true }), "\"incomplete_results\" is true"),
            (json!({ "next_page": 2 }), "\"next_page\" is 2"),
            (json!({ "@odata.nextLink": "x".repeat(100) }), "\"@odata.nextLink\" is given"),
        ] {
            assert_eq!(of_json(&value).as_deref(), Some(reason), "{value}");
        }

        for whole in [
            json!({ "has_more": false, "next": null, "nextCursor": "" }),
            json!({ "items": [{ "has_more": true, "next": "x" }] }),
            json!({ "next": { "id": 1 } }),
            json!({ "truncated": 0, "next_page": 0 }),
            json!([{ "has_more": true }]),
            json!("has_more"),
        ] {
            assert_eq!(of_json(&whole), None, "{whole}");
        }
    }

    #[test]
    fn members_after_a_long_list_are_found_at_the_end() {
        for (tail, found) in [
            ("},{\"id\":9}],\"has_more\":true}", true),
            ("{\"id\":9,\"tags\":[]}],\n \"pageInfo\": {\"hasNextPage\": true}}\n", true),
            ("{\"id\":9}],\"has_more\":true,\"tags\":[1]}", true),
            ("{\"id\":9}],\"has_more\":false}", false),
            ("{\"id\":9,\"has_more\":true}]", false),
        ] {
            assert_eq!(of_ends(b"[{\"id\":1},", tail.as_bytes()).is_some(), found, "{tail}");
        }
    }

    #[test]
    fn sentences_in_the_middle_of_a_long_text_are_content() {
        let middle = b"A report.\n... 5 more items\nand so on";
        let tail = format!("{}(12 more results not shown)\nthe end of it\n", "word ".repeat(200));
        assert_eq!(of_ends(middle, tail.as_bytes()), None);

        // A line that begins before the closing bytes may begin in another way.
        let line = format!("{}(12 more results not shown){}\n", "a".repeat(300), " ".repeat(372));
        assert_eq!(of_ends(b"A report.", line.as_bytes()), None);

        let cut = "word ".repeat(200) + "\n... 5 more items\n";
        assert!(of_ends(b"A report.", cut.as_bytes()).is_some());
        assert!(of_ends(b"{\"has_more\": true, \"items\": [1,", b"2, 3]}").is_some());
    }

    #[test]
    fn sentences_about_the_rest_are_found_at_the_end_alone() {
        for cut in [
            "a\nb\n… 40 more items",
            "a\n... 1,200 more lines\n",
            "a\n[truncated]\n",
            "a\n(12 more results not shown)",
            "a\n<response truncated at 5000 characters>",
            "a\nShowing 1-30 of 412 issues\n",
            "HTTP/1.1 200 OK\nLink: <https://x/y?page=2>; rel=\"next\"\n\n[]",
            "[1, 2, 3\n... 5 more items",
        ] {
            assert!(of_text(cut).is_some(), "{cut}");
        }
        for whole in [
            "a\nno more items\n",
            "Showing 1-30 of 30 issues",
            "… 40 more items\na\nb\nc\nd\n",
            "I want 2 more apples\n",
            "",
        ] {
            assert_eq!(of_text(whole), None, "{whole}");
        }
    }
}
