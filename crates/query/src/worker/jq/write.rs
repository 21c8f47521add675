//! Writes values as jq does with the option `-c`.

use jaq_json::Val;

use super::number::write_number;

/// The byte of the character DEL.
const DELETE: u8 = 0x7f;

/// Writes a value as jq does.
pub(super) fn write_value(to: &mut Vec<u8>, value: &Val) {
    let mut separator: &[u8] = b"";

    match value {
        Val::Null => to.extend_from_slice(b"null"),
        Val::Bool(value) => to.extend_from_slice(if *value { b"true" } else { b"false" }),
        Val::Num(number) => write_number(to, number),
        Val::TStr(text) | Val::BStr(text) => write_text(to, &String::from_utf8_lossy(text)),
        Val::Arr(items) => {
            to.push(b'[');
            for item in items.iter() {
                to.extend_from_slice(std::mem::replace(&mut separator, b","));
                write_value(to, item);
            }
            to.push(b']');
        }
        Val::Obj(members) => {
            to.push(b'{');
            for (key, value) in members.iter() {
                to.extend_from_slice(std::mem::replace(&mut separator, b","));
                write_value(to, key);
                to.push(b':');
                write_value(to, value);
            }
            to.push(b'}');
        }
    }
}

/// Writes a string. jq escapes DEL, too.
fn write_text(to: &mut Vec<u8>, text: &str) {
    let start = to.len();
    // Writing to a list cannot fail.
    let _ = serde_json::to_writer(&mut *to, text);
    if to[start..].contains(&DELETE) {
        let written = String::from_utf8_lossy(&to[start..]).replace('\x7f', "\\u007f");
        to.truncate(start);
        to.extend_from_slice(written.as_bytes());
    }
}
