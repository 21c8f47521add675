//! The items that a server offers: tools, prompts, resources and templates, validated
//! together when the server is built.
//!
//! The registry does not know about transports.

mod annotations;
mod apps;
mod build_error;
mod builder;
#[cfg(feature = "query")]
mod callable;
mod calls;
mod catalog;
mod clients;
mod collection;
mod complete;
mod custom;
mod definition;
mod edit;
mod exchange;
mod headers;
mod item;
mod known;
mod known_results;
mod listing;
mod login;
mod offer;
mod output;
mod output_rules;
mod paging;
mod permissions;
mod projecting;
mod projection;
mod prompt;
mod provided_call;
mod provided_tool;
mod provider;
mod providers;
mod references;
mod resource;
mod scope_rules;
mod server;
mod spilled_schema;
mod steps;
mod stored_json;
mod structured_output;
mod template;
mod tool;
mod tool_search;
mod tool_set;

pub use build_error::BuildError;
pub use builder::Builder;
pub use catalog::Catalog;
pub use clients::{NoAnswer, SessionClients};
pub use complete::CompletionInput;
pub use definition::Registry;
pub use headers::HeaderParameter;
pub(crate) use known::{KnownItems, Lookup};
pub(crate) use known_results::{CallKey, KnownResult};
pub use login::{LoginProblem, LoginRedirect, LoginRequest, LoginSite, ProviderLogin};
pub use offer::{ItemName, Knowledge, Offer};
pub use output_rules::READING_TOOL;
pub use output_rules::is_match;
pub use output_rules::lookup;
pub use output_rules::{OutputRules, Spill};
pub use paging::{Cursor, ListPage};
pub(crate) use projection::{
    Form, InputReferences, Paging, Projection, Projector, RESERVED, not_called,
};
pub use prompt::Prompt;
pub(crate) use provided_tool::ListedBy;
pub use provided_tool::{FoundTool, ProvidedTool};
pub use provider::{
    Followed, Instructions, Provider, ProviderState, SessionClient, Subscribed, Subscriber,
};
pub use references::ResolvedArguments;
#[cfg(feature = "query")]
pub(crate) use references::count_references;
pub(crate) use resource::ResourceStat;
pub use resource::{CacheRule, Resource};
pub use scope_rules::ScopeRules;
pub(crate) use stored_json::{StoredJson, stored_json};
pub use template::Template;
pub use tool::Tool;
pub(crate) use tool_search::rank_tools;
pub use tool_set::ToolSet;
pub(crate) use tool_set::{BuiltIn, ToolReach};

/// The tool that calls tools which are not listed.
pub(crate) const CALL_TOOL: &str = "call_tool";
/// The tool that finds lines.
pub(crate) const SEARCHING_TOOL: &str = "search_resource";
/// The tool that computes from stored content.
pub(crate) const QUERYING_TOOL: &str = "query_resource";
