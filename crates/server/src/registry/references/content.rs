//! Reads the content of a reference and gives it the form that the tool expects.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::BytesMut;
use futures_util::StreamExt;
use larder_oauth::Identity;
use larder_protocol::{has_at_most_values, json_size};
use larder_records::words::count;
use larder_runtime::compute::Compute;
use larder_store::store::{ContentStream, Kind, StoreError};
use serde_json::Value;

use super::{
    expected::Expected,
    form::{Form, Reference},
    select::select,
};
use crate::{
    handler::{ReadContent, Scope},
    registry::definition::Registry,
};

/// The most JSON values in content that is parsed. Small values need many times
/// their bytes in memory.
const MAX_VALUES: usize = 1_000_000;

/// The limits on the content that references bring into one call.
pub(super) struct ReferenceLimits {
    /// `limits.ref_bytes`.
    pub(super) max_bytes: u64,
    /// The bytes that earlier references have left of `max_bytes`.
    pub(super) left: u64,
    /// `limits.read_bytes`: the most bytes of content of which a part is selected.
    pub(super) read_bytes: u64,
}

/// The limit on one piece of content.
#[derive(Clone, Copy)]
struct ContentLimit {
    setting: &'static str,
    max_bytes: u64,
    /// The bytes that earlier references have left of `max_bytes`.
    left: u64,
}

impl ReferenceLimits {
    /// The limit on content that becomes an argument.
    fn of_argument(&self) -> ContentLimit {
        ContentLimit { setting: "limits.ref_bytes", max_bytes: self.max_bytes, left: self.left }
    }

    /// The limit on content of which a part is selected.
    fn of_source(&self) -> ContentLimit {
        let max_bytes = self.read_bytes;
        ContentLimit { setting: "limits.read_bytes", max_bytes, left: max_bytes }
    }
}

/// Content of a reference.
struct ReferencedContent {
    kind: Kind,
    mime_type: String,
    bytes: Vec<u8>,
}

impl Registry {
    /// The value that replaces a reference.
    ///
    /// # Errors
    /// The fault, for the model.
    pub(super) async fn resolve(
        &self,
        reference: &Reference,
        expected: Expected,
        scope: &Arc<Scope>,
        limits: &mut ReferenceLimits,
    ) -> Result<Value, String> {
        let uri = &reference.uri;
        let limit = match reference.select {
            Some(_) => limits.of_source(),
            None => limits.of_argument(),
        };

        let read = self.read_reference(uri, limit, scope).await?;
        let value = self::value(read, reference.clone(), expected, &scope.identity).await?;

        let size = match &value {
            Value::String(text) => text.len() as u64,
            // Counted as it is sent.
            other => json_size(other) as u64,
        };

        if size > limits.left {
            let uri = format!("{uri} as an argument");
            return Err(too_large(&uri, Some(size), limits.of_argument(), None));
        }

        limits.left -= size;
        Ok(value)
    }

    /// Reads a stored resource at one revision, or a part of it, or another
    /// resource of the server.
    async fn read_reference(
        &self,
        uri: &str,
        limit: ContentLimit,
        scope: &Arc<Scope>,
    ) -> Result<ReferencedContent, String> {
        self.check_scopes(&scope.identity, &"resources/read", || self.uri_scopes(uri))
            .map_err(|e| e.to_string())?;

        let missing = match scope.store.read_named(&scope.identity, uri).await {
            Ok(found) => {
                let entry = &found.entry;
                if entry.size > limit.left {
                    let lines = (entry.kind == Kind::Text).then_some(entry.lines);
                    return Err(too_large(uri, Some(entry.size), limit, lines));
                }

                let bytes = found.bytes().await.map_err(|error| describe(&error))?;
                return Ok(ReferencedContent {
                    kind: entry.kind,
                    mime_type: entry.mime_type.clone(),
                    bytes: bytes.into(),
                });
            }
            Err(missing) => missing,
        };

        match Box::pin(self.read(uri, Arc::clone(scope))).await {
            None => Err(describe(&missing)),
            Some(read) => {
                let ReadContent { content, mime_type, .. } =
                    read.and_then(|contents| contents.only(uri)).map_err(|e| e.to_string())?;
                let mime_type = mime_type.unwrap_or_else(|| content.mime_type().to_owned());
                let (kind, chunks) = content.into_parts();
                let bytes = gather(chunks, limit.left)
                    .await?
                    .ok_or_else(|| too_large(uri, None, limit, None))?;
                Ok(ReferencedContent { kind, mime_type, bytes })
            }
        }
    }
}

/// The whole content; `None` if it is longer than `max`.
async fn gather(mut chunks: ContentStream, max: u64) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            tracing::error!(%error, "the content of a reference cannot be read");
            "it cannot be read.".to_owned()
        })?;
        if (bytes.len() + chunk.len()) as u64 > max {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }

    Ok(Some(bytes.into()))
}

fn describe(error: &StoreError) -> String {
    if error.is_internal() {
        tracing::error!(%error, "a reference cannot be read");
    }
    error.to_string()
}

/// The error for content over a limit. `size` is absent if the content was not read to its end,
/// `lines` if it is no text.
fn too_large(uri: &str, size: Option<u64>, limit: ContentLimit, lines: Option<u64>) -> String {
    let ContentLimit { setting, max_bytes, left } = limit;

    let has = match size {
        Some(size) => count(size, "byte"),
        None => format!("more than {}", count(left, "byte")),
    };

    let max = count(max_bytes, "byte");
    let is = if left < max_bytes {
        let left = count(left, "byte");
        format!("and other references have left {left} of {setting}, which is {max}")
    } else {
        format!("{setting} is {max}")
    };

    format!("{uri} has {has}, {is}{}.", smaller_part(uri, size, limit, lines).unwrap_or_default())
}

/// The hint how to refer to a part that fits.
fn smaller_part(
    uri: &str,
    size: Option<u64>,
    limit: ContentLimit,
    lines: Option<u64>,
) -> Option<String> {
    if limit.setting == "limits.read_bytes" {
        let hint = ": store a part of it with query_resource and \"into\", and refer to that";
        return Some(hint.to_owned());
    }

    let size = size?;
    let lines = lines.filter(|_| !uri.contains('?') && limit.left > 0)?;
    // A little less than its share, because lines differ.
    let fitting = u128::from(lines) * u128::from(limit.left) * 9 / 10 / u128::from(size.max(1));
    Some(match fitting {
        0 => format!(": add ?bytes=0-{}", limit.left - 1),
        fitting => format!(": add ?lines=1-{fitting}"),
    })
}

/// The content in the form that the reference asks for, or that the tool
/// expects.
async fn value(
    read: ReferencedContent,
    reference: Reference,
    expected: Expected,
    caller: &Identity,
) -> Result<Value, String> {
    let bytes = read.bytes.len();
    let converted =
        Compute::run(caller.owner().as_str(), bytes, move || convert(read, &reference, expected));
    converted.done().await.map_err(|busy| busy.to_string())?
}

fn convert(
    read: ReferencedContent,
    reference: &Reference,
    expected: Expected,
) -> Result<Value, String> {
    let uri = &reference.uri;
    let ReferencedContent { kind, mime_type, bytes } = read;

    let parse = |bytes: &[u8]| {
        if !has_at_most_values(bytes, MAX_VALUES) {
            return Err(format!(
                "{uri} has more than {MAX_VALUES} JSON values: store a part of it with query_resource and \"into\", and refer to that."
            ));
        }
        serde_json::from_slice::<Value>(bytes).map_err(|_| format!("{uri} is not JSON."))
    };

    if let Some(expression) = &reference.select {
        let whole = parse(&bytes)?;
        let selected = select(&whole, expression).map_err(|problem| format!("{uri}: {problem}"))?;
        return Ok(match reference.form {
            None if expected.takes_as_text(&selected) => Value::String(as_text(selected)),
            None | Some(Form::Json) => selected,
            Some(Form::Text) => Value::String(as_text(selected)),
            Some(form) => encoded(form, as_text(selected).as_bytes(), "text/plain").into(),
        });
    }

    let is_json = || mime_type == "application/json" || mime_type.ends_with("+json");
    let form = reference.form.unwrap_or(match (expected.text, expected.json) {
        (true, _) if kind == Kind::Binary && expected.base64 => Form::Base64,
        (false, true) => Form::Json,
        (false, false) if is_json() => Form::Json,
        _ => Form::Text,
    });

    match form {
        Form::Json => parse(&bytes),
        Form::Text => String::from_utf8(bytes).map(Value::String).map_err(|_| {
            format!("{uri} is binary: use {{\"$larder\": \"{uri}\", \"as\": \"base64\"}} if the tool takes base64.")
        }),
        Form::Base64 | Form::Data => Ok(encoded(form, &bytes, &mime_type).into()),
    }
}

fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn encoded(form: Form, bytes: &[u8], mime_type: &str) -> String {
    let base64 = BASE64_STANDARD.encode(bytes);
    match form {
        Form::Data => format!("data:{mime_type};base64,{base64}"),
        _ => base64,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::references::expected::Scalars;

    fn resolved(
        content: &[u8],
        kind: Kind,
        reference: &Value,
        expected: Expected,
    ) -> Result<Value, String> {
        let reference = super::super::form::read(reference).expect("a reference")?;
        let mime_type = if content.starts_with(b"{") { "application/json" } else { "text/plain" };
        convert(
            ReferencedContent { kind, mime_type: mime_type.into(), bytes: content.to_vec() },
            &reference,
            expected,
        )
    }

    #[test]
    fn the_error_for_large_content_names_the_limit_and_a_part_that_fits() {
        let limits = ReferenceLimits { max_bytes: 1_000, left: 400, read_bytes: 5_000 };
        let untouched = ReferenceLimits { left: 1_000, ..limits };
        let argument = limits.of_argument();

        for (error, expected) in [
            (
                too_large("a:b", Some(2_000), untouched.of_argument(), Some(200)),
                "a:b has 2,000 bytes, limits.ref_bytes is 1,000 bytes: add ?lines=1-90.",
            ),
            (
                too_large("a:b", Some(500), argument, Some(1)),
                "a:b has 500 bytes, and other references have left 400 bytes of limits.ref_bytes, which is 1,000 bytes: add ?bytes=0-399.",
            ),
            (
                too_large("a:b", None, untouched.of_argument(), None),
                "a:b has more than 1,000 bytes, limits.ref_bytes is 1,000 bytes.",
            ),
            (
                too_large("a:b", Some(6_000), limits.of_source(), Some(9)),
                "a:b has 6,000 bytes, limits.read_bytes is 5,000 bytes: store a part of it with query_resource and \"into\", and refer to that.",
            ),
        ] {
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn content_takes_the_form_that_the_tool_expects() {
        let text = Expected { text: true, ..Expected::default() };
        let object = Expected { json: true, ..Expected::default() };

        let any = Expected::default();
        let json_text: &[u8] = br#"{"a": [1, "x"]}"#;
        let parsed = json!({ "a": [1, "x"] });
        let whole = json!("{{a:b}}");
        let with = |select: &str| json!({ "$larder": "a:b", "select": select });

        for (content, reference, expected, value) in [
            (json_text, whole.clone(), text, json!("{\"a\": [1, \"x\"]}")),
            (json_text, whole.clone(), object, parsed.clone()),
            (json_text, whole.clone(), any, parsed),
            (b"plain", whole.clone(), any, json!("plain")),
            (json_text, with("/a/0"), object, json!(1)),
            (json_text, with("/a/0"), text, json!("1")),
            (json_text, with("$.a[1]"), any, json!("x")),
            (b"plain", json!({ "$larder": "a:b", "as": "base64" }), text, json!("cGxhaW4=")),
            (
                b"plain",
                json!({ "$larder": "a:b", "as": "data" }),
                text,
                json!("data:text/plain;base64,cGxhaW4="),
            ),
        ] {
            assert_eq!(resolved(content, Kind::Text, &reference, expected), Ok(value));
        }

        let optional =
            Expected { json: true, scalars: Scalars { null: true, ..Scalars::default() }, ..text };
        let either = Expected {
            json: true,
            scalars: Scalars { number: true, ..Scalars::default() },
            ..text
        };
        for (select, expected, value) in [
            ("/a", optional, json!("[1,\"x\"]")),
            ("/a/0", optional, json!("1")),
            ("/a/1", optional, json!("x")),
            ("/a/0", either, json!(1)),
            ("", either, json!("{\"a\":[1,\"x\"]}")),
        ] {
            let given = resolved(json_text, Kind::Text, &with(select), expected);
            assert_eq!(given, Ok(value), "{select}");
        }

        let declared = Expected { base64: true, ..text };
        let bytes: &[u8] = &[255, 0];
        assert_eq!(resolved(bytes, Kind::Binary, &whole, declared), Ok(json!("/wA=")));
        let refused = resolved(bytes, Kind::Binary, &whole, text);
        assert!(refused.is_err_and(|problem| problem.contains("is binary")));

        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        let refused = resolved(many.as_bytes(), Kind::Text, &with("/0"), any);
        assert!(refused.is_err_and(|problem| problem.contains("query_resource")));

        let refused = resolved(b"plain", Kind::Text, &whole, object);
        assert_eq!(refused, Err("a:b is not JSON.".to_owned()));
    }
}
