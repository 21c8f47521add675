//! [`Capabilities`] that an upstream declares.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What an upstream declares that it can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::upstream) struct Capabilities(Map<String, Value>);

impl Capabilities {
    /// Anything but an object declares nothing: some languages write an empty object as a list.
    pub(super) fn of(declared: Option<Value>) -> Self {
        match declared {
            Some(Value::Object(members)) => Self(members),
            _ => Self::default(),
        }
    }

    /// Whether the capability is declared.
    pub(in crate::upstream) fn has(&self, capability: &str) -> bool {
        matches!(
            self.0.get(capability),
            Some(Value::Object(_) | Value::Array(_) | Value::Bool(true))
        )
    }

    /// Whether a feature of the capability is declared.
    pub(in crate::upstream) fn has_feature(&self, capability: &str, feature: &str) -> bool {
        let capability = self.0.get(capability);
        capability.and_then(|members| members.get(feature)) == Some(&Value::Bool(true))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_of_any_shape_can_be_asked_for() {
        let declared = Capabilities::of(Some(json!({
            "tools": {}, "prompts": [], "logging": null, "completions": false, "resources": { "subscribe": true },
        })));
        let has = |name| declared.has(name);

        assert!(has("tools") && has("prompts") && has("resources"));
        assert!(!has("logging") && !has("completions") && !has("other"));
        assert!(declared.has_feature("resources", "subscribe"));
        assert!(!declared.has_feature("prompts", "listChanged"));

        for none in [json!([]), json!("x"), json!(5)] {
            assert_eq!(Capabilities::of(Some(none)), Capabilities::default());
        }
    }
}
