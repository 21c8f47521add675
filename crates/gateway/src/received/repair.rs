//! Repairs messages that are nearly JSON, where their meaning is clear.

use serde_json::Value;

/// How a message was repaired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Repaired {
    /// How many numbers that JSON lacks were taken as null.
    pub(super) numbers: usize,
}

/// A message as JSON: bytes that are no UTF-8 and half surrogate pairs become U+FFFD, control
/// characters within strings are escaped, and numbers that JSON lacks become null. What is wrong
/// otherwise stays.
pub(crate) fn repair(message: &[u8]) -> (String, Repaired) {
    let text = String::from_utf8_lossy(message);
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut repaired = Repaired::default();
    let mut json = String::with_capacity(rest.len());

    while let Some(c) = rest.chars().next() {
        let used = match c {
            '"' => repair_string(rest, &mut json),
            'N' | 'I' | 'n' | 'i' | '-' | '0'..='9' => {
                repair_word(rest, &mut json, &mut repaired.numbers)
            }
            other => {
                json.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    (json, repaired)
}

/// Writes the string with which the text begins. Returns its length in bytes.
fn repair_string(text: &str, json: &mut String) -> usize {
    json.push('"');
    let mut at = 1;

    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => {
                json.push('"');
                return at + 1;
            }
            '\\' => at += repair_escape(&text[at..], json),
            '\0'..='\u{1f}' => {
                json.push_str(&format!("\\u{:04x}", u32::from(c)));
                at += 1;
            }
            other => {
                json.push(other);
                at += other.len_utf8();
            }
        }
    }

    at
}

/// Writes the escape with which the text begins. Returns its length in bytes.
fn repair_escape(text: &str, json: &mut String) -> usize {
    let unit = |text: &str| -> Option<u16> {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };

    let used = match unit(text) {
        Some(0xd800..0xdc00) if text.get(6..).and_then(unit).is_some_and(is_low) => 12,
        Some(0xd800..0xe000) => {
            json.push_str("\\ufffd");
            return 6;
        }
        Some(_) => 6,
        None => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
    };

    json.push_str(&text[..used]);
    used
}

fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

/// Writes the number or the word with which the text begins. Returns its length in bytes.
fn repair_word(text: &str, json: &mut String, numbers: &mut usize) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let word = &text[..end];
    let bare = word.trim_start_matches(['-', '+']).to_ascii_lowercase();
    let is_beyond = || {
        serde_json::from_str::<Value>(word).is_err()
            && word.parse::<f64>().is_ok_and(f64::is_infinite)
    };

    if matches!(&*bare, "nan" | "inf" | "infinity") || is_beyond() {
        *numbers += 1;
        json.push_str("null");
    } else {
        json.push_str(word);
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_clear_is_repaired_and_the_rest_stays() {
        for (sent, json, numbers) in [
            (&b"{\"a\":NaN,\"b\":[-Infinity,1e999]}"[..], "{\"a\":null,\"b\":[null,null]}", 3),
            (b"[true,null,1.5e3,-0]", "[true,null,1.5e3,-0]", 0),
            (br#""a\ud83d\ude00b\ud83dc\udc00""#, r#""a\ud83d\ude00b\ufffdc\ufffd""#, 0),
            (br#""\\ud800 NaN \"""#, r#""\\ud800 NaN \"""#, 0),
            (b"\"a\tb\xff\"", "\"a\\u0009b\u{fffd}\"", 0),
            ("\u{feff}{}".as_bytes(), "{}", 0),
            (br#"{"a":"\x""#, r#"{"a":"\x""#, 0),
            (br#""\"#, r#""\"#, 0),
        ] {
            let (repaired, how) = repair(sent);
            assert_eq!((&*repaired, how.numbers), (json, numbers));
        }
    }

    proptest! {
        #[test]
        fn json_stays_as_it_is(text in "[ -~é\\\\\"u]{0,20}", number in any::<f64>()) {
            let json = serde_json::json!({ "a": [text, number, null, true], "b": {} }).to_string();
            prop_assert_eq!(repair(json.as_bytes()), (json, Repaired::default()));
        }

        #[test]
        fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = repair(&bytes);
        }
    }
}
