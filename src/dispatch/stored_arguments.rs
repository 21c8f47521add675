//! Arguments that a tool stores as they are. They are not parsed into a tree, which
//! would take many times their bytes, so the limit on JSON values does not count
//! them.

use bytes::Bytes;
use serde_json::Value;

use super::Dispatcher;
use crate::{
    protocol::{Fault, Member, Params, describe, has_at_most_values, tool_call},
    quote::shortened,
    registry::stored_json,
};

impl Dispatcher {
    /// Whether at most `max` JSON values of a message are parsed.
    pub fn accepts_values(&self, message: &Bytes, max: usize) -> bool {
        has_at_most_values(message, max)
            || self
                .without_stored_arguments(message)
                .is_some_and(|rest| has_at_most_values(&rest, max))
    }

    /// The message without the arguments that its tool stores. `None` if it has
    /// none, or is parsed as a whole.
    fn without_stored_arguments(&self, message: &Bytes) -> Option<Vec<u8>> {
        let params = tool_call(message)?;
        // The digest of a further round covers all arguments.
        if params.member(Member::RequestState).is_some() {
            return None;
        }
        let stored = self.registry.stored_arguments(&params.text(Member::Name).ok()??);
        let stored: Vec<_> = stored.iter().filter_map(|name| params.argument(name)).collect();
        (!stored.is_empty()).then(|| without(message, &stored))
    }
}

/// The arguments of a tool call. Those that the tool stores stay text.
pub(super) fn parse(
    name: &str,
    params: &Params,
    stored: &[&'static str],
) -> Result<Option<Value>, Fault> {
    let Some(raw) = params.member(Member::Arguments) else { return Ok(None) };
    let stored: Vec<_> =
        stored.iter().filter_map(|name| Some((*name, params.argument(name)?))).collect();
    let parsed = if stored.is_empty() {
        serde_json::from_slice(raw)
    } else {
        let parts: Vec<_> = stored.iter().map(|(_, json)| *json).collect();
        serde_json::from_slice(&without(raw, &parts))
    };
    let mut parsed: Value = parsed.map_err(|e| {
        let (name, error) = (shortened(name), describe(&e));
        Fault::invalid_params(format!("The arguments of {name} cannot be read: {error}"))
    })?;
    let Some(arguments) = parsed.as_object_mut() else {
        return Err(Fault::invalid_params("\"arguments\" must be an object."));
    };
    for (name, json) in stored {
        arguments.insert(name.to_owned(), stored_json(&String::from_utf8_lossy(json)));
    }
    Ok(Some(parsed))
}

/// JSON in which `null` stands for each of these parts of it.
fn without(json: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let offset = |part: &[u8]| part.as_ptr() as usize - json.as_ptr() as usize;
    let mut parts: Vec<_> = parts.iter().map(|part| (offset(part), part.len())).collect();
    parts.sort_unstable();
    let (mut rest, mut end) = (Vec::new(), 0);
    for (begin, length) in parts {
        rest.extend_from_slice(&json[end..begin]);
        rest.extend_from_slice(b"null");
        end = begin + length;
    }
    rest.extend_from_slice(&json[end..]);
    rest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn parts_are_replaced_wherever_they_are() {
        let json = br#"{"a":[1,2],"b":{"c":3},"d":4}"#;
        let (a, b) = (&json[5..10], &json[15..22]);
        assert_eq!(without(json, &[b, a]), br#"{"a":null,"b":null,"d":4}"#);
        assert_eq!(without(json, &[]), json);
    }
}
