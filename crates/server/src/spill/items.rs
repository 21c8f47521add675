//! Blocks that are the items of one list: many libraries send a list as a text block for each item,
//! besides the list as structured content. Such blocks are stored together, a record each.

use std::{collections::HashMap, fmt};

use rmcp::model::ContentBlock;
use serde::{
    Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use super::{
    copies::is_json_of,
    part::{Item, Part},
    received::Received,
    sizes::size,
};

/// So many texts are the items of a list, whatever they have in common. Fewer may be files.
const MANY: usize = 9;
/// The depth of objects in which a list is looked for.
const MAX_DEPTH: usize = 4;

/// The indexes of the blocks that repeat the items of a list in the value, if there are any. Other
/// blocks may stand before, between and after them.
pub(super) fn item_copies(
    value: &Value,
    blocks: &[Option<ContentBlock>],
    received: &Received,
) -> Option<Vec<usize>> {
    let mut lists = Vec::new();
    add_lists(value, MAX_DEPTH, &mut lists);

    lists.into_iter().find_map(|list| {
        let mut nested = Vec::new();
        copies_of(list.iter(), blocks, received).or_else(|| {
            // Some libraries send the items of nested lists.
            for item in list {
                flatten(item, &mut nested);
            }
            copies_of(nested.into_iter(), blocks, received)
        })
    })
}

/// Adds the lists that are in no other list.
fn add_lists<'a>(value: &'a Value, depth: usize, lists: &mut Vec<&'a Vec<Value>>) {
    match value {
        Value::Array(items) if !items.is_empty() => lists.push(items),
        Value::Object(members) if depth > 0 => {
            members.values().for_each(|member| add_lists(member, depth - 1, lists));
        }
        _ => {}
    }
}

fn flatten<'a>(item: &'a Value, items: &mut Vec<&'a Value>) {
    match item {
        Value::Array(nested) => nested.iter().for_each(|item| flatten(item, items)),
        item => items.push(item),
    }
}

fn copies_of<'a>(
    items: impl Iterator<Item = &'a Value>,
    blocks: &[Option<ContentBlock>],
    received: &Received,
) -> Option<Vec<usize>> {
    // Nothing is sent for null.
    let mut items = items.filter(|item| !item.is_null()).peekable();
    let mut copies = Vec::new();

    for (index, block) in blocks.iter().enumerate() {
        let Some(ContentBlock::Text(text)) = block else { continue };
        if items.next_if(|item| is_copy(&text.text, item, received)).is_some() {
            copies.push(index);
        }
    }

    (items.peek().is_none() && !copies.is_empty()).then_some(copies)
}

fn is_copy(text: &str, item: &Value, received: &Received) -> bool {
    if let Value::String(string) = item {
        return received.is(text, string);
    }

    let lacks_strings = received.is_incomplete(item);
    match received.find(text) {
        // The blocks before and after it tell that it is the item whose strings are elsewhere.
        Some(text) if lacks_strings => text.json.is_some(),
        Some(text) => text.is_json_of(item),
        None if lacks_strings => false,
        None if item.is_number() || item.is_boolean() => {
            let written = item.to_string();
            text.trim() == written
        }
        None => is_json_of(text, item),
    }
}

/// The blocks of a list.
pub(super) struct ItemBlocks {
    /// The indexes of the blocks, in ascending order.
    pub(super) indexes: Vec<usize>,
    /// The bytes of their texts.
    pub(super) bytes: usize,
    /// Whether the items are JSON, or any text.
    is_json: bool,
}

/// A text, as far as that tells whether it is an item.
enum Shape {
    /// A JSON object with these keys; `None` if they are not known.
    Object(Option<Vec<String>>),
    List,
    Scalar,
    /// Any other text.
    Words,
}

impl ItemBlocks {
    /// The lists that a result without structured content has: objects with keys in common, and
    /// many texts of another kind. Texts over `large` bytes may be files; they are items only if
    /// many are.
    pub(super) fn find(
        blocks: &[Option<ContentBlock>],
        received: &Received,
        large: usize,
    ) -> Vec<Self> {
        let mut objects = Vec::new();
        let mut lists = Vec::new();
        let mut others = Vec::new();
        let mut words = 0;

        for (index, block) in blocks.iter().enumerate() {
            let Some(ContentBlock::Text(text)) = block else { continue };
            match shape(&text.text, received) {
                Shape::Object(keys) => objects.push((index, keys)),
                Shape::List => lists.push(index),
                Shape::Scalar => others.push(index),
                Shape::Words if index == 0 && is_heading(&text.text) => {}
                Shape::Words => {
                    words += 1;
                    others.push(index);
                }
            }
        }

        let of = |indexes: Vec<usize>, is_json| {
            let sizes = indexes.iter().filter_map(|index| blocks[*index].as_ref());
            let bytes = sizes.map(|block| size(block, received)).sum();
            Self { indexes, bytes, is_json }
        };

        let is_large =
            |index: &usize| blocks[*index].as_ref().is_some_and(|b| size(b, received) > large);
        let files = others.iter().filter(|index| is_large(index)).count();
        if files < MANY {
            others.retain(|index| !is_large(index));
        }

        let mut found = Vec::new();
        let objects = alike(objects);
        if objects.len() > 1 {
            found.push(of(objects, true));
        }
        if lists.len() >= MANY {
            found.push(of(lists, true));
        }
        if others.len() >= MANY {
            found.push(of(others, words == 0));
        }
        found
    }

    /// Takes the blocks as one part.
    pub(super) fn take(
        &self,
        blocks: &mut [Option<ContentBlock>],
        received: &mut Received,
    ) -> Part {
        let items = self.indexes.iter().filter_map(|index| match blocks[*index].take() {
            Some(ContentBlock::Text(text)) => Some(match received.take(&text.text) {
                Some(text) if self.is_json => Item::ReceivedJson(Box::new(text)),
                Some(text) => Item::ReceivedText(Box::new(text)),
                None if self.is_json => Item::Json(text.text),
                None => Item::Text(text.text),
            }),
            other => {
                blocks[*index] = other;
                None
            }
        });
        Part::list(items.collect())
    }
}

/// Whether a text announces the texts after it.
fn is_heading(text: &str) -> bool {
    let text = text.trim();
    text.ends_with(':') && !text.contains('\n')
}

fn shape(text: &str, received: &Received) -> Shape {
    if let Some(text) = received.find(text) {
        return match text.head.trim_ascii_start().first() {
            Some(b'{') if text.json.is_some() => Shape::Object(None),
            Some(b'[') if text.json.is_some() => Shape::List,
            _ => Shape::Words,
        };
    }

    let text = text.trim();
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    match text.bytes().next() {
        Some(b'{') if text.ends_with('}') => Shape::Object(keys(text)),
        Some(b'[') if is_json() => Shape::List,
        Some(b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') if is_json() => Shape::Scalar,
        _ => Shape::Words,
    }
}

/// The keys of an object.
fn keys(text: &str) -> Option<Vec<String>> {
    struct Keys;
    impl<'de> Visitor<'de> for Keys {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut keys = Vec::new();
            while let Some((key, IgnoredAny)) = members.next_entry()? {
                keys.push(key);
            }
            Ok(keys)
        }
    }

    let mut json = serde_json::Deserializer::from_str(text);
    let keys = json.deserialize_map(Keys).ok()?;
    json.end().is_ok().then_some(keys)
}

/// The objects of which half of the keys are those of half of the objects. All objects if there are
/// many: events of several kinds are a list, too. An object that is no valid JSON is an item among
/// others.
fn alike(objects: Vec<(usize, Option<Vec<String>>)>) -> Vec<usize> {
    if objects.iter().all(|(_, keys)| keys.is_none()) && objects.len() < MANY {
        return Vec::new();
    }
    if objects.len() >= MANY {
        return objects.into_iter().map(|(index, _)| index).collect();
    }

    let mut counts: HashMap<&str, usize> = HashMap::new();
    for key in objects.iter().filter_map(|(_, keys)| keys.as_ref()).flatten() {
        *counts.entry(key).or_default() += 1;
    }

    let known = objects.iter().filter(|(_, keys)| keys.is_some()).count();
    let common = known.div_ceil(2).max(known.min(2));
    let is_alike = |keys: &Option<Vec<String>>| {
        keys.as_ref().is_none_or(|keys| {
            let shared = keys.iter().filter(|key| counts[key.as_str()] >= common).count();
            2 * shared >= keys.len()
        })
    };

    let alike = objects.iter().filter(|(_, keys)| is_alike(keys));
    alike.map(|(index, _)| *index).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn blocks(texts: &[&str]) -> Vec<Option<ContentBlock>> {
        texts.iter().map(|text| Some(ContentBlock::text(*text))).collect()
    }

    #[test]
    fn items_of_the_structured_content_are_found_among_other_blocks() {
        let none = Received::default();
        let pretty = "{\n  \"id\": 1\n}";

        for (value, texts, copies) in [
            (
                json!({ "result": [{ "id": 1 }, { "id": 2 }] }),
                vec![pretty, "{\"id\":2}"],
                Some(vec![0, 1]),
            ),
            (
                json!({ "n": 2, "data": { "rows": [{ "id": 1 }] } }),
                vec!["One:", pretty],
                Some(vec![1]),
            ),
            (json!([{ "id": 1 }]), vec![pretty, "That is all."], Some(vec![0])),
            (
                json!({ "result": ["a", "b\n", null, 7, true] }),
                vec!["a", "b\n", "7", "true"],
                Some(vec![0, 1, 2, 3]),
            ),
            (json!({ "result": [[{ "id": 1 }], ["a"]] }), vec![pretty, "a"], Some(vec![0, 1])),
            (json!({ "result": [{ "id": 1 }, { "id": 2 }] }), vec![pretty], None),
            (json!({ "result": [{ "id": 2 }] }), vec![pretty], None),
            (json!({ "result": [] }), vec![pretty], None),
        ] {
            assert_eq!(item_copies(&value, &blocks(&texts), &none), copies, "{value}");
        }
    }

    #[test]
    fn texts_are_items_if_they_are_alike_or_many() {
        let words: Vec<String> = (0..20).map(|n| format!("Line {n}\nof a text")).collect();
        let mut many: Vec<&str> = words.iter().map(String::as_str).collect();
        let numbers: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let issue = "{\"id\": 1, \"title\": \"a\"}";
        let broken = "{\"id\": NaN, \"title\": \"a\"}";

        let found = |texts: &[&str]| {
            let found = ItemBlocks::find(&blocks(texts), &Received::default(), 100);
            found.into_iter().map(|found| (found.indexes, found.is_json)).collect::<Vec<_>>()
        };

        assert_eq!(found(&["Two:", issue, issue]), [(vec![1, 2], true)]);
        assert_eq!(found(&[issue, "and", broken]), [(vec![0, 2], true)]);
        assert_eq!(found(&["{\"total\": 2}", "{\"rows\": [1, 2]}"]), []);
        assert_eq!(found(&[broken, broken]), []);
        assert_eq!(found(&many[..8]), []);
        assert_eq!(found(&many), [((0..20).collect(), false)]);
        assert_eq!(found(&numbers), [((0..20).collect(), true)]);

        let long = "x".repeat(200);
        many.insert(0, "They are:");
        many.push(&long);
        assert_eq!(found(&many), [((1..21).collect(), false)]);
    }
}
