//! [`Capabilities`] that an upstream declares.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The capabilities of an upstream that Larder uses. Whatever else it declares is not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub(crate) struct Capabilities {
    pub(crate) tools: Option<Features>,
    pub(crate) prompts: Option<Features>,
    pub(crate) resources: Option<Features>,
    pub(crate) logging: Option<Features>,
}

/// The features of a capability that is declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Features {
    /// Changes of the list are announced.
    pub(crate) list_changed: bool,
    /// Items can be subscribed to.
    pub(crate) subscribe: bool,
}

impl Capabilities {
    /// Whether any list is declared.
    pub(crate) fn has_lists(self) -> bool {
        self.tools.is_some() || self.prompts.is_some() || self.resources.is_some()
    }

    /// Whether the upstream announces changes of one of its lists.
    pub(crate) fn announces_lists(self) -> bool {
        let lists = [self.tools, self.prompts, self.resources];
        lists.iter().flatten().any(|list| list.list_changed)
    }

    /// Whether resources can be subscribed to.
    pub(crate) fn announces_updates(self) -> bool {
        self.resources.is_some_and(|resources| resources.subscribe)
    }
}

impl From<Value> for Capabilities {
    /// Anything but an object declares nothing: some languages write an empty object as a list.
    fn from(declared: Value) -> Self {
        let features = |capability| declared.get(capability).and_then(Features::of);
        Self {
            tools: features("tools"),
            prompts: features("prompts"),
            resources: features("resources"),
            logging: features("logging"),
        }
    }
}

impl Features {
    /// The features of a capability. `None` if the value does not declare it.
    fn of(capability: &Value) -> Option<Self> {
        let is_declared =
            matches!(capability, Value::Object(_) | Value::Array(_) | Value::Bool(true));
        let has = |feature| capability.get(feature) == Some(&Value::Bool(true));
        is_declared.then(|| Self { list_changed: has("listChanged"), subscribe: has("subscribe") })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capabilities_of_any_shape_can_be_asked_for() {
        let declared = Capabilities::from(json!({
            "tools": {}, "prompts": [], "logging": null, "completions": false, "resources": { "subscribe": true },
        }));

        assert_eq!((declared.tools, declared.prompts), (Some(Features::default()), declared.tools));
        assert_eq!(declared.resources, Some(Features { subscribe: true, list_changed: false }));
        assert_eq!(declared.logging, None);
        assert!(declared.announces_updates() && !declared.announces_lists());

        for flag in [json!(true), json!(false)] {
            let declared = Capabilities::from(json!({ "logging": flag }));
            assert_eq!(declared.logging.is_some(), flag == true);
        }
        for none in [json!([]), json!("x"), json!(5)] {
            assert_eq!(Capabilities::from(none), Capabilities::default());
        }
    }

    #[test]
    fn what_is_saved_is_short_whatever_is_declared() {
        let long = "x".repeat(1_000_000);
        let declared = Capabilities::from(json!({
            "tools": { "listChanged": true, &long: long }, "experimental": { "a": long },
        }));

        let saved = serde_json::to_string(&declared).expect("it is JSON");
        assert!(saved.len() < 200, "{} bytes", saved.len());
        let loaded: Capabilities = serde_json::from_str(&saved).expect("it is what was saved");
        assert_eq!(loaded, declared);
        assert!(loaded.announces_lists());
    }
}
