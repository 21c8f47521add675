//! Knowledge of an upstream's items before anybody uses them.

use std::sync::Arc;

use larder_server::registry::{ItemName, Knowledge};

use super::Upstream;
use crate::catalogue::Catalogue;

impl Upstream {
    /// The knowledge of an item by the lists that were read last, or remembered.
    pub(super) fn known_item(&self, item: ItemName<'_>) -> Knowledge {
        let may_be_own = match item {
            ItemName::Tool(name) => self.naming.may_offer(name),
            ItemName::Resource(uri) => self.naming.own_uri(uri).is_some(),
        };
        if !may_be_own {
            return Knowledge::Foreign;
        }

        if let ItemName::Tool(name) = item
            && self.connections.shared.login().is_some()
            && name == self.login_tool_name()
        {
            return Knowledge::Listed(None);
        }

        self.connections
            .known(|catalogue| Some(known_in(catalogue, item)))
            .unwrap_or(Knowledge::Unknown)
    }

    /// Recalls what the upstream has offered to its last client, before it is used. Blocks.
    pub(crate) fn recall(&self) {
        let shared = Arc::clone(&self.connections.shared);
        // The lists are read by a future, which must not wait for the runtime of the caller.
        let reading = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(shared.recall_last());
            }
        });
        // Without remembered lists, names are checked when they are used.
        let _ = reading.join();
    }
}

fn known_in(catalogue: &Catalogue, item: ItemName<'_>) -> Knowledge {
    match item {
        ItemName::Tool(name) => match catalogue.tool(name) {
            Some(tool) => Knowledge::Listed(tool.provided.input().cloned().map(Arc::new)),
            None if catalogue.tools_error().is_some() => Knowledge::Unknown,
            None => {
                let tools = catalogue.tools.iter();
                Knowledge::Missing(
                    tools.map(|tool| tool.provided.listed.name.to_string()).collect(),
                )
            }
        },
        ItemName::Resource(uri) if catalogue.has_resource(uri) => Knowledge::Listed(None),
        ItemName::Resource(uri) if catalogue.covers(uri) || !catalogue.cuts.is_empty() => {
            Knowledge::Unknown
        }
        ItemName::Resource(_) => {
            let resources = catalogue.resources().into_iter();
            Knowledge::Missing(resources.map(|resource| resource.uri).collect())
        }
    }
}
