//! JSON: what it holds and what that looks like.

use serde_json::Value;

use super::{
    Sample, estimate,
    shape::Shape,
    words::{count, cut, number},
};

/// How many lines of JSON are looked at.
const LINES: usize = 200;

/// Whether it is one JSON value, as far as can be seen.
pub(super) fn is_one(sample: &Sample<'_>) -> bool {
    let text = sample.text();
    // A number or a word alone is text to whoever reads it.
    text.trim_start().starts_with(['{', '[']) && Seen::of(sample, text).is_some()
}

/// Whether it is JSON line by line: objects or lists, more than one.
pub(super) fn is_lines(sample: &Sample<'_>) -> bool {
    let lines = lines(sample);
    lines.len() > 1 && lines.iter().all(Option::is_some)
}

/// The whole lines that are seen, as far as they are objects or lists.
fn lines(sample: &Sample<'_>) -> Vec<Option<Value>> {
    let text = sample.text();
    let whole = if sample.is_whole() { text } else { text.rsplit_once('\n').map_or("", |t| t.0) };
    let lines = whole.lines().filter(|line| !line.trim().is_empty()).take(LINES);
    let mut read = Vec::new();
    for line in lines {
        let value = Some(line)
            .filter(|line| line.trim_start().starts_with(['{', '[']))
            .and_then(|line| serde_json::from_str(line).ok());
        let stop = value.is_none();
        read.push(value);
        if stop {
            break;
        }
    }
    read
}

pub(super) fn facts(sample: &Sample<'_>, budget: usize) -> Vec<String> {
    let parsed;
    let (value, open, seen) = match sample.value {
        Some(value) => (value, 0, None),
        None => match Seen::of(sample, sample.text()) {
            Some(Seen { value, open, bytes }) => {
                parsed = value;
                (&parsed, open, (open > 0).then_some(bytes))
            }
            None => return Vec::new(),
        },
    };
    let what = match value {
        Value::Array(items) => match seen {
            None => format!("a list of {}", count(items.len() as u64, "item")),
            Some(bytes) => {
                let all = estimate(items.len(), bytes, sample.size);
                format!(
                    "a list of {all} items by the size of the first {}",
                    number(items.len() as u64)
                )
            }
        },
        Value::Object(members) => {
            let named: Vec<_> = members.iter().take(12).map(|(name, v)| member(name, v)).collect();
            let more = members.len().saturating_sub(12);
            let more = if more > 0 { format!(", … {more} more") } else { String::new() };
            let open = if seen.is_some() { "; there may be more members" } else { "" };
            format!("an object with {}{more}{open}", named.join(", "))
        }
        _ => "a single value".to_owned(),
    };
    let mut shape = Shape::of(value, open).to_string();
    if shape.len() > budget {
        shape = format!("{}…", cut(&shape, budget));
    }
    let from = match seen {
        None => String::new(),
        Some(_) => format!(" (from {}; N+ is a count that goes on)", sample.looked_at()),
    };
    vec![format!("JSON: {}", cut(&what, budget.max(80))), format!("Shape{from}: {shape}")]
}

fn member(name: &str, value: &Value) -> String {
    let name = cut(name, 60);
    match value {
        Value::Array(items) => format!("{name} (list of {})", number(items.len() as u64)),
        Value::Object(_) => format!("{name} (object)"),
        _ => name.to_owned(),
    }
}

pub(super) fn facts_of_lines(sample: &Sample<'_>, budget: usize) -> Vec<String> {
    let values: Vec<_> = lines(sample).into_iter().flatten().collect();
    let records = match sample.lines {
        Some(lines) => count(lines, "line"),
        None => "lines that were not counted".to_owned(),
    };
    let mut shape = Shape::of_all(values.iter()).to_string();
    if shape.len() > budget {
        shape = format!("{}…", cut(&shape, budget));
    }
    let seen = count(values.len() as u64, "line");
    vec![
        format!("JSON, one value a line: {records}"),
        format!("Shape (from the first {seen}): {shape}"),
    ]
}

/// A value as far as it is seen.
struct Seen {
    value: Value,
    /// How many of its outermost containers go on after what is seen.
    open: usize,
    /// Up to where it was read.
    bytes: usize,
}

impl Seen {
    fn of(sample: &Sample<'_>, text: &str) -> Option<Self> {
        if sample.is_whole() {
            let value = serde_json::from_str(text).ok()?;
            return Some(Self { value, open: 0, bytes: text.len() });
        }
        let (end, closers) = last_whole_item(text)?;
        let mut closed = text[..end].to_owned();
        closed.extend(closers.iter().rev().map(|b| char::from(*b)));
        let value = serde_json::from_str(&closed).ok()?;
        Some(Self { value, open: closers.len(), bytes: end })
    }
}

/// Where the last item ends that is whole, and what closes all that is open
/// there. Items of the outermost list rather than parts of one: a record that
/// is cut would look as if it lacked what comes after.
fn last_whole_item(text: &str) -> Option<(usize, Vec<u8>)> {
    // What is open: how it closes, and where in it the last comma stands.
    let mut open: Vec<(u8, Option<usize>)> = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
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
            b',' => open.last_mut()?.1 = Some(at),
            _ => {}
        }
    }
    let outermost_list = open.iter().position(|(close, comma)| *close == b']' && comma.is_some());
    let level = outermost_list.or_else(|| open.iter().rposition(|(_, comma)| comma.is_some()))?;
    let end = open[level].1?;
    Some((end, open[..=level].iter().map(|(close, _)| *close).collect()))
}
