//! [`ToolSet`]: the built-in tools that a server lists, and how models reach the others.

use std::collections::BTreeSet;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

use super::CALL_TOOL;
use crate::handler::tool_calls::call;

/// The built-in tools that a server lists. A tool that is not listed can still be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolSet {
    /// In front of other servers the tools that their stored results need, or none where tools are
    /// found; otherwise all.
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

/// The tools of the servers behind this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpstreamTools {
    /// There are no such servers.
    None,
    /// They are listed.
    Listed,
    /// They are found by `find_tools` and called by `call_tool`.
    Found,
}

/// The way in which the model of a caller calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolReach {
    /// The caller may not use the tool, or its host does not know it.
    None,
    /// The tool is listed.
    Listed,
    /// `call_tool` calls it.
    ByCallTool,
}

impl ToolReach {
    /// A call for the model to copy. `None` if it cannot call the tool.
    pub(crate) fn call(self, tool: &str, arguments: &Value) -> Option<String> {
        match self {
            Self::None => None,
            Self::Listed => Some(call(tool, arguments)),
            Self::ByCallTool => {
                Some(call(CALL_TOOL, &json!({ "name": tool, "arguments": arguments })))
            }
        }
    }
}

impl ToolSet {
    /// Whether the set lists a built-in tool.
    pub(super) fn lists(
        &self,
        name: &str,
        part: BuiltIn,
        others: UpstreamTools,
        shows_apps: bool,
    ) -> bool {
        if part == BuiltIn::Feature {
            return true;
        }

        match self {
            Self::All => true,
            Self::Auto => match (others, part) {
                (UpstreamTools::None, _) => true,
                (_, BuiltIn::Viewing) => shows_apps,
                (UpstreamTools::Listed, part) => part == BuiltIn::Essential,
                (UpstreamTools::Found, _) => false,
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
        let listed = |set: &ToolSet, others, shows_apps| {
            let shown =
                all.iter().filter(|(name, part)| set.lists(name, *part, others, shows_apps));
            shown.map(|(name, _)| *name).collect::<Vec<_>>()
        };

        let named = ToolSet::Named(["create_resource".to_owned()].into());
        let (none, some, found) =
            (UpstreamTools::None, UpstreamTools::Listed, UpstreamTools::Found);
        assert_eq!(listed(&ToolSet::All, found, false).len(), 5);
        assert_eq!(listed(&ToolSet::Auto, none, false).len(), 5);
        assert_eq!(listed(&ToolSet::Auto, some, false), ["read_resource", "find_tools"]);
        assert_eq!(
            listed(&ToolSet::Auto, some, true),
            ["read_resource", "view_resource", "find_tools"]
        );
        assert_eq!(listed(&ToolSet::Auto, found, false), ["find_tools"]);
        assert_eq!(listed(&ToolSet::Auto, found, true), ["view_resource", "find_tools"]);
        assert_eq!(
            listed(&ToolSet::Reading, some, false),
            ["read_resource", "list_resources", "view_resource", "find_tools"]
        );
        assert_eq!(listed(&named, none, true), ["create_resource", "find_tools"]);
    }

    #[test]
    fn a_call_has_the_form_in_which_the_model_can_make_it() {
        let arguments = json!({ "uri": "a:b" });
        let made = |reach: ToolReach| reach.call("read_resource", &arguments);

        assert_eq!(made(ToolReach::None), None);
        assert_eq!(made(ToolReach::Listed).as_deref(), Some(r#"read_resource {"uri":"a:b"}"#));
        assert_eq!(
            made(ToolReach::ByCallTool).as_deref(),
            Some(r#"call_tool {"name":"read_resource","arguments":{"uri":"a:b"}}"#)
        );
    }
}
