//! Workflows: prompts whose steps run on the server. Each step can use the
//! results of earlier ones, and one `prompts/get` returns the complete transcript.
//!
//! ```
//! use larder_protocol::uri_template::Variables;
//! use larder_server::{Context, Registry, Resource, Template, Tool, workflow::{dsl::*, self}};
//!
//! /// Returns the current game.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct GetMyProgress;
//!
//! let hint = SequentialWorkflow::new("get_hint", "Get a hint for the current game")
//!     .step(
//!         WorkflowStep::new("get_progress", ToolHandle::new("get_my_progress"))
//!             .with_guidance("I'll check your current game progress first...")
//!             .bind("user_progress"),
//!     )
//!     .step(
//!         WorkflowStep::new("read_walkthrough", ResourceHandle::new("if://walkthrough/{game_id}"))
//!             .with_template_binding("game_id", field("user_progress", "game_id"))
//!             .bind("walkthrough"),
//!     )
//!     .finish();
//! let registry = Registry::builder("interactive-fiction")
//!     .with(workflow::prompt(hint))
//!     .tool(Tool::new(|_: Context, _: GetMyProgress| async { r#"{"game_id":"zork1"}"# }))
//!     .template(Template::new("if://walkthrough/{game_id}", "Walkthrough", |_, v: Variables| async move {
//!         format!("How to play {}", v["game_id"])
//!     }))
//!     .build()?;
//! assert_eq!(registry.prompts(None)?.items[0].name, "get_hint");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Building the server checks each workflow: steps, bindings, arguments, tools and
//! URIs. It reports all problems at once; the order of registration does not
//! matter.

mod check;
mod completing;
mod definition;
pub mod dsl;
mod each;
mod outcome;
mod path;
mod register;
mod run;
mod source;
mod step;
mod step_result;
mod transcript;
mod uri_pattern;

pub use check::Problem;
pub use definition::{Argument, ArgumentKind, SequentialWorkflow};
pub use register::{prompt, prompt_showing};
pub use source::{
    DataSource, SourceError, Transform, constant, field, from_step, item, item_field, prompt_arg,
    template,
};
pub use step::{
    Condition, OnError, ResourceHandle, ToolHandle, WorkflowStep, equals, exists, not_equals,
    one_of,
};
pub use uri_pattern::{ExpansionError, PatternError, UncheckedUri, UriPattern};

/// A step that reads a resource: short for [`WorkflowStep::new`] with a
/// [`ResourceHandle`], named `read URI`.
pub fn read_resource(uri: impl Into<String>) -> WorkflowStep {
    let uri = uri.into();
    WorkflowStep::new(format!("read {uri}"), ResourceHandle::new(uri))
}

/// [`read_resource`] under a name that reads better for several resources:
/// `read_resources("docs://{id}").with_template_binding("id", from_step("ids")).for_each()`.
pub fn read_resources(uri: impl Into<String>) -> WorkflowStep {
    read_resource(uri)
}
