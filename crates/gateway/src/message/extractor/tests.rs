//! Messages in any pieces.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::received::repair;

const LONGEST: Longest = Longest { text: 5, media: 9 };

/// The output of an extractor for one message.
#[derive(Default)]
struct Extracted {
    kept: Vec<u8>,
    /// The texts for which `$0`, `$1` and so on stand.
    texts: Vec<Vec<u8>>,
    /// How many of them are in blocks.
    in_blocks: usize,
    structure: Vec<u8>,
    has_structure: bool,
}

/// The kept part of a message in pieces of these sizes. `None` if it is found to be invalid.
fn extract(message: &[u8], sizes: &[usize]) -> Option<Extracted> {
    extract_of(&Source::Tool("tool".to_owned()), message, sizes)
}

fn extract_of(source: &Source, message: &[u8], sizes: &[usize]) -> Option<Extracted> {
    let mut extractor = Extractor::new(source, LONGEST, 3);
    let mut rest = message;
    let mut all = Extracted::default();

    for size in sizes.iter().chain(std::iter::repeat(&11)) {
        let (mut piece, after) = rest.split_at((*size).min(rest.len()));
        let Extracted { kept, texts, structure, in_blocks, has_structure } = &mut all;
        while let Some(found) = extractor.next(&mut piece, kept, structure) {
            match found {
                Found::Begins(_) | Found::StringBegins => {
                    kept.extend(format!("${}", texts.len()).bytes());
                    texts.push(Vec::new());
                    *in_blocks += usize::from(found != Found::StringBegins);
                }
                Found::Piece(piece) => texts.last_mut().unwrap().extend(piece),
                Found::Ends => {}
                Found::StructureEnds => *has_structure = true,
                Found::Invalid => return None,
            }
        }

        if after.is_empty() {
            break;
        }
        rest = after;
    }

    Some(all)
}

/// Puts the texts back.
fn restore(value: &mut Value, texts: &[Vec<u8>]) {
    match value {
        Value::String(text) => {
            let number = text.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
            if let Some(taken) = number.and_then(|number| texts.get(number)) {
                *text = String::from_utf8(taken.clone()).unwrap();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| restore(item, texts)),
        Value::Object(members) => {
            for (name, mut member) in std::mem::take(members) {
                restore(&mut member, texts);
                let mut name = Value::String(name);
                restore(&mut name, texts);
                members.insert(name.as_str().unwrap().to_owned(), member);
            }
        }
        _ => {}
    }
}

fn any_string() -> impl Strategy<Value = String> {
    let parts = ["a", "text", "\n", "\"", "\\", "é", "🦀", "\0", "{", "]", "result", "long "];
    prop::collection::vec(prop::sample::select(parts.to_vec()), 0..8).prop_map(|p| p.concat())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any_string().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null),
    ];

    let name =
        prop::sample::select(vec!["text", "result", "content", "resource", "type", "data", "blob"]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(n, v)| (n.to_owned(), v)).collect())
            }),
        ]
    })
}

fn any_block() -> impl Strategy<Value = Value> {
    let text = || any_string().prop_map(|text| json!({ "type": "text", "text": text }));
    let resource = text().prop_map(|resource| json!({ "resource": resource, "x": "long text" }));
    let image = any_string().prop_map(|data| json!({ "data": data, "type": "image" }));
    let blob = any_string().prop_map(|blob| json!({ "resource": { "uri": "a:b", "blob": blob } }));
    prop_oneof![3 => text(), 1 => resource, 1 => image, 1 => blob, 1 => any_value()]
}

fn any_message() -> impl Strategy<Value = Value> {
    let blocks = prop::collection::vec(any_block(), 0..6);
    let result = (blocks, any_value()).prop_map(|(blocks, value)| {
        json!({ "id": 1, "result": { "structuredContent": value, "content": blocks } })
    });
    prop_oneof![3 => result, 1 => any_value()]
}

proptest! {
    #[test]
    fn a_message_in_any_pieces_is_whole(
        message in any_message(),
        is_pretty in any::<bool>(),
        sizes in prop::collection::vec(1usize..40, 0..60),
    ) {
        let text = if is_pretty {
            serde_json::to_string_pretty(&message).unwrap()
        } else {
            message.to_string()
        };

        let found = extract(text.as_bytes(), &sizes).unwrap();
        let Extracted { kept, texts, in_blocks, .. } = found;
        let mut read: Value = serde_json::from_slice(&kept).unwrap();
        restore(&mut read, &texts);
        prop_assert_eq!(&read, &message);

        // Every long text is taken out of its block, up to the limit of texts.
        let blocks = message["result"]["content"].as_array();
        let long = blocks.into_iter().flatten().filter(|block| {
            let resource = &block["resource"];
            let is_over = |value: &Value, longest| value.as_str().is_some_and(|s| s.len() > longest);
            [&block["text"], &resource["text"], &resource["blob"]].iter().any(|v| is_over(v, 5))
                || is_over(&block["data"], 9)
        });

        prop_assert!(in_blocks >= long.count().min(3));
        prop_assert!(in_blocks <= 3 && texts.iter().all(|text| text.len() > 5));
        prop_assert_eq!(found.has_structure, texts.len() > in_blocks);

        if found.has_structure {
            let copied: Value = serde_json::from_slice(&found.structure).unwrap();
            prop_assert_eq!(&copied, &message["result"]["structuredContent"]);
        } else {
            prop_assert!(found.structure.is_empty());
        }
    }

    #[test]
    fn what_is_no_json_is_none_afterwards(
        message in any_message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        sizes in prop::collection::vec(1usize..40, 0..60),
    ) {
        let mut text = message.to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }

        let read = |json: &[u8]| serde_json::from_str::<Value>(&repair(json).0);
        let expected = read(&text);

        match extract(&text, &sizes) {
            None => prop_assert!(expected.is_err()),
            // The store checks that texts are UTF-8.
            Some(found) if found.texts.iter().any(|text| str::from_utf8(text).is_err()) => {}
            Some(Extracted { kept, texts, .. }) => {
                let read = read(&kept).map(|mut read| {
                    restore(&mut read, &texts);
                    read
                });
                prop_assert_eq!(read.ok(), expected.ok());
            }
        }
    }
}

/// The kinds of the strings that are taken out of a message.
fn kinds(source: &Source, message: &Value) -> Vec<Kind> {
    let mut extractor = Extractor::new(source, LONGEST, 3);
    let message = message.to_string();
    let mut input = message.as_bytes();
    let mut kinds = Vec::new();
    while let Some(found) = extractor.next(&mut input, &mut Vec::new(), &mut Vec::new()) {
        if let Found::Begins(kind) = found {
            kinds.push(kind);
        }
    }
    kinds
}

#[test]
fn contents_of_resources_are_found_and_nothing_else_of_a_read() {
    let long = "A".repeat(12);
    let contents = json!([
        { "uri": "a:1", "text": long, "mimeType": "text/plain; charset=utf-8" },
        { "uri": "a:2", "blob": long, "_meta": { "text": long } },
        { "uri": "a:3", "text": "short" },
    ]);
    let of = |result: Value| kinds(&Source::Resource, &json!({ "id": 1, "result": result }));

    assert_eq!(of(json!({ "contents": contents })), [Kind::Text, Kind::Binary]);
    assert_eq!(of(json!({ "content": contents, "structuredContent": { "text": long } })), []);
    assert_eq!(of(json!({ "contents": [contents], "_meta": { "contents": contents } })), []);

    let tool = Source::Tool("tool".to_owned());
    assert_eq!(kinds(&tool, &json!({ "result": { "contents": contents } })), []);

    let message = json!({ "result": { "contents": contents } });
    for size in 1..9 {
        let sizes = vec![size; 1000];
        let found = extract_of(&Source::Resource, message.to_string().as_bytes(), &sizes);
        let Extracted { kept, texts, .. } = found.unwrap();
        let mut read: Value = serde_json::from_slice(&kept).unwrap();
        assert_eq!(texts.len(), 2);
        restore(&mut read, &texts);
        assert_eq!(read, message);
    }
}

#[test]
fn base64_is_binary_and_media_may_be_longer() {
    let tool = Source::Tool("tool".to_owned());
    let of = |block: Value| kinds(&tool, &json!({ "result": { "content": [block] } }));
    let long = "A".repeat(12);
    let short = "A".repeat(8);

    assert_eq!(of(json!({ "type": "image", "data": long })), [Kind::Binary]);
    assert_eq!(of(json!({ "type": "audio", "data": short })), []);
    assert_eq!(of(json!({ "resource": { "blob": short } })), [Kind::Binary]);
    assert_eq!(of(json!({ "resource": { "text": short } })), [Kind::Text]);
    assert_eq!(of(json!({ "blob": long, "resource": { "data": long } })), []);
}

#[test]
fn hostile_messages_are_kept_as_they_are() {
    let deep = format!(r#"{{"result":{{"content":{}"#, "[{".repeat(100_000));
    let closers = "]}".repeat(1000);
    let names = format!(r#"{{"result":{{"content":[{{"te\u0078t":"{}"}}]}}}}"#, "x".repeat(50));

    for message in [deep.as_str(), &closers, &names, "", "\"", "{\"result\":\"", "nul"] {
        let found = extract(message.as_bytes(), &[3]).unwrap();
        assert!(found.kept == message.as_bytes() && found.texts.is_empty(), "{message:.40}");
    }
}
