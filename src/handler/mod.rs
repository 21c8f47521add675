//! What a handler works with: [`Context`], questions to the client, and the
//! types that handlers return.
//!
//! A handler reaches the server around it through [`Server`], which the
//! registry implements.

mod ask;
mod call_tool;
mod context;
mod control;
mod error;
mod media;
mod messages;
mod result;
mod roots;
mod server;
mod structured;

pub use ask::{
    AskError, Asking, Elicited, InputRequired, Root, Rounds, Route, Sampled, Sampling, Seal,
};
pub use context::{Context, CreateResource, Scope, UpdateResource};
pub use control::{Control, Paused};
pub use error::{ResourceError, ToolError};
pub use media::{Audio, Image};
pub use messages::{IntoPromptMessage, IntoPromptResult, assistant, user};
pub use result::{IntoContent, IntoToolResult, Json};
pub use roots::within_roots;
pub use server::{Server, StaticContent};
pub use structured::{Structure, Structured};
