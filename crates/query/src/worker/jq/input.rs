//! Reads the inputs of a filter.

use jaq_json::{Val, read};
use larder_records::{
    Layout, Pointer, Record, Scanner, repair_member, repair_value,
    words::{count, cut},
};

use super::super::decode::content_error;
use crate::{QueryError, Table};

/// The most names of members that an error lists.
const LISTED: usize = 20;

/// Describes each input: `Each row is an object with id, name.`
pub(super) fn row(columns: &[String]) -> String {
    let names: Vec<&str> = columns.iter().take(LISTED).map(|name| cut(name, 100)).collect();
    let more = if columns.len() > LISTED { ", …" } else { "" };
    format!(" Each row is an object with {}{more}.", names.join(", "))
}

/// Describes an input: `The input is an object with items, total.`
pub(super) fn root(value: &Val) -> String {
    match value {
        Val::Arr(items) => {
            format!(" The input is a list of {}.", count(items.len() as u64, "item"))
        }
        Val::Obj(members) => {
            let names = members.keys().take(LISTED).map(|name| match name {
                Val::TStr(name) => cut(&String::from_utf8_lossy(name), 100).to_owned(),
                name => name.to_string(),
            });
            let more = if members.len() > LISTED { ", …" } else { "" };
            format!(" The input is an object with {}{more}.", names.collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    }
}

/// The end of the first value of a text that begins with one.
pub(super) fn end_of_value(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut is_escaped = false;

    for (at, byte) in text.iter().enumerate() {
        if in_string {
            in_string = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            if !in_string && depth == 0 {
                return at + 1;
            }
            continue;
        }

        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
    }
    text.len()
}

/// The reason why a value cannot be read.
pub(super) fn not_json(table: &Table, value: &[u8]) -> QueryError {
    let mut scanner = Scanner::new(Layout::Json, Pointer::default());
    match scanner.feed(value, |_| {}).and_then(|()| scanner.finish(|_| {})) {
        Err(fault) => content_error(&table.name, &fault),
        Ok(()) => {
            QueryError::Content { table: table.name.clone(), problem: "it is not JSON".into() }
        }
    }
}

/// A JSON value that is not nested too deeply.
pub(super) fn parse(bytes: &[u8]) -> Option<Val> {
    let mut scanner = Scanner::new(Layout::Json, Pointer::default());
    scanner.feed(bytes, |_| {}).and_then(|()| scanner.finish(|_| {})).ok()?;

    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    read::parse_single(bytes).ok()
}

/// The input that a record is; a member of an object is `{key, value}`.
pub(super) fn of_record(record: Record, bytes: &[u8]) -> Option<Val> {
    if is_member(record) { parse_member(bytes) } else { parse(bytes) }
}

/// The input that a record is after its repair.
pub(super) fn repaired(record: Record, bytes: &[u8]) -> Option<Val> {
    let json = if is_member(record) { repair_member(bytes) } else { repair_value(bytes) };
    of_record(record, &json?)
}

fn is_member(record: Record) -> bool {
    record.value > record.start
}

fn parse_member(bytes: &[u8]) -> Option<Val> {
    let object = read::parse_single(&[b"{", bytes, b"}"].concat()).ok()?;
    let Val::Obj(members) = object else { return None };
    let (key, value) = members.iter().next()?;

    let name = |name: &'static str| Val::utf8_str(name);
    let pairs = [(name("key"), key.clone()), (name("value"), value.clone())];
    Some(Val::obj(pairs.into_iter().collect()))
}
