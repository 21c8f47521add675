//! [`Conversion`]: how content that is no text with records becomes one. The stored bytes stay as
//! they are.

use serde::{Deserialize, Serialize};

use super::{
    columns_and_rows,
    loose::{self, Converted},
    markdown,
    media_type::essence,
    preview::Sample,
};

/// A change of whole content into JSON, NDJSON or CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conversion {
    /// JSON with faults, or within other text.
    LooseJson,
    /// A JSON object with the names of columns and lists of values apart.
    ColumnsAndRows,
    /// A JSON object whose only member is JSON as text.
    WrappedJson,
    /// A text with a table in Markdown.
    Markdown,
    /// YAML.
    Yaml,
    /// A page with tables.
    Html,
    /// A zip archive, which a workbook may be.
    Archive,
    /// A workbook of another kind than a zip archive.
    Workbook,
}

impl Conversion {
    /// The conversion for tables that JSON calls for which a strict parser reads, judging by its
    /// first bytes.
    pub fn of_strict_json(head: &[u8]) -> Option<Self> {
        if loose::seems_wrapped(head) {
            return Some(Self::WrappedJson);
        }
        columns_and_rows::seems_so(head).then_some(Self::ColumnsAndRows)
    }

    /// The conversion that JSON needs, judging by its first bytes. `is_whole`: they are all.
    pub fn of_json(head: &[u8], is_whole: bool) -> Option<Self> {
        if loose::seems_wrapped(head) {
            return Some(Self::WrappedJson);
        }

        let sample = Sample::of_text(head, is_whole);
        let is_strict = super::preview::is_json_value(&sample);
        (!is_strict && loose::seems_json(head, is_whole)).then_some(Self::LooseJson)
    }

    /// The conversion that the media type or the first bytes of a text call for.
    pub fn of_type(mime_type: &str, head: &[u8]) -> Option<Self> {
        let essence = essence(mime_type);
        let start = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
        let start = start[..start.len().min(64)].to_ascii_lowercase();
        let begins = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| start.starts_with(prefix));

        let is_html = essence == "text/html"
            || essence == "application/xhtml+xml"
            || begins(&[b"<!doctype html", b"<html", b"<table"]);
        match () {
            () if is_html => Some(Self::Html),
            () if essence.ends_with("yaml") || begins(&[b"---\n", b"---\r\n", b"%yaml"]) => {
                Some(Self::Yaml)
            }
            () => None,
        }
    }

    /// The conversion of content that is no text, judging by its first bytes.
    pub fn of_bytes(head: &[u8]) -> Option<Self> {
        match head {
            [b'P', b'K', 3, 4, ..] => Some(Self::Archive),
            [0xD0, 0xCF, 0x11, 0xE0, ..] => Some(Self::Workbook),
            _ => None,
        }
    }

    /// Advice about content that no conversion reads, judging by its first bytes.
    pub fn advice(head: &[u8]) -> Option<&'static str> {
        match head {
            [b'P', b'A', b'R', b'1', ..] => Some(
                "It is Parquet: store it as CSV or NDJSON, which DuckDB writes: duckdb -csv -c \"FROM 'x.parquet'\"",
            ),
            [b'%', b'P', b'D', b'F', ..] => {
                Some("It is a PDF: store its text, which pdftotext writes")
            }
            [b'S', b'Q', b'L', b'i', b't', b'e', b' ', ..] => Some(
                "It is a database of SQLite: store its tables as CSV, which sqlite3 writes: sqlite3 -csv -header",
            ),
            [b'B', b'Z', b'h', ..] | [0xFD, b'7', b'z', b'X', b'Z', ..] => Some(
                "It is compressed by bzip2 or xz: decompress it, or compress it by gzip or zstd",
            ),
            _ => None,
        }
    }

    /// The name of the format, for a description.
    pub fn name(self) -> &'static str {
        match self {
            Self::LooseJson | Self::ColumnsAndRows | Self::WrappedJson => "JSON",
            Self::Markdown => "Markdown",
            Self::Yaml => "YAML",
            Self::Html => "HTML",
            Self::Archive => "a zip archive or a workbook",
            Self::Workbook => "a workbook",
        }
    }

    /// Whether only queries change the content, in processes of their own.
    pub fn is_for_queries(self) -> bool {
        matches!(self, Self::Yaml | Self::Html | Self::Archive | Self::Workbook)
    }

    /// Whether the content has parts, of which a query names one by `rows`: sheets, members of an
    /// archive, or tables of a page.
    pub fn has_parts(self) -> bool {
        matches!(self, Self::Html) || self.is_of_bytes()
    }

    /// Whether the content is no text.
    pub fn is_of_bytes(self) -> bool {
        matches!(self, Self::Archive | Self::Workbook)
    }

    /// The conversion that text without records needs, judging by its first bytes.
    pub fn of_text(head: &[u8], is_whole: bool) -> Option<Self> {
        let text = Sample::of_text(head, is_whole).text();
        markdown::seems_table(text).then_some(Self::Markdown)
    }

    /// Whether jq gets the content as it is: a filter names its members.
    pub fn is_for_tables(self) -> bool {
        matches!(self, Self::ColumnsAndRows | Self::WrappedJson)
    }

    /// The changed content for jq, in which a filter names the members as they are.
    pub fn convert_for_filters(self, text: &[u8]) -> Option<Converted> {
        match self {
            Self::LooseJson => loose::repair(text),
            _ if self.is_for_tables() => None,
            _ => self.convert(text),
        }
    }

    /// The changed content for tables; `None` if it is not what it seemed, or [for
    /// queries](Self::is_for_queries).
    pub fn convert(self, text: &[u8]) -> Option<Converted> {
        match self {
            Self::LooseJson | Self::WrappedJson => {
                let repaired = loose::repair(text)?;
                if self == Self::WrappedJson && repaired.notes.is_empty() {
                    return None;
                }
                // The repaired JSON may have columns and rows.
                Some(match columns_and_rows::convert(&repaired.bytes) {
                    Some(mut table) => {
                        table.notes.splice(0..0, repaired.notes);
                        table
                    }
                    None => repaired,
                })
            }
            Self::ColumnsAndRows => columns_and_rows::convert(text),
            Self::Yaml | Self::Html | Self::Archive | Self::Workbook => None,
            Self::Markdown => markdown::convert(std::str::from_utf8(text).ok()?),
        }
    }
}
