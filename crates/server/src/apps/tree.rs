//! The children of a JSON value, for a tree that is read as it is opened.

use larder_oauth::Owner;
use larder_protocol::json_size;
use larder_records::{Container, Pointer, RecordIndex, words::cut};
use larder_store::store::StoredResource;
use serde::Serialize;
use serde_json::Value;

use super::table::{PART_BYTES, READ_BYTES, inside, member, no_records};
use crate::handler::ToolError;

/// Smaller values are sent as they are, in bytes of JSON.
const WHOLE_BYTES: usize = 2_000;
/// The text that stands for a larger one, in bytes.
const EXCERPT_BYTES: usize = 120;
/// The beginning of a value that is too long to be read, in bytes.
const HEAD_BYTES: usize = 2_000;
/// The most of these in one part: each is found by a scan.
const MAX_LONG: usize = 4;

/// Children of one value.
#[derive(Debug, Serialize)]
pub(super) struct ChildWindow {
    /// `list`, `object` or `scalar`.
    container: Container,
    children: Vec<Child>,
    /// The number of the first child, from 0.
    offset: u64,
    total: u64,
}

/// One item or member.
#[derive(Debug, Serialize)]
struct Child {
    /// The key of a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(flatten)]
    shape: NodeShape,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum NodeShape {
    /// All of a small value.
    Whole { value: Value },
    /// A large one, whose children are read when it is opened.
    Large {
        r#type: &'static str,
        /// The number of items or members, or the bytes of a text, if they are counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<usize>,
        preview: String,
    },
}

/// Children from `offset` on.
pub(super) async fn window(
    caller: &Owner,
    found: &StoredResource,
    at: &Pointer,
    offset: u64,
    limit: u64,
) -> Result<ChildWindow, ToolError> {
    let index = found.record_index(caller, Some(at)).await;
    let index = index.map_err(|error| no_records(found, error))?;

    let mut children = Vec::new();
    let mut bytes = 0;
    let mut long = 0;
    let mut next = offset;
    let end = offset.saturating_add(limit).min(index.total());

    while next < end && long < MAX_LONG {
        let window = found.records(caller, &index, next, end - next, READ_BYTES).await;
        let window = window.map_err(|error| no_records(found, error))?;
        let mut read = Vec::new();
        if let Some(start) = window.too_long {
            long += 1;
            read.push(head(found, &index, start).await?);
        } else {
            let lines = window.text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            read.extend(lines.map(|line| child(&index, line)));
        }

        if read.is_empty() {
            break;
        }

        for child in read {
            bytes += json_size(&child) + 1;
            // A part has at least one child, or the next request would repeat this request.
            if bytes > PART_BYTES && !children.is_empty() {
                next = end;
                break;
            }
            children.push(child);
            next += 1;
        }
    }

    Ok(ChildWindow { container: index.container(), children, offset, total: index.total() })
}

fn child(index: &RecordIndex, line: &[u8]) -> Child {
    let (key, value) =
        if index.container() == Container::Object { member(inside(line)) } else { (None, line) };

    let shape = match serde_json::from_slice::<Value>(value) {
        Ok(value) => shape(value),
        Err(_) => large(value),
    };
    Child { key, shape }
}

fn shape(value: Value) -> NodeShape {
    if json_size(&value) <= WHOLE_BYTES {
        return NodeShape::Whole { value };
    }

    let (r#type, size) = match &value {
        Value::Array(items) => ("list", items.len()),
        Value::Object(members) => ("object", members.len()),
        Value::String(text) => ("text", text.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => ("scalar", 0),
    };
    let text = match &value {
        Value::String(text) => cut(text, HEAD_BYTES).to_owned(),
        other => cut(&other.to_string(), EXCERPT_BYTES).to_owned(),
    };

    NodeShape::Large { r#type, size: Some(size), preview: text }
}

/// The beginning of a value that was not read as a whole.
fn large(value: &[u8]) -> NodeShape {
    let text = String::from_utf8_lossy(value);
    let r#type = match value.first() {
        Some(b'[') => "list",
        Some(b'{') => "object",
        Some(b'"') => "text",
        _ => "scalar",
    };

    let bytes = if r#type == "text" { HEAD_BYTES } else { EXCERPT_BYTES };
    let preview = cut(text.trim_start_matches('"'), bytes).to_owned();
    NodeShape::Large { r#type, size: None, preview }
}

async fn head(found: &StoredResource, index: &RecordIndex, start: u64) -> Result<Child, ToolError> {
    let part = found.bytes_from(start, HEAD_BYTES).await?;
    let (key, value) = match index.container() {
        Container::Object => member(&part.bytes),
        Container::List | Container::Scalar => (None, &*part.bytes),
    };
    Ok(Child { key, shape: large(value) })
}
