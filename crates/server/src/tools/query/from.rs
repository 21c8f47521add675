//! [`From`]: the argument that names what a query reads, and how each resource is read.

use std::{borrow::Cow, collections::BTreeMap};

use larder_protocol::quote::quoted;
use larder_records::TableOptions;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use super::Format;

/// One resource, or several with table names.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum From {
    Uri(String),
    Tables(BTreeMap<String, Source>),
}

/// A resource, by its URI or with the options by which it is read.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Source {
    Uri(String),
    Options(SourceOptions),
}

/// How one resource is read. What is not given is detected, or taken from the arguments of the
/// call if there is one resource only.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub(super) struct SourceOptions {
    pub(super) uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<Format>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<u64>,
    /// How a table is written. The schema refuses other members.
    #[serde(flatten)]
    pub(super) table: TableOptions,
}

impl Source {
    pub(super) fn options(&self) -> Cow<'_, SourceOptions> {
        match self {
            Self::Options(options) => Cow::Borrowed(options),
            Self::Uri(uri) => {
                Cow::Owned(SourceOptions { uri: uri.clone(), ..SourceOptions::default() })
            }
        }
    }
}

impl From {
    /// The tables by name. One URI is the table `t`.
    pub(super) fn tables(&self) -> BTreeMap<String, SourceOptions> {
        match self {
            Self::Uri(uri) => {
                let options = SourceOptions { uri: uri.clone(), ..SourceOptions::default() };
                BTreeMap::from([("t".to_owned(), options)])
            }
            Self::Tables(tables) => tables
                .iter()
                .map(|(name, source)| (name.clone(), source.options().into_owned()))
                .collect(),
        }
    }
}

impl<'de> Deserialize<'de> for From {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;

        // Some hosts pass objects as text.
        if let Value::String(text) = &value
            && text.trim_start().starts_with('{')
        {
            value = serde_json::from_str(text).map_err(|_| {
                D::Error::custom("from is neither a URI nor an object of table names and URIs, such as {\"orders\":\"results://1\"}")
            })?;
        }

        match value {
            Value::String(uri) => Ok(Self::Uri(uri)),
            Value::Object(tables) => {
                let tables = tables.into_iter().map(|(name, source)| {
                    let source = source_of(&name, source).map_err(D::Error::custom)?;
                    Ok((name, source))
                });
                tables.collect::<Result<_, _>>().map(Self::Tables)
            }
            _ => Err(D::Error::custom("from is a URI, or an object of table names and URIs")),
        }
    }
}

fn source_of(name: &str, source: Value) -> Result<Source, String> {
    match source {
        Value::String(uri) => Ok(Source::Uri(uri)),
        source @ Value::Object(_) => match serde_json::from_value(source) {
            Ok(options) => Ok(Source::Options(options)),
            Err(error) => Err(format!("from {}: {error}", quoted(name))),
        },
        _ => Err(format!(
            "from {} is a URI, or an object such as {{\"uri\":\"results://1\",\"format\":\"csv\"}}",
            quoted(name)
        )),
    }
}

impl JsonSchema for From {
    fn schema_name() -> Cow<'static, str> {
        "From".into()
    }

    // Some hosts know neither references nor lists of types.
    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({ "type": "string" });
        json_schema!({
            "anyOf": [
                text,
                {
                    "type": "object",
                    "additionalProperties": {
                        "anyOf": [
                            text,
                            {
                                "type": "object",
                                "properties": {
                                    "uri": text,
                                    "format": {
                                        "type": "string",
                                        "enum": ["auto", "json", "ndjson", "csv", "tsv", "log"],
                                    },
                                    "rows": text,
                                    "pattern": text,
                                    "revision": { "type": "integer", "minimum": 1 },
                                    "delimiter": text,
                                    "header": { "type": "boolean" },
                                    "skip": { "type": "integer", "minimum": 0 },
                                    "comment": text,
                                    "nulls": { "type": "array", "items": text },
                                    "decimal": { "type": "string", "enum": [",", "."] },
                                    "encoding": text,
                                    "quote": text,
                                    "escape": text,
                                },
                                "required": ["uri"],
                                "additionalProperties": false,
                            },
                        ],
                    },
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn each_form_names_the_tables_and_is_written_as_it_was_read() {
        for (from, tables) in [
            (json!("x:1"), vec![("t", "x:1", None)]),
            (json!({ "a": "x:1", "b": "x:2" }), vec![("a", "x:1", None), ("b", "x:2", None)]),
            (
                json!({ "a": { "uri": "x:1", "rows": "/items" }, "b": "x:2" }),
                vec![("a", "x:1", Some("/items")), ("b", "x:2", None)],
            ),
            (
                json!({ "a": { "uri": "x:1", "delimiter": ";", "skip": 2, "nulls": ["-"] } }),
                vec![("a", "x:1", None)],
            ),
        ] {
            for written in [from.clone(), json!(from.to_string())] {
                if !from.is_object() && written != from {
                    continue;
                }
                let read: From = serde_json::from_value(written).unwrap();
                let named = read.tables();
                let named: Vec<_> = named
                    .iter()
                    .map(|(name, options)| (&**name, &*options.uri, options.rows.as_deref()))
                    .collect();

                assert_eq!(named, tables);
                assert_eq!(serde_json::to_value(&read).unwrap(), from);
            }
        }
    }

    #[test]
    fn another_form_is_an_error_that_shows_the_right_one() {
        for (from, expected) in [
            (json!(7), "from is a URI, or an object of table names and URIs"),
            (json!({ "a": 7 }), "from \"a\" is a URI, or an object such as {\"uri\""),
            (json!({ "a": { "rows": "/items" } }), "from \"a\": missing field `uri`"),
            (
                json!({ "a": { "uri": "x:1", "delimiter": "::" } }),
                "from \"a\": it is one ASCII character",
            ),
            (json!("{\"a\": "), "from is neither a URI nor an object"),
        ] {
            let error = serde_json::from_value::<From>(from).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
