//! What a server offers: tools, resources and templates, checked as a whole
//! when it is built; and [`Context`], what a handler has at hand.
//!
//! Nothing here knows how a call arrived.

mod access;
mod addresses;
mod ask;
mod builder;
mod by_hand;
mod catalog;
mod checked;
mod collection;
mod complete;
mod context;
mod control;
mod edit;
mod error;
mod file;
mod headers;
mod item;
mod marks;
mod media;
mod messages;
mod nested;
mod output;
mod paging;
mod prompt;
mod resource;
mod roots;
mod schema;
mod sniff;
mod spill;
mod structured;
mod template;
mod tool;
mod uri_template;
mod web;

pub use access::Access;
pub use ask::{
    AskError, Asking, Elicited, InputRequired, Root, Rounds, Route, Sampled, Sampling, Seal,
};
pub use builder::{BuildError, Builder};
pub use catalog::{Catalog, Registry};
use complete::Completers;
pub use complete::Completing;
pub use context::{Context, CreateResource, Scope, UpdateResource};
pub use control::{Control, Paused};
pub use error::{ResourceError, ToolError};
pub use file::{DirectoryResource, FileResource};
pub use headers::HeaderParameter;
pub use media::{Audio, Image};
pub use messages::{IntoPromptMessage, IntoPromptResult, assistant, user};
pub use output::{IntoContent, IntoToolResult, Json};
pub use paging::{Cursor, PageOf};
pub use prompt::Prompt;
pub use resource::Resource;
pub use roots::within_roots;
pub use spill::{OutputRules, Spill, Spilling};
pub use structured::{Structure, Structured};
pub use template::{Template, Variables};
pub use tool::Tool;
pub use uri_template::UriTemplate;
use uri_template::decode_segment;
pub(crate) use uri_template::leads_out;
pub use web::HttpResource;
