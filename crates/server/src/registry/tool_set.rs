//! [`ToolSet`]: the built-in tools that a server lists.

use std::collections::BTreeSet;

use rmcp::model::JsonObject;
use serde_json::{Map, Value};

/// The built-in tools that a server lists. A tool that is not listed can still be called: errors and
/// previews name it where it helps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolSet {
    /// In front of other servers the tools that their stored results need, otherwise all.
    Auto,
    /// The tools that read.
    Reading,
    /// All of them.
    #[default]
    All,
    /// The tools with these names.
    Named(BTreeSet<String>),
}

/// The part that a built-in tool has in a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    /// Tools that read stored results, which previews propose.
    Essential,
    /// Tools that read.
    Reading,
    /// Tools that show content to people, or that pages of the viewer call.
    Viewing,
    /// Tools that write, or make links.
    Writing,
    /// Without it a feature that is configured does not work.
    Feature,
}

impl ToolSet {
    /// Whether the set lists a built-in tool.
    pub(super) fn lists(
        &self,
        name: &str,
        part: BuiltIn,
        is_in_front: bool,
        shows_apps: bool,
    ) -> bool {
        if part == BuiltIn::Feature {
            return true;
        }

        match self {
            Self::All => true,
            Self::Auto if !is_in_front => true,
            Self::Auto => match part {
                BuiltIn::Viewing => shows_apps,
                part => part == BuiltIn::Essential,
            },
            Self::Reading => part != BuiltIn::Writing,
            Self::Named(names) => names.contains(name),
        }
    }
}

/// The keywords that the list leaves out for built-in tools, whose errors name the limits.
const LIMITS: [&str; 3] = ["minimum", "maximum", "default"];

/// Leaves out of the listed arguments of a built-in tool what its errors say.
pub(super) fn shorten(schema: &mut JsonObject) {
    schema.shift_remove("additionalProperties");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        if let Some(members) = property.as_object_mut() {
            members.retain(|keyword, _| !LIMITS.contains(&&**keyword));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_lists_what_its_server_needs() {
        let all = [
            ("read_resource", BuiltIn::Essential),
            ("list_resources", BuiltIn::Reading),
            ("view_resource", BuiltIn::Viewing),
            ("create_resource", BuiltIn::Writing),
            ("find_tools", BuiltIn::Feature),
        ];
        let listed = |set: &ToolSet, is_in_front, shows_apps| {
            let shown =
                all.iter().filter(|(name, part)| set.lists(name, *part, is_in_front, shows_apps));
            shown.map(|(name, _)| *name).collect::<Vec<_>>()
        };

        let named = ToolSet::Named(["create_resource".to_owned()].into());
        assert_eq!(listed(&ToolSet::All, true, false).len(), 5);
        assert_eq!(listed(&ToolSet::Auto, false, false).len(), 5);
        assert_eq!(listed(&ToolSet::Auto, true, false), ["read_resource", "find_tools"]);
        assert_eq!(
            listed(&ToolSet::Auto, true, true),
            ["read_resource", "view_resource", "find_tools"]
        );
        assert_eq!(
            listed(&ToolSet::Reading, true, false),
            ["read_resource", "list_resources", "view_resource", "find_tools"]
        );
        assert_eq!(listed(&named, false, true), ["create_resource", "find_tools"]);
    }
}
