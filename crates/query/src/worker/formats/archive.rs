//! Zip archives: a workbook, or a member.

use std::{
    borrow::Cow,
    io::{Cursor, Read},
};

use larder_records::{
    Conversion, Converted, DecodeFault, Dialect, Layout, TableOptions, TextDecoder, TextEncoding,
    preview::{Format, Sample},
};
use zip::ZipArchive;

use super::{chosen, listed, part_name, part_pointer, workbook};

/// The most bytes of a member, uncompressed.
const MAX_MEMBER_BYTES: u64 = 128 << 20;

/// A member as records: the named one, or the only one.
pub(super) fn convert(
    bytes: &[u8],
    part: Option<&str>,
    options: &TableOptions,
) -> Result<Converted, String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| format!("it is no zip archive that can be read: {error}"))?;
    let names: Vec<_> = archive.file_names().flatten().map(Cow::into_owned).collect();

    let is_workbook = |name: &String| {
        name.starts_with("xl/workbook.") || name == "content.xml" || name == "xl/workbook.bin"
    };
    if names.iter().any(is_workbook) {
        return workbook::convert(bytes, part, options);
    }

    let is_file = |name: &&String| !name.ends_with('/') && !name.starts_with("__MACOSX/");
    let files: Vec<_> = names.iter().filter(is_file).cloned().collect();
    let name = match (part.filter(|part| !part.is_empty()).map(part_name), &files[..]) {
        (Some(name), files) if files.contains(&name) => name,
        (Some(name), files) => {
            return Err(format!("it has no member {name}. Members: {}", listed(files)));
        }
        (None, [only]) => only.clone(),
        (None, []) => return Err("it is an archive without members".to_owned()),
        (None, files) => {
            return Err(format!(
                "it is a zip archive. Name a member by rows, such as \"{}\". Members: {}",
                part_pointer(&files[0]),
                listed(files)
            ));
        }
    };

    let member = archive.by_name(&name).map_err(|error| format!("{name}: {error}"))?;
    let mut content = Vec::new();
    let read = member.take(MAX_MEMBER_BYTES + 1).read_to_end(&mut content);
    read.map_err(|error| format!("{name}: {error}"))?;
    if content.len() as u64 > MAX_MEMBER_BYTES {
        return Err(format!(
            "{name} is longer than {MAX_MEMBER_BYTES} bytes, the most that is read of a member"
        ));
    }

    let mut converted = of_member(&name, content, options)?;
    let told = format!("read from the member {name}");
    converted.notes.insert(0, chosen(told));
    Ok(converted)
}

/// The records of a member, by what its bytes and its name show.
fn of_member(name: &str, content: Vec<u8>, options: &TableOptions) -> Result<Converted, String> {
    let lower = name.to_ascii_lowercase();
    if [".xlsx", ".xls", ".xlsb", ".ods"].iter().any(|suffix| lower.ends_with(suffix)) {
        return workbook::convert(&content, None, options);
    }

    let mime_type = match lower.rsplit('.').next() {
        Some("csv") => Some("text/csv"),
        Some("tsv") => Some("text/tab-separated-values"),
        Some("ndjson" | "jsonl") => Some("application/x-ndjson"),
        Some("yaml" | "yml") => Some("application/yaml"),
        Some("html" | "htm") => Some("text/html"),
        _ => None,
    };

    let content = match TextEncoding::detect(&content, mime_type) {
        None => return Err(format!("{name} is binary and has no rows")),
        Some(encoding) if encoding.is_plain() => content,
        Some(encoding) => {
            let problem = |fault: DecodeFault| format!("{name}: {fault}");
            let mut decoder = TextDecoder::new(encoding, MAX_MEMBER_BYTES);
            let mut text = Vec::new();
            let mut rest = &content[..];
            while !rest.is_empty() {
                let read = decoder.step(rest, &mut text).map_err(problem)?;
                rest = &rest[read..];
            }
            decoder.finish(&mut text).map_err(problem)?;
            text
        }
    };

    let conversion = Conversion::of_type(mime_type.unwrap_or_default(), &content)
        .or_else(|| Conversion::of_json(&content, true))
        .or_else(|| Conversion::of_text(&content, true));
    if let Some(conversion) = conversion
        && let Some(converted) = super::convert(conversion, &content, None, options)?
    {
        return Ok(converted);
    }

    let sample = Sample {
        mime_type,
        is_text: true,
        size: content.len() as u64,
        lines: None,
        head: &content,
        tail: &content,
        value: None,
    };
    let layout = match Format::detect(&sample) {
        Format::Csv(dialect) => Layout::Rows(options.apply(dialect)),
        _ if options.make_a_table() => Layout::Rows(options.apply(Dialect::delimited(b','))),
        Format::Json => Layout::Json,
        Format::JsonLines => Layout::JsonLines,
        _ => Layout::Log,
    };
    Ok(Converted { layout, bytes: content, notes: Vec::new(), is_for_tables: false })
}
