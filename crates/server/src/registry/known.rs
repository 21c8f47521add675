//! [`KnownItems`]: what is known of the items of a server while it is built, before anybody calls
//! them.

use std::sync::Arc;

use larder_protocol::near;
use rmcp::model::JsonObject;

use super::{
    catalog::Catalog,
    offer::{ItemName, Knowledge},
    provider::Provider,
};

/// An item that a definition names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Lookup {
    /// There is such an item. A tool has the schema of its arguments.
    Found { schema: Option<Arc<JsonObject>>, is_own: bool },
    /// Only the use of the item shows whether it exists.
    Unknown,
    /// The servers behind this one did not have it when they were listed last. `hint` suggests
    /// other names.
    Missing { hint: String },
    /// There can be no such item. `hint` suggests other names.
    None { hint: String },
}

/// The items of a server that is being built.
pub(crate) struct KnownItems<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) providers: Vec<Arc<dyn Provider>>,
}

impl KnownItems<'_> {
    /// Looks an item up.
    pub(crate) fn look_up(&self, item: ItemName<'_>) -> Lookup {
        let own = match item {
            ItemName::Tool(name) => self.catalog.input_schema(name).map(Some),
            ItemName::Resource(uri) => self.catalog.covers(uri).then_some(None),
        };
        if let Some(schema) = own {
            return Lookup::Found { schema, is_own: true };
        }

        let mut is_unknown = false;
        let mut is_missing = false;
        let mut names = self.own_names(item);
        for provider in &self.providers {
            match provider.knowledge(item) {
                Knowledge::Foreign => {}
                Knowledge::Unknown => is_unknown = true,
                Knowledge::Listed(schema) => return Lookup::Found { schema, is_own: false },
                Knowledge::Missing(others) => {
                    is_missing = true;
                    names.extend(others);
                }
            }
        }

        if is_unknown {
            return Lookup::Unknown;
        }
        let hint = near::suggestion(item.name(), names.iter().map(String::as_str));
        if is_missing { Lookup::Missing { hint } } else { Lookup::None { hint } }
    }

    /// The tools of workflows that the tool of a workflow calls, directly or not, back to itself.
    pub(crate) fn cycle(&self, tool: &str) -> Option<Vec<String>> {
        self.catalog.cycle(tool)
    }

    fn own_names(&self, item: ItemName<'_>) -> Vec<String> {
        match item {
            ItemName::Tool(_) => {
                self.catalog.tools.iter().map(|tool| tool.listed.name.to_string()).collect()
            }
            ItemName::Resource(_) => {
                self.catalog.resources().map(|resource| resource.uri.clone()).collect()
            }
        }
    }
}

/// The faults of a definition.
#[derive(Default)]
pub(crate) struct Findings {
    /// The faults with which a server does not start.
    pub(crate) problems: Vec<String>,
    /// Faults by lists of upstreams, which may be out of date.
    pub(crate) warnings: Vec<String>,
}
