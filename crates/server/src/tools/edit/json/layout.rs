//! How JSON is laid out: a change of a part keeps the layout of the rest.

use std::io;

use larder_records::record_lines;
use serde::Serialize;
use serde_json::{
    Serializer, Value,
    ser::{CompactFormatter, Formatter, PrettyFormatter},
};

/// The mark that begins some texts in UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A document as a value.
pub(super) struct Document {
    /// The lines of NDJSON are the items of a list.
    pub(super) value: Value,
    pub(super) layout: Layout,
    /// Whether the value is the whole text in this layout.
    pub(super) keeps_layout: bool,
}

/// How a document is written.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    has_mark: bool,
    shape: Shape,
    /// The white space at the end.
    end: String,
}

/// The lines of a document.
#[derive(Debug, Clone)]
enum Shape {
    OneLine(Separators),
    /// A value on each line.
    Lines(Separators),
    /// A record on each line.
    Records(Separators),
    /// Indented by this.
    Indented(String),
}

/// The text between values.
#[derive(Debug, Clone, Copy)]
enum Separators {
    /// `,` and `:`
    Compact,
    /// `, ` and `: `
    Spaced,
}

impl Document {
    /// Reads a document, which has a value on each line if `has_lines`, or if it is no single value.
    ///
    /// # Errors
    /// It is not JSON.
    pub(super) fn read(text: &str, has_lines: bool) -> Result<Self, String> {
        let json = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let by_lines = if has_lines { lines(json).ok() } else { None };
        let single = serde_json::from_str::<Value>(json).ok().filter(|_| by_lines.is_none());
        let (value, shapes) = match single {
            Some(value) => (value, shapes(json)),
            None => {
                let value = by_lines.map_or_else(|| lines(json), Ok)?;
                let both = [Separators::Compact, Separators::Spaced];
                (value, both.map(Shape::Lines).to_vec())
            }
        };

        let in_shape = |shape| Layout {
            has_mark: json.len() < text.len(),
            shape,
            end: json[json.trim_end().len()..].to_owned(),
        };
        let mut layouts = shapes.into_iter().map(in_shape);
        // Shapes are never empty.
        let first = layouts.next().unwrap_or_else(|| in_shape(Shape::OneLine(Separators::Compact)));
        if first.write(&value) == text {
            return Ok(Self { value, layout: first, keeps_layout: true });
        }

        let exact = layouts.find(|layout| layout.write(&value) == text);
        let keeps_layout = exact.is_some();
        Ok(Self { value, layout: exact.unwrap_or(first), keeps_layout })
    }
}

/// The values of NDJSON.
fn lines(text: &str) -> Result<Value, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let values = lines.map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    match values {
        Ok(values) if !values.is_empty() => Ok(Value::Array(values)),
        _ => Err("it is not JSON: change its text by edits.".to_owned()),
    }
}

/// The shapes that a value may have, the likeliest first.
fn shapes(text: &str) -> Vec<Shape> {
    let both = [Separators::Compact, Separators::Spaced];
    let mut lines = text.trim_end().lines().skip(1);
    let Some(second) = lines.next() else { return both.map(Shape::OneLine).to_vec() };

    let indent = &second[..second.len() - second.trim_start().len()];
    let indented = (!indent.is_empty()).then(|| Shape::Indented(indent.to_owned()));
    indented.into_iter().chain(both.map(Shape::Records)).collect()
}

impl Layout {
    /// Whether the document has a value on each line.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self.shape, Shape::Lines(_))
    }

    /// Whether the document is one line.
    pub(super) fn is_one_line(&self) -> bool {
        matches!(self.shape, Shape::OneLine(_))
    }

    /// The document with that value.
    pub(super) fn write(&self, value: &Value) -> String {
        let body = match &self.shape {
            Shape::OneLine(separators) => separators.write(value),
            Shape::Records(separators) => with_line_breaks(&separators.write(value)),
            Shape::Lines(separators) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let lines: Vec<_> = items.iter().map(|item| separators.write(item)).collect();
                lines.join("\n")
            }
            Shape::Indented(indent) => {
                formatted(value, PrettyFormatter::with_indent(indent.as_bytes()))
            }
        };

        let mark = if self.has_mark { BYTE_ORDER_MARK } else { "" };
        [mark, body.trim_end(), &self.end].concat()
    }
}

/// JSON with a record on each line.
pub(super) fn with_line_breaks(json: &str) -> String {
    String::from_utf8_lossy(&record_lines(json.as_bytes()).concat()).into_owned()
}

impl Separators {
    fn write(self, value: &Value) -> String {
        match self {
            Self::Compact => formatted(value, CompactFormatter),
            Self::Spaced => formatted(value, SpacedFormatter),
        }
    }
}

fn formatted(value: &Value, formatter: impl Formatter) -> String {
    let mut out = Vec::new();
    // Writing a value to memory cannot fail.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes `{"a": 1, "b": [2, 3]}`, as Python does.
struct SpacedFormatter;

impl Formatter for SpacedFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
