//! Formats that are read as a whole by a library: workbooks, YAML, HTML and archives. Only the
//! confined process reads them.

mod archive;
mod html;
mod workbook;
mod yaml;

use larder_records::{
    Conversion, Converted, TableOptions,
    notes::{Note, NoteKind},
};

/// The changed content. `part` names a sheet, a table or a member, as `rows` of the query does, and
/// `options` say how its rows are read. `None` if the content is not what it seemed.
///
/// # Errors
/// Why the content cannot be read, for a model.
pub(super) fn convert(
    conversion: Conversion,
    bytes: &[u8],
    part: Option<&str>,
    options: &TableOptions,
) -> Result<Option<Converted>, String> {
    match conversion {
        Conversion::Archive => archive::convert(bytes, part, options).map(Some),
        Conversion::Workbook => workbook::convert(bytes, part, options).map(Some),
        Conversion::Yaml => yaml::convert(bytes),
        Conversion::Html => html::convert(bytes, part, options),
        other => Ok(other.convert(bytes)),
    }
}

/// A note about a choice of so many records.
fn chosen(text: String) -> Note {
    Note { kind: NoteKind::Chosen, table: None, column: None, count: 1, first: None, text }
}

/// The name of a part in a JSON Pointer of one segment.
fn part_name(pointer: &str) -> String {
    let name = pointer.strip_prefix('/').unwrap_or(pointer);
    name.replace("~1", "/").replace("~0", "~")
}

/// The JSON Pointer of one segment that names a part.
fn part_pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The names of parts in a sentence.
fn listed(names: &[String]) -> String {
    const LISTED: usize = 12;
    let mut listed = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED {
        listed += ", …";
    }
    listed
}

/// Rows of fields as CSV.
fn csv(rows: impl IntoIterator<Item = Vec<String>>) -> Option<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).ok()?;
    }
    writer.into_inner().ok()
}
