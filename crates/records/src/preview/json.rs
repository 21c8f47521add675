//! Facts about JSON: its size and its shape.

use serde_json::{Value, value::RawValue};

use super::{Sample, estimate, shape::ValueShape};
use crate::loose;
use crate::words::{count, cut, name_of, number};

/// The maximum number of JSON lines that are parsed.
const MAX_LINES: usize = 200;
/// The depth of values that are parsed; the parser refuses a few levels more.
const MAX_DEPTH: usize = 100;

/// Whether the content is one JSON value, judging by the sample.
pub(crate) fn is_value(sample: &Sample<'_>) -> bool {
    let text = sample.text();
    // A single number or word is shown as text.
    text.trim_start().starts_with(['{', '[']) && Parsed::new(sample, text).is_some()
}

/// Whether each line is a JSON object or list, and there is more than one.
pub(super) fn is_lines(sample: &Sample<'_>) -> bool {
    let lines = lines(sample);
    let good = lines.iter().filter(|line| line.is_some()).count();
    let bad = lines.len() - good;

    // A broken line hides no others.
    good > 1 && (bad == 0 || bad == 1 || bad * 5 <= good)
}

/// The values of the first complete lines; `None` for a line that is not a JSON object or list.
/// Ends where most lines are none.
fn lines(sample: &Sample<'_>) -> Vec<Option<Value>> {
    let text = sample.text();
    let complete =
        if sample.is_whole() { text } else { text.rsplit_once('\n').map_or("", |t| t.0) };
    let lines = complete.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES);

    let mut values = Vec::new();
    let mut bad = 0;
    for line in lines {
        let value =
            Some(line).filter(|line| line.trim_start().starts_with(['{', '['])).and_then(parse);

        bad += usize::from(value.is_none());
        values.push(value);
        if bad > 1 && bad * 2 > values.len() {
            break;
        }
    }

    values
}

/// Facts about a JSON value, in about `budget` bytes each.
pub(super) fn facts(sample: &Sample<'_>, budget: usize) -> Vec<String> {
    let parsed;
    let (value, open, parsed_bytes) = match sample.value {
        Some(value) => (value, 0, None),
        None => match Parsed::new(sample, sample.text()) {
            Some(Parsed { value, open, bytes }) => {
                parsed = value;
                (&parsed, open, (open > 0).then_some(bytes))
            }
            None => return Vec::new(),
        },
    };

    let summary = match value {
        Value::Array(items) => match parsed_bytes {
            None => format!("a list of {}", count(items.len() as u64, "item")),
            // No item ends in the sample, so nothing says how many there are.
            Some(_) if open > 1 => {
                format!("a list whose first item is longer than {}", sample.description())
            }
            Some(bytes) => {
                let total = estimate(items.len(), bytes, sample.size);
                format!(
                    "a list of {total} items by the size of the first {}",
                    number(items.len() as u64)
                )
            }
        },
        Value::Object(members) => {
            // The sample ends within the last member.
            let cut = if open > 1 { members.len() - 1 } else { usize::MAX };
            let members_shown = members.iter().enumerate().take(12);
            let named: Vec<_> = members_shown
                .map(|(index, (name, value))| member(name, value, index == cut))
                .collect();
            let unlisted = members.len().saturating_sub(12);
            let more = if unlisted > 0 { format!(", … {unlisted} more") } else { String::new() };
            let caveat = if parsed_bytes.is_some() { "; there may be more members" } else { "" };

            format!("an object with {}{more}{caveat}", named.join(", "))
        }
        _ => "a single value".to_owned(),
    };

    let mut shape = ValueShape::new(value, open).to_string();
    if shape.len() > budget {
        shape = format!("{}…", cut(&shape, budget));
    }

    let from = match parsed_bytes {
        None => String::new(),
        Some(_) => format!(" (from {}; N+ means at least N)", sample.description()),
    };

    vec![format!("JSON: {}", cut(&summary, budget.max(80))), format!("Shape{from}: {shape}")]
}

/// A member of the outermost object: its name and the type of its value.
fn member(name: &str, value: &Value, is_cut: bool) -> String {
    let name = name_of(name, 60);
    match value {
        Value::Array(items) if is_cut => {
            format!("{name} (list of {} or more)", number(items.len() as u64))
        }
        Value::Array(items) => format!("{name} (list of {})", number(items.len() as u64)),
        Value::Object(_) => format!("{name} (object)"),
        _ => name.into_owned(),
    }
}

/// Facts about JSON that needs repair.
pub(super) fn facts_of_loose(sample: &Sample<'_>, budget: usize) -> Vec<String> {
    let refused =
        "JSON that a strict parser refuses; describe_resource and query_resource repair it";
    let Some(converted) = loose::repair(sample.head).filter(|_| sample.is_whole()) else {
        return vec![refused.to_owned()];
    };

    let told: Vec<_> = converted.notes.into_iter().map(|note| note.text).collect();
    let text = String::from_utf8_lossy(&converted.bytes);
    let values: Vec<Value> = text.lines().take(MAX_LINES).filter_map(parse).collect();
    let mut shape = ValueShape::combined(values.iter()).to_string();
    if shape.len() > budget {
        shape = format!("{}…", cut(&shape, budget));
    }

    let mut told = told.join("; ");
    if told.is_empty() {
        told.push_str("deeply nested");
    }
    vec![format!("JSON, repaired where records are read: {told}"), format!("Shape: {shape}")]
}

/// Facts about NDJSON, its shape cut to `budget` bytes.
pub(super) fn facts_of_lines(sample: &Sample<'_>, budget: usize) -> Vec<String> {
    let values: Vec<_> = lines(sample).into_iter().flatten().collect();

    let records = match sample.lines {
        Some(lines) => count(lines, "line"),
        None => "an unknown number of lines".to_owned(),
    };

    let records = format!("JSON, one value a line: {records}");
    // The first line may be longer than what is read of it.
    if values.is_empty() {
        return vec![records];
    }

    let mut shape = ValueShape::combined(values.iter()).to_string();
    if shape.len() > budget {
        shape = format!("{}…", cut(&shape, budget));
    }

    let parsed = count(values.len() as u64, "line");
    vec![records, format!("Shape (from the first {parsed}): {shape}")]
}

/// The value in a sample, which may be the start of a larger value.
struct Parsed {
    value: Value,
    /// The number of outer containers that continue after the sample.
    open: usize,
    /// The number of bytes that were parsed.
    bytes: usize,
}

impl Parsed {
    fn new(sample: &Sample<'_>, text: &str) -> Option<Self> {
        if sample.is_whole() {
            let value = parse(text)?;
            return Some(Self { value, open: 0, bytes: text.len() });
        }

        let (end, closers) = last_complete_item(text)?;
        let mut closed = text[..end].to_owned();
        closed.extend(closers.iter().rev().map(|b| char::from(*b)));
        let value = parse(&closed)?;

        Some(Self { value, open: closers.len(), bytes: end })
    }
}

/// A value, whose lists and objects are empty where they are nested too deeply for the parser.
fn parse(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    // The parser of raw values has no limit of its depth.
    serde_json::from_str::<&RawValue>(text).ok()?;
    serde_json::from_str(&without_depth(text)).ok()
}

/// JSON without what is in lists and objects deeper than [`MAX_DEPTH`].
fn without_depth(json: &str) -> String {
    let mut shallow = Vec::new();
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;

    for byte in json.bytes() {
        let is_bracket = !in_string && matches!(byte, b'[' | b'{' | b']' | b'}');
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if is_bracket => depth += 1,
            _ => {}
        }
        if depth <= MAX_DEPTH || (is_bracket && depth == MAX_DEPTH + 1) {
            shallow.push(byte);
        }
        if is_bracket && matches!(byte, b']' | b'}') {
            depth = depth.saturating_sub(1);
        }
    }
    String::from_utf8_lossy(&shallow).into_owned()
}

/// The end of the last complete item, and the brackets that close the open
/// containers there. Prefers items of the outermost list, because a record that
/// is cut would seem to lack its last members.
fn last_complete_item(text: &str) -> Option<(usize, Vec<u8>)> {
    // Each open container: its closing bracket and the offset of its last comma.
    let mut open: Vec<(u8, Option<usize>)> = Vec::new();
    let mut in_string = false;
    let mut escaped = false;

    for (offset, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }

        match byte {
            b'"' => in_string = true,
            b'{' => open.push((b'}', None)),
            b'[' => open.push((b']', None)),
            b'}' | b']' => {
                open.pop()?;
            }
            b',' => open.last_mut()?.1 = Some(offset),
            _ => {}
        }
    }

    let outermost_list = open.iter().position(|(close, comma)| *close == b']' && comma.is_some());
    let level = outermost_list.or_else(|| open.iter().rposition(|(_, comma)| comma.is_some()))?;
    let end = open[level].1?;

    Some((end, open[..=level].iter().map(|(close, _)| *close).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_too_deep_are_parsed_without_their_depth() {
        for depth in [1, 99, 100, 101, 127, 128, 500] {
            let deep = format!("{}\"]\\\"[\"{}", "[".repeat(depth), "]".repeat(depth));
            let value = parse(&format!("{{\"a\":1,\"d\":{deep},\"z\":[2]}}"));
            let value = value.unwrap_or_default();
            assert_eq!((&value["a"], &value["z"][0]), (&1.into(), &2.into()), "{depth}");
            assert!(value["d"].is_array(), "{depth}");
        }
        assert_eq!(parse(&"[".repeat(200)), None);
    }
}
