//! Setters for custom handlers of whole methods.

use larder_protocol::Fault;
use rmcp::model::{self, JsonObject, Reference};

use super::Builder;
use crate::{
    handler::{Context, IntoContents, IntoPromptResult, IntoToolResult, ResourceError},
    registry::{complete::CompletionInput, custom::CustomCompleter},
};

impl<S: Send + Sync + 'static> Builder<S> {
    /// Handles `tools/list`. The list can be different for each caller. Needs
    /// [`Builder::call_tool`], and excludes [`Builder::tool`].
    ///
    /// ```
    /// use larder_protocol::Fault;
    /// use larder_server::{Context, Registry};
    /// use rmcp::model::{JsonObject, Tool};
    /// use serde_json::json;
    ///
    /// let schema = json!({ "type": "object" }).as_object().cloned().unwrap_or_default();
    /// let ping = Tool::new("ping", "Answers.", schema);
    /// let registry = Registry::builder("custom")
    ///     .list_tools(move |_: Context| {
    ///         let tools = vec![ping.clone()];
    ///         async move { Ok(tools) }
    ///     })
    ///     .call_tool(|_: Context, _name: String, _arguments: JsonObject| async { Ok("pong") })
    ///     .build();
    /// assert!(registry.is_ok());
    /// ```
    #[must_use]
    pub fn list_tools<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Tool>, Fault>> + Send + 'static,
    {
        self.custom.tools.on_list(&self.state, list);
        self
    }

    /// Handles `tools/call`. The handler runs only for tools that
    /// [`Builder::list_tools`] lists for the caller. Arguments and structured
    /// content are validated against the listed schemas.
    #[must_use]
    pub fn call_tool<F, Fut, R>(mut self, call: F) -> Self
    where
        F: Fn(Context<S>, String, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Fault>> + Send + 'static,
        R: IntoToolResult + 'static,
    {
        self.custom.tools.on_call(&self.state, call);
        self
    }

    /// Handles `prompts/list`. The list can be different for each caller. Needs
    /// [`Builder::get_prompt`], and excludes [`Builder::prompt`].
    ///
    /// ```
    /// use larder_server::{Context, Registry};
    /// use rmcp::model::{JsonObject, Prompt};
    ///
    /// let registry = Registry::builder("custom")
    ///     .list_prompts(|_: Context| async {
    ///         Ok(vec![Prompt::new("greet", Some("Greets."), None)])
    ///     })
    ///     .get_prompt(|_: Context, _name: String, _arguments: JsonObject| async { Ok("Say hello.") })
    ///     .build();
    /// assert!(registry.is_ok());
    /// ```
    #[must_use]
    pub fn list_prompts<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Prompt>, Fault>> + Send + 'static,
    {
        self.custom.prompts.on_list(&self.state, list);
        self
    }

    /// Handles `prompts/get`. The handler runs only for prompts that
    /// [`Builder::list_prompts`] lists for the caller, only with arguments that
    /// are listed, and only with all required ones.
    #[must_use]
    pub fn get_prompt<F, Fut, R>(mut self, get: F) -> Self
    where
        F: Fn(Context<S>, String, JsonObject) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Fault>> + Send + 'static,
        R: IntoPromptResult + 'static,
    {
        self.custom.prompts.on_get(&self.state, get);
        self
    }

    /// Handles `resources/list` for static resources. The list can be different
    /// for each caller. Needs [`Builder::read_resource`]. Can be combined with
    /// [`Builder::resource`] and [`Builder::template`], which come first.
    ///
    /// ```
    /// use larder_server::{Context, Registry, ResourceError};
    /// use rmcp::model::Resource;
    ///
    /// let registry = Registry::builder("custom")
    ///     .list_resources(|_: Context| async { Ok(vec![Resource::new("docs://one", "one")]) })
    ///     .read_resource(|_: Context, uri: String| async move {
    ///         match uri.as_str() {
    ///             "docs://one" => Ok("The first page."),
    ///             _ => Err(ResourceError::NotFound),
    ///         }
    ///     })
    ///     .build();
    /// assert!(registry.is_ok());
    /// ```
    #[must_use]
    pub fn list_resources<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::Resource>, Fault>> + Send + 'static,
    {
        self.custom.resources.on_list(&self.state, list);
        self
    }

    /// Handles `resources/templates/list`. Needs [`Builder::read_resource`],
    /// which reads the URIs that match.
    #[must_use]
    pub fn list_resource_templates<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<model::ResourceTemplate>, Fault>> + Send + 'static,
    {
        self.custom.resources.on_list_templates(&self.state, list);
        self
    }

    /// Handles `resources/read` of static resources. The handler gets every URI
    /// for which there is neither a dynamic nor a registered resource, listed or
    /// not, and returns [`ResourceError::NotFound`] for unknown URIs. The URI is
    /// as the caller wrote it: a handler that uses a part as a file name must
    /// prevent path traversal
    /// ([`UriTemplate::matches`](larder_protocol::uri_template::UriTemplate::matches) does).
    #[must_use]
    pub fn read_resource<F, Fut, R>(mut self, read: F) -> Self
    where
        F: Fn(Context<S>, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ResourceError>> + Send + 'static,
        R: IntoContents + Send + 'static,
    {
        self.custom.resources.on_read(&self.state, read);
        self
    }

    /// Handles `completion/complete` for prompts and templates that are not
    /// registered. The handler gets the reference, the argument's name, and the text that
    /// the user has typed.
    #[must_use]
    pub fn complete<F, Fut>(mut self, suggest: F) -> Self
    where
        F: Fn(Context<S>, Reference, String, CompletionInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, Fault>> + Send + 'static,
    {
        self.custom.complete = Some(CustomCompleter::new(&self.state, suggest));
        self
    }
}
