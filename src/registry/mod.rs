//! What a server offers: tools, resources and templates, checked as a whole
//! when it is built; and [`Context`], what a handler has at hand.
//!
//! Nothing here knows how a call arrived.

mod ask;
mod builder;
mod catalog;
mod collection;
mod complete;
mod context;
mod control;
mod edit;
mod error;
mod headers;
mod nested;
mod output;
mod paging;
mod prompt;
mod resource;
mod schema;
mod template;
mod tool;

pub use ask::{
    AskError, Asking, Elicited, InputRequired, Root, Rounds, Route, Sampled, Sampling, Seal,
};
pub use builder::{BuildError, Builder};
pub use catalog::{Catalog, Registry};
use complete::Completers;
pub use complete::Completing;
pub use context::{Context, CreateResource, Scope, UpdateResource};
pub use control::{Control, Paused, TaskHandle};
pub use error::{ResourceError, ToolError};
pub use headers::HeaderParameter;
pub use output::{IntoContent, IntoPromptResult, IntoToolResult, Json};
pub use paging::{Cursor, PageOf};
pub use prompt::Prompt;
pub use resource::Resource;
pub use template::{Template, UriTemplate, Variables};
pub use tool::Tool;
