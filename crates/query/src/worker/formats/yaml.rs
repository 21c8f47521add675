//! YAML as JSON.

use larder_records::{
    Converted, Layout,
    notes::{Note, NoteKind},
    words::count,
};
use serde_json::Value;

/// The documents as JSON; several have a line each. `None` if they are no lists or objects.
pub(super) fn convert(bytes: &[u8]) -> Result<Option<Converted>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let problem = error.to_string();
        let first = problem.lines().next().unwrap_or_default();
        format!("it is not YAML: {}", larder_protocol::quote::shortened(first))
    })?;
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
    let kind = NoteKind::Repaired;
    let note = Note { kind, table: None, column: None, count: number, first: None, text: told };
    Ok(Some(Converted { layout, bytes, notes: vec![note] }))
}
