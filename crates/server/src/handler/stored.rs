//! [`Stored`]: the result of a tool that stores its content as a resource.

use std::{future::IntoFuture, sync::Arc};

use futures_util::future::BoxFuture;
use larder_store::store::{Details, Entry};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Context, CreateResource, IntoContent, IntoToolResult, ResourceError, Scope, Structure,
    ToolError,
    context::details_setters,
    structure::with_structured,
    tool_calls::{call, read_arguments, type_and_size},
};

/// The tool that reads stored results.
pub const READING_TOOL: &str = "read_resource";

/// The number of lines that the next call reads.
const LINES_TO_READ: u64 = 100;

/// A stored resource, for programs and for later steps of a workflow.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoredFacts {
    uri: String,
    mime_type: String,
    /// In bytes.
    size: u64,
    /// When it expires (RFC 3339).
    expires: String,
}

impl StoredFacts {
    pub(crate) fn new(entry: &Entry) -> Self {
        Self {
            uri: entry.uri.as_str().to_owned(),
            mime_type: entry.mime_type.clone(),
            size: entry.size,
            expires: entry.expires.to_string(),
        }
    }
}

/// The result of a tool that stores its content as a resource: a text with the URI and the
/// next call, a link, and these facts as structured content. From [`Context::store`].
#[derive(Debug, Clone)]
pub struct Stored {
    entry: Arc<Entry>,
    text: String,
    /// Whether the caller may use the tool that reads the resource.
    can_read: bool,
}

impl Stored {
    /// Sets the start of the text, such as `Found 3 lines.`
    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// The stored resource.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The URI of the resource.
    pub fn uri(&self) -> &str {
        self.entry.uri.as_str()
    }

    fn text(&self) -> String {
        let Self { entry, text, .. } = self;
        let space = if text.is_empty() { "" } else { " " };
        let stored = format!(
            "{text}{space}Stored as {}: {}. It expires at {}.",
            entry.uri,
            type_and_size(entry),
            entry.expires
        );

        if !self.can_read {
            return stored;
        }

        let arguments = read_arguments(entry, LINES_TO_READ);
        format!("{stored} Next: {}.", call(READING_TOOL, &arguments))
    }
}

impl IntoToolResult for Stored {
    fn structure() -> Option<Structure> {
        Some(Structure::new::<StoredFacts>(true))
    }

    fn into_tool_result(self) -> CallToolResult {
        let text = ContentBlock::text(self.text());
        CallToolResult::success(vec![text, self.entry.to_link()])
    }

    fn into_structured_result(self) -> CallToolResult {
        with_structured(StoredFacts::new(&self.entry), self.into_tool_result())
    }
}

impl<S> Context<S> {
    /// Stores content as a resource of the caller. Await the returned builder, or set
    /// metadata first. The URI cannot be guessed, unless it is set.
    ///
    /// ```
    /// use larder_server::{Context, Registry, Stored, Tool, ToolError};
    ///
    /// /// Searches the logs.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Search {
    ///     /// The text to find.
    ///     query: String,
    /// }
    ///
    /// async fn search(ctx: Context, args: Search) -> Result<Stored, ToolError> {
    ///     let found = vec![args.query; 100_000];
    ///     let stored = ctx.store(found.join("\n")).name("Results").await?;
    ///     Ok(stored.say(format!("Found {} lines.", found.len())))
    /// }
    /// # assert!(Registry::builder("logs").tool(Tool::new(search)).build().is_ok());
    /// ```
    pub fn store<C: IntoContent + Send>(&self, content: C) -> StoreContent<'_, C> {
        let uri = self.mint_uri();
        StoreContent { scope: self.scope(), uri, content, details: Details::default() }
    }
}

/// Stores content when awaited.
#[must_use = "nothing is stored until it is awaited"]
pub struct StoreContent<'a, C> {
    scope: &'a Scope,
    uri: String,
    content: C,
    details: Details,
}

impl<C> StoreContent<'_, C> {
    /// The URI. Default: a URI that cannot be guessed.
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = uri.into();
        self
    }

    details_setters!();
}

impl<'a, C: IntoContent + Send + 'a> IntoFuture for StoreContent<'a, C> {
    type Output = Result<Stored, ToolError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { scope, uri, content, details } = self;
            let content = content.into_content().await.map_err(not_readable)?;
            let entry = CreateResource::new(scope, uri, content).details(details).await?;
            let can_read = scope.server.offers(scope.identity.grant(), READING_TOOL);
            Ok(Stored { entry, text: String::new(), can_read })
        })
    }
}

/// The error for content that is read when it is stored, such as a file.
fn not_readable(error: ResourceError) -> ToolError {
    match error {
        ResourceError::NotFound => ToolError::new("There is no content to store."),
        ResourceError::Fault(fault) => ToolError::new(fault.to_string()),
        ResourceError::Failed(message) => ToolError::new(message),
    }
}
