//! The contents that reading a resource returns.

use larder_protocol::{Fault, quote::shortened};
use larder_store::store::Content;
use rmcp::model::JsonObject;

use super::{IntoContent, ResourceError};

/// The contents of a resource: one, or several with URIs of their own, such as the files of a
/// directory (2026-07-28, resources: Reading Resources).
///
/// ```
/// use larder_server::{Context, Contents, Resource};
///
/// let pages: Resource = Resource::new("docs://guide", |_: Context| async {
///     Contents::with_uri("docs://guide/1", "Install it.").and("docs://guide/2", "Run it.")
/// });
/// ```
#[derive(Debug)]
pub struct Contents {
    /// The first content.
    pub(crate) first: ReadContent,
    /// The further contents, in order.
    pub(crate) further: Vec<ReadContent>,
    /// The `_meta` of the result.
    pub(crate) meta: Option<JsonObject>,
}

/// A content of a resource that is being read.
#[derive(Debug)]
pub struct ReadContent {
    /// The URI. Default: the URI of the resource.
    pub uri: Option<String>,
    /// The media type. Default: the media type of the resource or of the content's type.
    pub mime_type: Option<String>,
    /// The `_meta` of the content.
    pub meta: Option<JsonObject>,
    /// The text or the bytes.
    pub content: Content,
}

impl From<Content> for ReadContent {
    fn from(content: Content) -> Self {
        let mime_type = content.explicit_mime_type().map(str::to_owned);
        Self { uri: None, mime_type, meta: None, content }
    }
}

impl From<ReadContent> for Contents {
    fn from(first: ReadContent) -> Self {
        Self { first, further: Vec::new(), meta: None }
    }
}

impl From<Content> for Contents {
    fn from(content: Content) -> Self {
        ReadContent::from(content).into()
    }
}

impl Contents {
    /// A content with a URI of its own. Further contents follow with [`Contents::and`].
    pub fn with_uri(uri: impl Into<String>, content: impl Into<Content>) -> Self {
        Self::from(named(uri, content))
    }

    /// The contents of a resource, which has one at least.
    pub fn of(first: ReadContent, further: Vec<ReadContent>) -> Self {
        Self { first, further, meta: None }
    }

    /// The contents in a result with this `_meta`.
    #[must_use]
    pub fn with_meta(self, meta: Option<JsonObject>) -> Self {
        Self { meta, ..self }
    }

    /// Adds a content.
    #[must_use]
    pub fn and(mut self, uri: impl Into<String>, content: impl Into<Content>) -> Self {
        self.further.push(named(uri, content));
        self
    }

    /// The only content.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] if the resource, whose URI is for the message, has several.
    pub(crate) fn only(self, uri: &str) -> Result<ReadContent, Fault> {
        match self.further.len() {
            0 => Ok(self.first),
            further => Err(Fault::invalid_params(format!(
                "{} has {} contents, which only resources/read returns.",
                shortened(uri),
                further + 1
            ))),
        }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ReadContent> {
        std::iter::once(&mut self.first).chain(&mut self.further)
    }
}

impl IntoIterator for Contents {
    type Item = ReadContent;
    type IntoIter = std::iter::Chain<std::iter::Once<ReadContent>, std::vec::IntoIter<ReadContent>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.further)
    }
}

fn named(uri: impl Into<String>, content: impl Into<Content>) -> ReadContent {
    let content: Content = content.into();
    ReadContent { uri: Some(uri.into()), ..content.into() }
}

/// A return type of resource handlers: an [`IntoContent`], or [`Contents`].
pub trait IntoContents {
    /// Converts to contents.
    fn into_contents(self) -> impl Future<Output = Result<Contents, ResourceError>> + Send;
}

impl<T: IntoContent + Send> IntoContents for T {
    async fn into_contents(self) -> Result<Contents, ResourceError> {
        Ok(self.into_content().await?.into())
    }
}

impl IntoContents for Contents {
    async fn into_contents(self) -> Result<Contents, ResourceError> {
        Ok(self)
    }
}

impl<E: Into<ResourceError> + Send> IntoContents for Result<Contents, E> {
    async fn into_contents(self) -> Result<Contents, ResourceError> {
        self.map_err(Into::into)
    }
}
