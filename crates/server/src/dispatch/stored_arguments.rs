//! Arguments that a tool stores as they are. They are not parsed into a tree, which
//! would take many times their bytes, so the limit on JSON values does not count
//! them.

use bytes::Bytes;
use larder_oauth::Owner;
use larder_protocol::{
    Fault, Member, Params, describe, has_at_most_values, quote::shortened, tool_call,
};
use larder_runtime::compute::{Compute, INLINE_BYTES};
use larder_store::store::busy_fault;
use serde_json::Value;

use super::Dispatcher;
use crate::registry::stored_json;

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
///
/// # Errors
/// The arguments are no object, or the server is busy with others.
pub(super) async fn read(
    name: &str,
    params: &Params,
    stored: Vec<&'static str>,
    owner: &Owner,
) -> Result<Option<Value>, Fault> {
    let bytes = params.member(Member::Arguments).map_or(0, <[u8]>::len);

    // A job of the pool needs copies, so small arguments are parsed here.
    if bytes <= INLINE_BYTES {
        return parse(name, params, &stored);
    }

    let name = name.to_owned();
    let params = params.clone();
    let work = Compute::run(owner.as_str(), bytes, move || parse(&name, &params, &stored));
    work.done().await.map_err(busy_fault)?
}

fn parse(name: &str, params: &Params, stored: &[&'static str]) -> Result<Option<Value>, Fault> {
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
        let name = shortened(name);
        let error = describe(&e);
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

    let mut rest = Vec::new();
    let mut end = 0;
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
        let a = &json[5..10];
        let b = &json[15..22];

        assert_eq!(without(json, &[b, a]), br#"{"a":null,"b":null,"d":4}"#);
        assert_eq!(without(json, &[]), json);
    }

    #[tokio::test]
    async fn large_arguments_are_parsed_elsewhere_and_small_ones_at_once() {
        use futures_util::FutureExt;

        let owner = Owner::new("a");
        // Parsing the large arguments takes far longer than one poll.
        let large = "[0],".repeat(1 << 18);

        for (numbers, is_large) in [("", false), (&*large, true)] {
            let message = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{{"a":[{numbers}0]}}}}}}"#
            );
            let params = tool_call(&message.into()).unwrap();
            let mut read = Box::pin(read("tool", &params, Vec::new(), &owner));

            let at_once = (&mut read).now_or_never();
            assert_eq!(at_once.is_none(), is_large);

            let read = match at_once {
                Some(read) => read,
                None => read.await,
            };

            let items = read.unwrap().unwrap()["a"].as_array().unwrap().len();
            assert_eq!(items, if is_large { (1 << 18) + 1 } else { 1 });
        }
    }
}
