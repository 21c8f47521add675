//! Workflows: prompts that run their steps on the server, each with what
//! earlier ones found, so that one `prompts/get` gives the model everything.
//!
//! ```
//! use larder::{Context, Registry, Resource, Template, Tool, Variables, workflow::{dsl::*, self}};
//!
//! /// Says which game is on.
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
//! Everything that can be known before a workflow runs is checked when the
//! server is built: steps, bindings, arguments, tools and URIs, all faults at
//! once, whatever the order of registration.

mod check;
mod definition;
pub mod dsl;
mod outcome;
mod pattern;
mod register;
mod run;
mod source;
mod step;
mod transcript;

pub use check::{Problem, problems};
pub use definition::{Argument, ArgumentKind, SequentialWorkflow};
pub use pattern::{Pattern, PatternError, WrittenUri};
pub use register::{prompt, prompt_showing};
pub use source::{
    DataSource, SourceError, Transform, constant, field, from_step, prompt_arg, template,
};
pub use step::{
    Condition, OnError, ResourceHandle, ToolHandle, WorkflowStep, equals, exists, not_equals,
    one_of,
};

/// The tutorial's code.
#[cfg(doctest)]
#[doc = include_str!("../../docs/workflows.md")]
struct Tutorial;

/// A step that reads a resource; short for [`WorkflowStep::new`] with a
/// [`ResourceHandle`] and the URI as its name.
pub fn read_resource(uri: impl Into<String>) -> WorkflowStep {
    let uri = uri.into();
    WorkflowStep::new(format!("read {uri}"), ResourceHandle::new(uri))
}

/// The same, for a step that will read several:
/// `read_resources("docs://{id}").with_template_binding("id", from_step("ids")).for_each()`.
pub fn read_resources(uri: impl Into<String>) -> WorkflowStep {
    read_resource(uri)
}
