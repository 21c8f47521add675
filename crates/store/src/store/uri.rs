//! [`ResourceUri`]: the URI of a resource.

use std::{borrow::Borrow, fmt, sync::Arc};

use iri_string::types::UriStr;
use larder_protocol::quote::quoted;
use serde::{Deserialize, Serialize};

/// The maximum length of a URI in bytes. A longer text is data, not a name.
pub const MAX_URI_BYTES: usize = 2048;

/// The prefix of the URIs of stored tool results.
const RESULT_PREFIX: &str = "larder://r/";

/// A URI (RFC 3986) of any scheme, stored byte for byte as the caller chose it.
///
/// ```
/// use larder_store::store::ResourceUri;
///
/// assert!(ResourceUri::parse("results://search/42").is_ok());
/// assert!(ResourceUri::parse("urn:isbn:0451450523").is_ok());
/// // No scheme, a space, not ASCII, too long.
/// assert!(ResourceUri::parse("search/42").is_err());
/// assert!(ResourceUri::parse("results://a b").is_err());
/// assert!(ResourceUri::parse("results://ä").is_err());
/// assert!(ResourceUri::parse(&format!("x:{}", "a".repeat(5000))).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceUri(Arc<str>);

/// The error for a text that is not a URI of a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{quoted} is not a URI (RFC 3986): {reason}. Example: results://search/42; percent-encode other characters."
)]
pub struct InvalidUri {
    quoted: String,
    reason: String,
}

impl ResourceUri {
    /// Parses an absolute URI of at most 2,048 bytes.
    ///
    /// # Errors
    /// [`InvalidUri`], with the reason.
    pub fn parse(uri: &str) -> Result<Self, InvalidUri> {
        let invalid = |reason: String| Err(InvalidUri { quoted: quoted(uri), reason });
        if uri.len() > MAX_URI_BYTES {
            return invalid(format!(
                "it has {} bytes, at most {MAX_URI_BYTES} are allowed",
                uri.len()
            ));
        }

        match UriStr::new(uri) {
            Ok(_) => Ok(Self(uri.into())),
            Err(_) if !uri.contains(':') => invalid("it has no scheme".into()),
            Err(_) => invalid("it has characters that a URI cannot contain unencoded".into()),
        }
    }

    /// The name of a resource outside of the store, as another server chose it: it need not be a
    /// URI. The store never holds such a name.
    pub fn of_listed(name: &str) -> Self {
        Self(name.into())
    }

    /// A URI for a result of a tool. It cannot be guessed if `id` is random. It
    /// names the tool, so that the error for an expired result can name the tool
    /// to run again.
    ///
    /// ```
    /// use larder_store::store::ResourceUri;
    ///
    /// let uri = ResourceUri::for_result("search_logs", "8d1f3c").unwrap();
    /// assert_eq!(uri.as_str(), "larder://r/search_logs/8d1f3c");
    /// assert_eq!(uri.result_tool(), Some("search_logs"));
    /// ```
    ///
    /// # Errors
    /// [`InvalidUri`], if the tool's name has characters that a URI cannot contain.
    pub fn for_result(tool: &str, id: &str) -> Result<Self, InvalidUri> {
        Self::parse(&format!("{RESULT_PREFIX}{tool}/{id}"))
    }

    /// The tool whose result this URI names, if [`for_result`](Self::for_result) made the URI.
    pub fn result_tool(&self) -> Option<&str> {
        let (tool, id) = self.0.strip_prefix(RESULT_PREFIX)?.split_once('/')?;
        (!tool.is_empty() && !id.is_empty() && !id.contains('/')).then_some(tool)
    }

    /// The URI as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for ResourceUri {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ResourceUri {
    type Error = InvalidUri;

    fn try_from(uri: String) -> Result<Self, InvalidUri> {
        Self::parse(&uri)
    }
}

impl From<ResourceUri> for String {
    fn from(uri: ResourceUri) -> Self {
        uri.0.as_ref().to_owned()
    }
}
