#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The repaired values, and what was told.
fn repaired(text: &str) -> Option<(String, String)> {
    let converted = repair(text.as_bytes())?;
    let json = String::from_utf8(converted.bytes).unwrap();
    match converted.layout {
        Layout::JsonLines => json.lines().for_each(|line| drop(parsed(line))),
        _ => drop(parsed(&json)),
    }
    let told: Vec<_> = converted.notes.into_iter().map(|note| note.text).collect();
    Some((json.trim_end().to_owned(), told.join("; ")))
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn faults_of_json_are_repaired_and_told() {
    for (text, json, told) in [
        ("[{\"a\": NaN}]", "[{\"a\":null}]", "1 value (NaN, Infinity) taken as null"),
        ("[-Infinity, Infinity, 1]", "[null,null,1]", "2 values"),
        ("[{\"a\": \"\\ud83d\"}]", "[{\"a\":\"\u{fffd}\"}]", "1 character not Unicode"),
        ("[\"\\ud83d\\ude00\", NaN]", "[\"\u{1f600}\",null]", "1 value"),
        (
            "[{\"a\": 1e400}, {\"a\": -1e400}]",
            "[{\"a\":1.7976931348623157e308},{\"a\":-1.7976931348623157e308}]",
            "2 numbers beyond the range",
        ),
        ("[1, 2, ]", "[1,2]", "1 superfluous comma left out"),
        ("{\"a\": 1, // why\n \"b\": /* no */ 2,\n}", "{\"a\":1,\"b\":2}", "2 comments left out"),
        ("# made by x\n[1,\n# two\n2]", "[1,2]", "2 comments left out"),
        ("{\"a\": 1}\n{\"a\": 2}", "{\"a\":1}\n{\"a\":2}", "2 JSON values one after another"),
        ("{\n \"a\": 1\n}\n{\n \"a\": 2\n}\n", "{\"a\":1}\n{\"a\":2}", "2 JSON values"),
        ("[1] [2],[3]", "[1]\n[2]\n[3]", "3 JSON values"),
        ("\u{1e}{\"a\":1}\n\u{1e}{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}", "2 JSON values"),
        (
            "[{'a': None, 'b': True, 'c': (1, 2)}]",
            "[{\"a\":null,\"b\":true,\"c\":[1,2]}]",
            "literals of Python",
        ),
        (
            "{'it\\'s': \"x'y\", 'q': 'say \"hi\"'}",
            "{\"it's\":\"x'y\",\"q\":\"say \\\"hi\\\"\"}",
            "literal",
        ),
        (
            "[{'d': Decimal('1.50'), 't': datetime.datetime(2020, 1, 2)}]",
            "[{\"d\":\"1.50\",\"t\":\"datetime.datetime(2020, 1, 2)\"}]",
            "2 calls",
        ),
        (
            "{a: 1, $b: .5, c: +2, d: 0x1F, e: 5.}",
            "{\"a\":1,\"$b\":0.5,\"c\":2,\"d\":31,\"e\":5.0}",
            "names without quotes",
        ),
        ("[007, 1_000]", "[\"007\",1000]", "zeros in front"),
        (
            "[\"a\tb\nc\", \"\\x41\\d\"]",
            "[\"a\\u0009b\\u000ac\",\"A\\\\d\"]",
            "escapes in texts repaired",
        ),
        ("Here it is:\n\n```json\n[{\"a\": 1}]\n```\nDone.", "[{\"a\":1}]", "block of Markdown"),
        ("```\n{\"a\": [1,]}\n```", "{\"a\":[1]}", "block of Markdown"),
        ("Found 2 items:\n[{\"a\": 1}, {\"a\": 2}]\n", "[{\"a\":1},{\"a\":2}]", "16 bytes of text"),
        ("Result: {\"a\": 1, \"b\": [1, 2, 3]}", "{\"a\":1,\"b\":[1,2,3]}", "bytes of text"),
        ("{\"result\": \"[{\\\"a\\\": 1}]\"}", "[{\"a\":1}]", "a text within JSON"),
        ("\"[{\\\"a\\\": NaN}]\"", "[{\"a\":null}]", "a text within JSON"),
        ("[{\"a\": 1}, {\"a\": 2}, {\"a\"", "[{\"a\":1},{\"a\":2}]", "ends within a value"),
        (
            "{\"n\": 2, \"rows\": [{\"a\": 1}, {\"a\": ",
            "{\"n\":2,\"rows\":[{\"a\":1}]}",
            "ends within a value",
        ),
    ] {
        let (found, notes) = repaired(text).unwrap_or_else(|| panic!("{text} is JSON"));
        assert_eq!(found, json, "{text}");
        assert!(notes.contains(told), "{text}: {notes}");
        assert!(seems_json(text.as_bytes(), true) || seems_wrapped(text.as_bytes()), "{text}");
    }
}

#[test]
fn bytes_that_are_not_utf_8_become_replacement_characters() {
    let converted = repair(b"[\"a\xFFb\xC3\"]").unwrap();
    assert_eq!(converted.bytes, "[\"a\u{fffd}b\u{fffd}\"]\n".as_bytes());
}

#[test]
fn deep_json_is_json() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert!(!seems_json(deep.as_bytes(), true), "it needs no repair");
    let converted = repair(deep.as_bytes()).unwrap();
    assert_eq!(converted.bytes, format!("{deep}\n").as_bytes());

    let too_deep = "[".repeat(100_000);
    assert_eq!(repair(too_deep.as_bytes()), None);
}

#[test]
fn other_texts_are_no_json() {
    for text in [
        "",
        "42",
        "\"text\"",
        "plain text",
        "[2026-01-01] {start}\n[2026-01-02] {stop}\n",
        "[INFO] started\n[WARN] late\n",
        "[1] first\n[2] second\n",
        "{not json at all, although it looks so}",
        "[section]\nkey = value\n",
        "fn main() { let a = [1, 2]; }",
        "# Title\n\nSome text with a list [1] of notes.\n",
        "{{ template }}",
        "a,b\n1,2\n",
    ] {
        assert!(!seems_json(text.as_bytes(), true), "{text}");
        assert_eq!(repaired(text), None, "{text}");
    }
}

#[test]
fn strict_json_seems_to_need_no_repair() {
    for text in ["[1, 2]", "{\"a\": [{\"b\": \"x\"}]}", " [] "] {
        assert!(!seems_json(text.as_bytes(), true), "{text}");
    }
}

proptest! {
    #[test]
    fn whatever_is_repaired_is_json(text in "[\\[\\]{}(),:'\"\\\\ a1.eNu#/\n-]{0,60}") {
        if let Some(converted) = repair(text.as_bytes()) {
            let json = String::from_utf8(converted.bytes).unwrap();
            if converted.layout == Layout::JsonLines {
                json.lines().for_each(|line| drop(parsed(line)));
            } else {
                parsed(&json);
            }
        }
    }

    #[test]
    fn json_stays_as_it_is(texts in prop::collection::vec("[a-z\"\\\\\u{e4} \n]{0,8}", 1..5)) {
        let json = serde_json::to_string(&texts).unwrap();
        let converted = repair(json.as_bytes()).unwrap();
        prop_assert_eq!(parsed(std::str::from_utf8(&converted.bytes).unwrap()), parsed(&json));
        prop_assert!(converted.notes.is_empty());
    }

    #[test]
    fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = repair(&bytes);
        let _ = seems_json(&bytes, false);
    }
}
