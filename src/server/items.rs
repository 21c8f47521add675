//! Items that a server takes, and the functions that the macros make of functions.

use larder_server::registry::{Builder, Prompt, Resource, Template, Tool};

/// A tool, or a function under `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "this is not a tool",
    label = "not a tool",
    note = "write #[tool] above a function, or make a tool by `Tool::new`"
)]
pub trait IntoTool<S> {
    /// The tool.
    fn into_tool(self) -> Tool<S>;
}

impl<S> IntoTool<S> for Tool<S> {
    fn into_tool(self) -> Tool<S> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<S, F: FnOnce() -> Tool<S>> IntoTool<S> for F {
    fn into_tool(self) -> Tool<S> {
        self()
    }
}

/// A prompt, or a function under `#[prompt]`.
#[diagnostic::on_unimplemented(
    message = "this is not a prompt",
    label = "not a prompt",
    note = "write #[prompt] above a function, or make a prompt by `Prompt::new`"
)]
pub trait IntoPrompt<S> {
    /// The prompt.
    fn into_prompt(self) -> Prompt<S>;
}

impl<S> IntoPrompt<S> for Prompt<S> {
    fn into_prompt(self) -> Prompt<S> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<S, F: FnOnce() -> Prompt<S>> IntoPrompt<S> for F {
    fn into_prompt(self) -> Prompt<S> {
        self()
    }
}

/// A resource or a template.
pub trait ResourceItem<S>: Send + 'static {
    /// Adds it.
    fn add_to(self, builder: Builder<S>) -> Builder<S>;
}

impl<S: Send + Sync + 'static> ResourceItem<S> for Resource<S> {
    fn add_to(self, builder: Builder<S>) -> Builder<S> {
        builder.resource(self)
    }
}

impl<S: Send + Sync + 'static> ResourceItem<S> for Template<S> {
    fn add_to(self, builder: Builder<S>) -> Builder<S> {
        builder.template(self)
    }
}

/// A resource, a template, or a function under `#[resource]`.
#[diagnostic::on_unimplemented(
    message = "this is not a resource",
    label = "not a resource",
    note = "write #[resource] above a function, or make a resource by `Resource::new`"
)]
pub trait IntoResource<S> {
    /// The type of the item.
    type Item: ResourceItem<S>;

    /// The resource or template.
    fn into_resource(self) -> Self::Item;
}

impl<S: Send + Sync + 'static> IntoResource<S> for Resource<S> {
    type Item = Self;

    fn into_resource(self) -> Self {
        self
    }
}

impl<S: Send + Sync + 'static> IntoResource<S> for Template<S> {
    type Item = Self;

    fn into_resource(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<S, I: ResourceItem<S>, F: FnOnce() -> I> IntoResource<S> for F {
    type Item = I;

    fn into_resource(self) -> I {
        self()
    }
}
