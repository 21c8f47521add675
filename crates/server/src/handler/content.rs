//! The return types of resource handlers.

use bytes::Bytes;
use larder_store::store::Content;
use serde::Serialize;
use serde_json::Value;

use super::{Json, ResourceError};

/// A return type of resource handlers. Strings and JSON become `text`, bytes
/// become `blob`; a [`FileResource`](crate::FileResource) or an
/// [`HttpResource`](crate::HttpResource) is read.
pub trait IntoContent {
    /// Converts to content.
    fn into_content(self) -> impl Future<Output = Result<Content, ResourceError>> + Send;
}

macro_rules! into_content {
    ($($type:ty),*) => {$(
        impl IntoContent for $type {
            fn into_content(self) -> impl Future<Output = Result<Content, ResourceError>> + Send {
                std::future::ready(Ok(self.into()))
            }
        }
    )*};
}

into_content!(Content, String, &str, Value, Vec<u8>, Bytes);

impl<T: Serialize> IntoContent for Json<T> {
    fn into_content(self) -> impl Future<Output = Result<Content, ResourceError>> + Send {
        let content = serde_json::to_value(self.0).map(Content::from).map_err(|error| {
            tracing::error!(%error, "a resource does not serialize");
            ResourceError::Failed("The resource could not be written as JSON.".into())
        });
        std::future::ready(content)
    }
}

impl<T: IntoContent + Send, E: Into<ResourceError> + Send> IntoContent for Result<T, E> {
    async fn into_content(self) -> Result<Content, ResourceError> {
        self.map_err(Into::into)?.into_content().await
    }
}
