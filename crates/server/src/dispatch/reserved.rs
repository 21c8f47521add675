//! The reserved argument of a call: it is taken out of the arguments, and out of their JSON that is
//! passed on as it was sent.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::Dispatcher;
use crate::{
    handler::Scope,
    registry::{Projection, RESERVED},
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
        match Box::pin(self.registry.check_projection(&projection, scope)).await {
            Ok(()) => Ok(Some(projection)),
            // The caller did not choose it, and can read the whole.
            Err(problem) if projection.is_default => {
                tracing::warn!(tool, problem, "a configured projection is not applied");
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }
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
pub(super) fn without_reserved(json: Vec<u8>) -> Vec<u8> {
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
