//! Calls of the tools over the store, for the model to copy, and the size of a resource.

use larder_records::preview::words::count;
use larder_store::store::{Entry, Kind};
use serde_json::{Value, json};

/// A tool call: `read_resource {"uri":"…"}`.
pub(crate) fn call(tool: &str, arguments: &Value) -> String {
    format!("{tool} {arguments}")
}

/// The arguments of `read_resource` for the first `lines` of a text, or for the
/// first bytes of binary content.
pub(crate) fn read_arguments(uri: &str, kind: Kind, lines: u64) -> Value {
    match kind {
        Kind::Text => json!({ "uri": uri, "offset": 0, "limit": lines }),
        Kind::Binary => json!({ "uri": uri, "unit": "bytes" }),
    }
}

/// The type and size of a resource: `text/csv, 12,345 bytes, 67 lines`.
pub(crate) fn type_and_size(entry: &Entry) -> String {
    let bytes = count(entry.size, "byte");
    match entry.kind {
        Kind::Text => format!("{}, {bytes}, {}", entry.mime_type, count(entry.lines, "line")),
        Kind::Binary => format!("{}, {bytes}, binary", entry.mime_type),
    }
}
