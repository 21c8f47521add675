//! YAML 1.2 as JSON.

use larder_protocol::quote::shortened;
use larder_records::{
    Converted, Layout,
    notes::{Note, NoteKind},
    words::count,
};
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Options};

/// Words that YAML 1.1 reads as true and false, and YAML 1.2 as texts.
const OLD_BOOLEANS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];

/// The documents as JSON; several have a line each. `None` if they are no lists or objects.
pub(super) fn convert(bytes: &[u8]) -> Result<Option<Converted>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    let mut notes = Vec::new();
    let documents = match read(text, DuplicateKeyPolicy::Error, true) {
        Ok(documents) => documents,
        Err(problem) => {
            // The last value of a key counts, as in JSON.
            let documents = read(text, DuplicateKeyPolicy::LastWins, true).map_err(|_| &problem)?;
            let told = format!("a key occurs twice, and its last value counts: {problem}");
            notes.push(repaired(1, told));
            documents
        }
    };
    if documents.is_empty() || !documents.iter().all(|value| value.is_object() || value.is_array())
    {
        return Ok(None);
    }

    let mut bytes = Vec::new();
    for document in &documents {
        serde_json::to_writer(&mut bytes, document).map_err(|error| error.to_string())?;
        bytes.push(b'\n');
    }

    let number = documents.len() as u64;
    let (layout, told) = match number {
        1 => (Layout::Json, "read from YAML".to_owned()),
        _ => (Layout::JsonLines, format!("read from {} of YAML", count(number, "document"))),
    };
    notes.insert(0, repaired(number, told));
    notes.extend(rounded(&documents));
    notes.extend(old_booleans(text, &documents));
    Ok(Some(Converted { layout, bytes, notes, is_for_tables: false }))
}

/// The documents of a text. `strict`: only `true` and `false` are booleans, as in YAML 1.2.
fn read(text: &str, keys: DuplicateKeyPolicy, strict: bool) -> Result<Vec<Value>, String> {
    let mut options = Options::default();
    options.duplicate_keys = keys;
    options.strict_booleans = strict;
    // Digits stay as they are written where a number would lose some.
    options.leading_zero_numbers_as_strings = true;
    options.underscored_numbers_as_strings = true;
    options.non_finite_float_policy = NonFiniteFloatPolicy::AsString;
    options.null_as_string = true;
    options.ignore_binary_tag_for_string = true;
    options.with_snippet = false;

    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let problem = error.to_string();
        let first = problem.lines().next().unwrap_or_default();
        format!("it is not YAML: {}", shortened(first))
    })
}

/// A note about integers beyond 64 bits, which the reader rounds.
fn rounded(documents: &[Value]) -> Option<Note> {
    fn count_in(value: &Value, count: &mut u64, first: &mut Option<f64>) {
        match value {
            Value::Number(number) => {
                let real = number.as_f64().filter(|real| number.is_f64() && real.abs() >= 2e18);
                if let Some(real) = real {
                    *count += 1;
                    first.get_or_insert(real);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| count_in(item, count, first)),
            Value::Object(members) => {
                members.values().for_each(|member| count_in(member, count, first));
            }
            _ => {}
        }
    }

    let mut number = 0;
    let mut first = None;
    for document in documents {
        count_in(document, &mut number, &mut first);
    }
    let text =
        format!("{} rounded to 64 bits, such as {:e}", count(number, "large number"), first?);
    Some(repaired(number, text))
}

/// Notes about words that older readers take for true and false.
fn old_booleans(text: &str, documents: &[Value]) -> Vec<Note> {
    let mut words = OldBooleans::default();
    if let Ok(older) = read(text, DuplicateKeyPolicy::LastWins, false) {
        documents.iter().zip(&older).for_each(|(value, older)| words.compare(value, older));
    }

    let mut notes = Vec::new();
    for (number, example, what) in
        [(words.values, words.value, "value"), (words.keys, words.key, "key")]
    {
        let Some(example) = example else { continue };
        let text = format!(
            "{} such as {example} {}, as in YAML 1.2; YAML 1.1 has booleans there",
            count(number, what),
            if number == 1 { "is text" } else { "are text" }
        );
        notes.push(repaired(number, text));
    }
    notes
}

/// The words that YAML 1.1 reads as booleans.
#[derive(Default)]
struct OldBooleans {
    values: u64,
    value: Option<String>,
    keys: u64,
    key: Option<String>,
}

impl OldBooleans {
    /// Compares a value with the one that YAML 1.1 has in its place.
    fn compare(&mut self, value: &Value, older: &Value) {
        match (value, older) {
            (Value::String(word), Value::Bool(_)) => {
                self.values += 1;
                self.value.get_or_insert_with(|| word.clone());
            }
            (Value::Array(items), Value::Array(older)) => {
                items.iter().zip(older).for_each(|(item, older)| self.compare(item, older));
            }
            (Value::Object(members), Value::Object(older)) => {
                for (key, value) in members {
                    if OLD_BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(key)) {
                        self.keys += 1;
                        self.key.get_or_insert_with(|| key.clone());
                    }
                    if let Some(older) = older.get(key) {
                        self.compare(value, older);
                    }
                }
            }
            _ => {}
        }
    }
}

fn repaired(count: u64, text: String) -> Note {
    Note { kind: NoteKind::Repaired, table: None, column: None, count, first: None, text }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(yaml: &str) -> (String, String) {
        let converted = convert(yaml.as_bytes()).unwrap().unwrap();
        let told: Vec<_> = converted.notes.into_iter().map(|note| note.text).collect();
        (String::from_utf8(converted.bytes).unwrap(), told.join("; "))
    }

    #[test]
    fn words_and_digits_are_those_of_yaml_1_2() {
        for (value, json) in [
            ("no", r#""no""#),
            ("NO", r#""NO""#),
            ("y", r#""y""#),
            ("on", r#""on""#),
            ("Off", r#""Off""#),
            ("true", "true"),
            ("False", "false"),
            ("\"yes\"", r#""yes""#),
            ("010", r#""010""#),
            ("-007", r#""-007""#),
            ("0o10", "8"),
            ("1_000", r#""1_000""#),
            ("12:30:45", r#""12:30:45""#),
            ("22:22", r#""22:22""#),
            ("1.5", "1.5"),
            ("1e3", "1000.0"),
            ("18446744073709551615", "18446744073709551615"),
            ("2026-01-31", r#""2026-01-31""#),
            (".nan", r#"".nan""#),
            (".inf", r#"".inf""#),
            ("~", "null"),
            ("", "null"),
            ("!!str 7", r#""7""#),
            ("!Ref x", r#""x""#),
            ("!!binary aGk=", r#""aGk=""#),
            ("|\n  a\n  b\n", r#""a\nb\n""#),
        ] {
            assert_eq!(read(&format!("v: {value}\n")).0, format!("{{\"v\":{json}}}\n"), "{value}");
        }
    }

    #[test]
    fn words_that_older_readers_take_for_booleans_are_told() {
        let (_, told) = read("- {id: NO, ok: yes}\n- {id: DE, ok: \"no\"}\n");
        let note = "2 values such as NO are text, as in YAML 1.2; YAML 1.1 has booleans there";
        assert!(told.contains(note), "{told}");

        let (json, told) = read("- {x: 1, y: 2}\n- {x: 3, y: 4}\n");
        assert_eq!(json, "[{\"x\":1,\"y\":2},{\"x\":3,\"y\":4}]\n");
        assert!(told.contains("2 keys such as y are text"), "{told}");

        assert_eq!(read("a: true\nb: \"yes\"\n").1, "read from YAML");
    }

    #[test]
    fn keys_merges_and_documents_are_read() {
        for (yaml, json) in [
            ("1: a\n2.5: b\n", r#"{"1":"a","2.5":"b"}"#),
            ("~: a\nnull: b\n", r#"{"~":"a","null":"b"}"#),
            ("true: a\nno: b\n", r#"{"true":"a","no":"b"}"#),
            (
                "base: &b {x: 1, y: 2}\nall:\n  <<: *b\n  y: 3\n",
                r#"{"base":{"x":1,"y":2},"all":{"y":3,"x":1}}"#,
            ),
            ("a: &x [1, 2]\nb: *x\n", r#"{"a":[1,2],"b":[1,2]}"#),
        ] {
            let value: Value = serde_json::from_str(&read(yaml).0).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(json).unwrap(), "{yaml}");
        }

        let (json, told) = read("---\na: 1\n---\na: 2\n...\n");
        assert_eq!(json, "{\"a\":1}\n{\"a\":2}\n");
        assert!(told.contains("read from 2 documents of YAML"), "{told}");
    }

    #[test]
    fn a_key_that_occurs_twice_is_told() {
        let (json, told) = read("- a: 1\n  b: 2\n  a: 3\n");
        assert_eq!(
            serde_json::from_str::<Value>(&json).unwrap(),
            serde_json::json!([{"a": 3, "b": 2}])
        );
        assert!(told.contains("a key occurs twice, and its last value counts"), "{told}");

        let (_, told) = read("- 12345678901234567890123\n- 18446744073709551615\n- 1.5\n");
        assert!(told.contains("1 large number rounded to 64 bits, such as 1.23456789"), "{told}");

        for yaml in ["a: [1", "a: b: c", "a: *missing", "{a: 1"] {
            let error = convert(yaml.as_bytes()).unwrap_err();
            assert!(error.starts_with("it is not YAML: "), "{yaml}: {error}");
        }
    }
}
