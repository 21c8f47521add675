//! Foreign text in messages: what a caller sent or stored is shown in part, and
//! cannot pass for a message's own words.

use std::borrow::Cow;

/// The most characters of foreign text in a message.
pub const MAX_CHARS: usize = 100;

/// Text within a message: the first 100 characters, with `…` where more
/// follow. Characters that a reader cannot see are escaped.
pub fn shortened(text: &str) -> Cow<'_, str> {
    let end = text.char_indices().nth(MAX_CHARS).map(|(end, _)| end);
    let start = &text[..end.unwrap_or(text.len())];

    let mut shown = visible(start);
    if end.is_some() {
        shown.to_mut().push('…');
    }
    shown
}

/// Text within a message as [`shortened`] returns it, in double quotes.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text).replace('"', "\\\""))
}

/// The message of a parser of the `serde` family, with the wrong value or name [`shortened`].
/// The parser quotes it as a whole; the rest of the message stays.
pub fn parse_error(message: &str) -> String {
    // After the wrong value the message says what is expected.
    let end = ["`, expected ", "\", expected ", "`, there are no "]
        .iter()
        .filter_map(|after| message.rfind(after))
        .max();
    let begin = message.find(['`', '"']);

    match (begin, end) {
        (Some(begin), Some(end)) if begin < end => {
            let value = shortened(&message[begin + 1..end]);
            let after = visible(&message[end..]);
            format!("{}{value}{}", visible(&message[..=begin]), expected(&after))
        }
        _ => {
            let end = message.rfind(", expected ").unwrap_or(message.len());
            let before = shortened(&message[..end]);
            let after = shortened(&message[end..]);
            format!("{}{}", found(&before).unwrap_or(&before), expected(&after))
        }
    }
}

/// The beginning of such a message in words of JSON. `None` if it has no others.
fn found(message: &str) -> Option<&'static str> {
    Some(match message {
        "invalid type: map" => "invalid type: object",
        "invalid type: sequence" => "invalid type: list",
        "invalid type: unit value" => "invalid type: null",
        _ if message.starts_with("data did not match any variant of untagged enum") => {
            "it has none of the forms that are allowed"
        }
        _ => return None,
    })
}

/// The end of such a message in words of JSON: it names what the parser expected, by types of Rust.
fn expected(message: &str) -> Cow<'_, str> {
    let Some((start, rest)) = message.split_once("expected ") else { return message.into() };
    let (name, position) = rest.split_at(rest.find(" at line ").unwrap_or(rest.len()));
    let is_one = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));

    let known = match name {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "an integer from 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a map" | "map" => "an object",
        "a sequence" | "sequence" => "a list",
        "unit" | "option" => "null",
        "any valid JSON value" => "JSON",
        _ if is_one(&[
            "struct ",
            "internally tagged enum",
            "adjacently tagged enum",
            "map with ",
        ]) =>
        {
            "an object"
        }
        _ if is_one(&["tuple ", "a tuple ", "array ", "an array "]) => "a list",
        _ if is_one(&["enum ", "variant ", "unit variant", "newtype variant"]) => {
            "the name of a known value"
        }
        _ if is_one(&["unit struct"]) => "null",
        _ => return message.into(),
    };
    format!("{start}expected {known}{position}").into()
}

/// The whole text, with the characters escaped that a reader cannot see.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return text.into();
    }

    let mut visible = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_deceptive(c) {
            visible.extend(c.escape_default());
        } else {
            visible.push(c);
        }
    }

    visible.into()
}

/// Text of another server, for a reader: at most `max` characters, with `…` where more follow.
/// Characters that a reader cannot see are escaped, but for line breaks and tabs.
pub fn bounded(text: &str, max: usize) -> Cow<'_, str> {
    let is_shown = |c: char| matches!(c, '\n' | '\t') || !is_deceptive(c);
    let end = text.char_indices().nth(max).map(|(end, _)| end);
    let start = &text[..end.unwrap_or(text.len())];
    if end.is_none() && start.chars().all(is_shown) {
        return text.into();
    }
    let mut shown = String::with_capacity(start.len() + 16);
    for c in start.chars() {
        if is_shown(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    if end.is_some() {
        shown.push('…');
    }
    shown.into()
}

/// JSON with the same meaning, in which such characters are escaped. (JSON escapes
/// those of ASCII anyway.)
pub fn visible_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_deceptive(c) && !c.is_ascii() {
            // Outside of strings, JSON is ASCII.
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a character changes how the text around it is shown, or is not shown
/// at all: control characters, line separators, bidirectional controls (UAX 9),
/// the byte order mark, tags.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061C}'
                | '\u{200B}'
                | '\u{200E}'
                | '\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{2069}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_start_of_long_text_is_shown() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"é".repeat(100)), "é".repeat(100));

        let long = "é".repeat(1_000_000);
        assert_eq!(shortened(&long), format!("{}…", "é".repeat(100)));
    }

    #[test]
    fn only_the_value_in_a_parsers_message_is_shortened() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code)]
        struct Known {
            one: u32,
        }

        let long = "`, expected x".repeat(1_000);
        for (json, rest) in [
            (format!(r#"{{"{long}":1}}"#), ["unknown field `", "…`, expected `one`"]),
            (
                format!(r#"{{"one":"{long}"}}"#),
                ["invalid type: string \"", "…\", expected an integer from 0"],
            ),
            (
                r#"{"one":true}"#.to_owned(),
                ["invalid type: boolean `true`", "expected an integer from 0"],
            ),
        ] {
            let error = serde_json::from_str::<Known>(&json).expect_err("it is wrong");
            let said = parse_error(&error.to_string());
            assert!(rest.iter().all(|part| said.contains(part)) && said.len() < 250, "{said}");
        }
    }

    #[test]
    fn messages_of_the_parser_have_no_words_of_rust() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code)]
        struct Part {
            size: u64,
            name: Option<String>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(untagged)]
        #[expect(dead_code)]
        enum Either {
            One(Part),
            Many(Vec<Part>),
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(tag = "kind")]
        #[expect(dead_code)]
        enum Tagged {
            Part { size: u64 },
        }
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default)]
        struct Known {
            part: Option<Part>,
            either: Option<Either>,
            tagged: Option<Tagged>,
            list: Vec<String>,
            map: std::collections::BTreeMap<String, f64>,
            pair: (i64, bool),
        }

        for (json, told) in [
            (r#"{"part":true}"#, "invalid type: boolean `true`, expected an object"),
            (
                r#"{"part":"a, expected u8"}"#,
                "invalid type: string \"a, expected u8\", expected an object",
            ),
            (r#"{"part":{"size":-1}}"#, "invalid value: integer `-1`, expected an integer from 0"),
            (r#"{"part":{"size":[]}}"#, "invalid type: list, expected an integer from 0"),
            (r#"{"part":{}}"#, "missing field `size`"),
            (r#"{"either":7}"#, "it has none of the forms that are allowed"),
            (r#"{"tagged":7}"#, "invalid type: integer `7`, expected an object"),
            (r#"{"list":{}}"#, "invalid type: object, expected a list"),
            (r#"{"list":[1]}"#, "invalid type: integer `1`, expected a string"),
            (r#"{"map":[]}"#, "invalid type: list, expected an object"),
            (r#"{"map":{"a":null}}"#, "invalid type: null, expected a number"),
            (r#"{"pair":1}"#, "invalid type: integer `1`, expected a list"),
        ] {
            let error = serde_json::from_str::<Known>(json).expect_err("it is wrong");
            let error = error.to_string();
            let error = error.split(" at line ").next().unwrap_or_default();
            assert_eq!(parse_error(error), told, "{json}");
        }
    }

    #[test]
    fn text_of_another_server_is_bounded_and_keeps_its_lines() {
        assert_eq!(bounded("a\n\tb", 4), "a\n\tb");
        assert_eq!(bounded("a\r\u{1b}\u{202e}b", 5), r"a\r\u{1b}\u{202e}b");
        assert_eq!(bounded("aéb", 2), "aé…");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "a\u{202e}": ["\u{e0041}", "b\n", "é"] });
        let escaped = visible_json(&value.to_string());
        assert!(!escaped.contains(is_deceptive), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).expect("it is JSON"), value);
    }

    #[test]
    fn characters_that_a_reader_cannot_see_are_escaped() {
        assert_eq!(quoted("a\"b"), r#""a\"b""#);
        assert_eq!(shortened("a\nNext: \u{1b}[31m\u{202e}x"), r"a\nNext: \u{1b}[31m\u{202e}x");

        // Scripts that need joiners, and emoji, are left alone.
        let plain = "Größe, 表, עברית, می\u{200C}خواهم, 👩\u{200D}💻";
        assert_eq!(shortened(plain), plain);
    }
}
