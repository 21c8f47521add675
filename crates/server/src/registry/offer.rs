//! Offers of providers: kinds of items, and the knowledge of an item before it is used.

use std::sync::Arc;

use rmcp::model::JsonObject;

/// The kinds of items that a provider can offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources and templates.
    Resources,
    /// Completion of arguments.
    Completions,
}

/// An item, by its name or URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemName<'a> {
    /// A tool.
    Tool(&'a str),
    /// A static resource, by its URI.
    Resource(&'a str),
}

impl<'a> ItemName<'a> {
    /// The kind of the item.
    pub fn kind(self) -> Offer {
        match self {
            Self::Tool(_) => Offer::Tools,
            Self::Resource(_) => Offer::Resources,
        }
    }

    pub(super) fn name(self) -> &'a str {
        match self {
            Self::Tool(name) | Self::Resource(name) => name,
        }
    }
}

/// The knowledge that a provider has of an item without a request to its server.
#[derive(Debug, Clone, PartialEq)]
pub enum Knowledge {
    /// The item cannot be the provider's.
    Foreign,
    /// Only the use of the item shows whether it exists.
    Unknown,
    /// The provider has listed it. A tool has its input schema, in JSON Schema 2020-12.
    Listed(Option<Arc<JsonObject>>),
    /// The lists that the provider has read last lack it. They have these names.
    Missing(Vec<String>),
}
