//! A host's configuration file as text in which single entries are replaced: everything
//! else keeps its bytes, comments included.

use std::ops::Range;

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged, parse_to_ast};
use serde::Serialize;
use serde_json::{Map, Value, ser::PrettyFormatter};

/// JSON, with the comments and trailing commas that some hosts allow.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The text of a file, and the servers in it.
#[derive(Debug, Clone)]
pub(super) struct Document {
    text: String,
    pub(super) entries: Vec<Entry>,
}

/// A server of the host.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: Map<String, Value>,
    /// The position of the value in the text.
    range: Range<usize>,
    /// The position of the name and the value.
    property: Range<usize>,
}

impl Document {
    /// Parses a file whose servers are in that member.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: String, section: &str) -> Result<Self, String> {
        let parsed = parse_to_ast(&text, &CollectOptions::default(), &SYNTAX);
        let parsed = parsed.map_err(|error| format!("it is not JSON: {error}"))?;

        let Some(ast::Value::Object(mut root)) = parsed.value else {
            return Err("it is not a JSON object".into());
        };

        let mut entries = Vec::new();
        match root.take(section).map(|member| member.value) {
            None => {}
            Some(ast::Value::Object(servers)) => {
                for server in servers.properties {
                    let property = server.start()..server.end();
                    let range = server.value.start()..server.value.end();
                    let name = server.name.into_string();
                    match Value::from(server.value) {
                        Value::Object(value) => {
                            entries.push(Entry { name, value, range, property });
                        }
                        _ => return Err(format!("{section}.{name} is not an object")),
                    }
                }
            }
            Some(_) => return Err(format!("{section:?} is not an object")),
        }

        Ok(Self { text, entries })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The text of an entry.
    pub(super) fn source(&self, entry: &Entry) -> &str {
        &self.text[entry.range.clone()]
    }

    /// A new value as it would be written in the place of an entry, in the style of the file.
    pub(super) fn format(&self, entry: &Entry, value: &Map<String, Value>) -> String {
        if !self.source(entry).contains('\n') {
            return Value::Object(value.clone()).to_string();
        }

        let line = self.text[..entry.range.start].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[line..];
        let indentation = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];

        // An entry is two levels deep.
        let half = indentation.len() / 2;
        let is_even = indentation.len().is_multiple_of(2);
        let unit = if half > 0 && is_even { &indentation[..half] } else { "  " };

        let mut json = Vec::new();
        let formatter = PrettyFormatter::with_indent(unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, formatter);
        // A value always serializes.
        let _ = value.serialize(&mut serializer);

        let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        String::from_utf8_lossy(&json).replace('\n', &format!("{newline}{indentation}"))
    }

    /// The text with other texts in the place of some entries, by name.
    pub(super) fn with<'a>(&self, new: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        let mut text = self.text.clone();
        let mut replaced: Vec<_> =
            new.filter_map(|(name, new)| Some((self.entry(name)?.range.clone(), new))).collect();
        replaced.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));

        for (range, new) in replaced {
            text.replace_range(range, new);
        }
        text
    }

    /// The text with one entry in the place of the first of some entries, and without the others.
    pub(super) fn merged(&self, names: &[&str], name: &str, new: &str) -> String {
        let mut text = self.text.clone();
        let is_named = |entry: &Entry| names.contains(&entry.name.as_str());
        let first = self.entries.iter().position(is_named);

        // From the last one on, so that positions stay right.
        for (index, entry) in self.entries.iter().enumerate().rev() {
            if !is_named(entry) {
                continue;
            }
            if Some(index) == first {
                text.replace_range(entry.property.clone(), &property(name, new));
            } else {
                // With the comma before it.
                let before = self.entries[index - 1].property.end;
                text.replace_range(before..entry.property.end, "");
            }
        }
        text
    }

    /// The text with several entries, with their texts, in the place of one.
    pub(super) fn split(&self, entry: &Entry, new: &[(&str, &str)]) -> String {
        let line = self.text[..entry.property.start].rfind('\n').map_or(0, |newline| newline + 1);
        let indentation = &self.text[line..entry.property.start];
        let separator = if line > 0 && indentation.trim().is_empty() {
            let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
            format!(",{newline}{indentation}")
        } else {
            ", ".to_owned()
        };

        let properties: Vec<_> = new.iter().map(|(name, text)| property(name, text)).collect();
        let mut text = self.text.clone();
        text.replace_range(entry.property.clone(), &properties.join(&separator));
        text
    }
}

fn property(name: &str, text: &str) -> String {
    format!("{}: {text}", Value::from(name))
}
