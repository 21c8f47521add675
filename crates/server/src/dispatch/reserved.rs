//! The reserved argument of a call: it is taken out of the arguments, and out of their JSON that is
//! passed on as it was sent.

use std::{borrow::Cow, fmt, sync::Arc};

use larder_protocol::{Member, Params, exact};
use rmcp::model::CallToolResult;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::Dispatcher;
use crate::{
    handler::Scope,
    registry::{Projection, RESERVED, not_called},
};

impl Dispatcher {
    /// The part of the result that the caller wants. The tool must not be called if it is wrong.
    pub(super) async fn projection(
        &self,
        tool: &str,
        arguments: &mut Option<Value>,
        scope: &Arc<Scope>,
    ) -> Result<Option<Projection>, String> {
        self.registry.learn(tool, scope).await;
        let Some(projection) = self.registry.take_projection(tool, arguments)? else {
            return Ok(None);
        };
        match Box::pin(self.registry.check_projection(tool, &projection, scope)).await {
            Ok(()) => Ok(Some(projection)),
            // The caller did not choose it, and can read the whole.
            Err(problem) if projection.is_default => {
                tracing::warn!(tool, problem, "a configured projection is not applied");
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Whether the arguments of a tool of a server behind this one have numbers that a value does
    /// not keep.
    pub(super) fn is_inexact(&self, tool: &str, params: &Params) -> bool {
        self.registry.may_be_provided(tool)
            && params.member(Member::Arguments).is_some_and(|json| !exact::keeps_numbers(json))
    }

    /// Passes the arguments on as they were sent.
    pub(super) fn pass_on_exactly(&self, tool: &str, params: &Params, scope: &Scope) {
        let Some(json) = params.member(Member::Arguments) else { return };
        let json = exact::in_one_line(json);
        let is_taken = self.registry.takes_reserved(tool);
        let json = if is_taken { without_reserved(json) } else { json };
        scope.control.set_exact_arguments(json.into());
    }
}

/// The refusal of several calls whose arguments have numbers that they would not get as they were
/// sent.
pub(super) fn refused_as_inexact(
    tool: &str,
    projection: Option<&Projection>,
) -> Option<CallToolResult> {
    projection.filter(|wanted| wanted.each.is_some() || wanted.pages.is_some())?;
    Some(not_called(
        tool,
        "_larder: with each and pages, the arguments cannot have numbers such as 1.10 or 12345678901234567890123, which would change: give them as texts, or call the tool once for each.",
    ))
}

/// The members of an object, with their values as they were sent.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;

        impl<'de> Visitor<'de> for OfObject {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((Cow::Owned(name), value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(OfObject)
    }
}

/// The JSON of arguments without the reserved one. The values are not written anew.
fn without_reserved(json: Vec<u8>) -> Vec<u8> {
    let Ok(Members(members)) = serde_json::from_slice(&json) else { return json };
    if members.iter().all(|(name, _)| name != RESERVED) {
        return json;
    }

    let kept = members.iter().filter(|(name, _)| name != RESERVED);
    let mut rest = b"{".to_vec();
    for (index, (name, value)) in kept.enumerate() {
        if index > 0 {
            rest.push(b',');
        }
        rest.extend_from_slice(serde_json::json!(name).to_string().as_bytes());
        rest.push(b':');
        rest.extend_from_slice(value.get().as_bytes());
    }
    rest.push(b'}');
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_arguments_keep_their_numbers() {
        for (sent, passed_on) in [
            (r#"{"a": 1.10, "_larder": {"head": 1}, "b": [1e3]}"#, r#"{"a":1.10,"b":[1e3]}"#),
            (r#"{"_larder":null}"#, "{}"),
            (r#"{"\u005flarder":1,"x\"y":2}"#, r#"{"x\"y":2}"#),
            (r#"{"a": {"_larder": 1}}"#, r#"{"a": {"_larder": 1}}"#),
        ] {
            let rest = without_reserved(sent.as_bytes().to_vec());
            assert_eq!(String::from_utf8_lossy(&rest), passed_on);
        }
    }
}
