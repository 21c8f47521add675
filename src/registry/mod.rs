//! What a server offers: tools, prompts, resources and templates, checked as a
//! whole when the server is built.
//!
//! The registry does not know how a call arrived.

mod access;
mod builder;
mod catalog;
mod checked;
mod collection;
mod complete;
mod custom;
mod edit;
mod headers;
mod item;
mod marks;
mod output_rules;
mod paging;
mod prompt;
mod resource;
mod server;
mod spilled_schema;
mod template;
mod tool;

pub use access::Access;
pub use builder::{BuildError, Builder};
pub use catalog::{Catalog, Registry};
pub use complete::Completing;
pub use headers::HeaderParameter;
pub(crate) use output_rules::READING_TOOL;
pub use output_rules::{OutputRules, Spill};
pub use paging::{Cursor, PageOf};
pub use prompt::Prompt;
pub(crate) use resource::Facts;
pub use resource::Resource;
pub use template::Template;
pub use tool::Tool;
