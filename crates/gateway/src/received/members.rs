//! Members of blocks and contents that are no content, such as a media type: each has a bound.

use larder_protocol::{Shape, json_exceeds};
use rmcp::model::ContentBlock;
use serde_json::{Map, Value};

use super::{definition::DEFINITION_BYTES, object::Object};

/// The most bytes of a media type. RFC 6838 (section 4.2) allows 127 for each of its two names.
const MEDIA_TYPE_BYTES: usize = 255;
/// The most bytes of a URI, as HTTP servers commonly accept them (RFC 9110, section 4.1).
const URI_BYTES: usize = 8_000;
/// The most bytes of a name or a title.
const NAME_BYTES: usize = 1_000;
/// The most bytes of a description.
const DESCRIPTION_BYTES: usize = 10_000;
/// The most bytes of annotations.
const ANNOTATIONS_BYTES: usize = 4_000;

/// The members that are no content, and how many bytes their JSON may have.
const BOUNDS: [(&str, usize); 8] = [
    ("mimeType", MEDIA_TYPE_BYTES),
    ("uri", URI_BYTES),
    ("name", NAME_BYTES),
    ("title", NAME_BYTES),
    ("description", DESCRIPTION_BYTES),
    ("icons", DEFINITION_BYTES),
    ("annotations", ANNOTATIONS_BYTES),
    ("_meta", DEFINITION_BYTES),
];

/// The members that were too long for their places, by their paths.
#[derive(Default)]
pub(super) struct LongMembers(Map<String, Value>);

/// The treatment of members that are too long for their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// They follow as a text, which is stored if the result has no room for it.
    IsShown,
    /// They are left out, which a text says.
    IsNamed,
}

impl LongMembers {
    /// Takes the members out of an object that are too long. `path` is where it is in the block.
    pub(super) fn take_from(&mut self, object: &mut Object, path: &str) {
        for (name, max) in BOUNDS {
            self.take(object, name, max, path);
        }
    }

    /// Takes the `_meta` of a result if it is too long.
    pub(super) fn take_meta(&mut self, result: &mut Object) {
        self.take(result, "_meta", DEFINITION_BYTES, "");
    }

    /// Lets the metadata of an object carry the members that its shape does not have, unless they
    /// are too long.
    pub(super) fn carry_others(&mut self, object: &mut Object, shape: &Shape) {
        let others = object.take_others(shape);
        if others.exceed(DEFINITION_BYTES) {
            self.add("other members".to_owned(), others.into_value());
        } else {
            object.carry(others);
        }
    }

    fn take(&mut self, object: &mut Object, name: &str, max: usize, path: &str) {
        let is_long = object.get(name).is_some_and(|value| json_exceeds(value, max));
        if let Some(value) = is_long.then(|| object.take(name)).flatten() {
            self.add(format!("{path}{name}"), value);
        }
    }

    pub(super) fn add(&mut self, path: String, value: Value) {
        self.0.insert(path, value);
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The text that says which members are not in their places. `what` names the object.
    pub(super) fn note(self, what: &str, excess: Excess) -> Option<ContentBlock> {
        if self.0.is_empty() {
            return None;
        }

        Some(ContentBlock::text(match excess {
            Excess::IsShown => format!(
                "(Members of {what} that are too long for their places: {})",
                Value::Object(self.0)
            ),
            Excess::IsNamed => {
                let names: Vec<_> = self.0.keys().map(String::as_str).collect();
                format!(
                    "(Members of {what} are left out, because they are too long: {}.)",
                    names.join(", ")
                )
            }
        }))
    }
}

/// Leaves out the members of an object that are too long, where no text can say so.
pub(super) fn drop_long(object: &mut Object) {
    let mut long = LongMembers::default();
    long.take_from(object, "");
    for member in long.0.keys() {
        tracing::debug!(member, "a member of an upstream's object is too long");
    }
}

/// Lets the metadata of a result carry the members that its shape does not have, unless they are too
/// long, where no text can say so. `method` names the result in the log.
pub(super) fn carry_others(result: &mut Object, shape: &Shape, method: &str) {
    let others = result.take_others(shape);
    if others.exceed(DEFINITION_BYTES) {
        tracing::debug!(method, "the other members of an upstream's result are too long");
    } else {
        result.carry(others);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_members_over_their_bounds_are_taken() {
        let sent = json!({
            "mimeType": "m".repeat(253), "uri": "u".repeat(8_000), "name": "n",
            "text": "t".repeat(100_000), "_meta": { "a": "b" },
        });
        let mut object = Object::of(sent, "it").expect("it is an object");
        let mut long = LongMembers::default();
        long.take_from(&mut object, "resource.");

        assert!(long.has("resource.uri") && long.0.len() == 1);
        assert!(object.get("uri").is_none() && object.get("mimeType").is_some());
        let note = long.note("block 2", Excess::IsNamed).expect("it says so");
        let text = note.as_text().map(|text| &*text.text);
        let expected =
            "(Members of block 2 are left out, because they are too long: resource.uri.)";
        assert_eq!(text, Some(expected));
    }
}
