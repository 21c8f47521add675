//! The name of a resource.

use std::{borrow::Borrow, fmt, sync::Arc};

use iri_string::types::UriStr;
use serde::{Deserialize, Serialize};

/// The longest URI taken, in bytes. Longer ones are data, not names.
const MAX_URI_BYTES: usize = 2048;

/// Where results that were put by lie.
const RESULTS: &str = "larder://r/";

/// A URI by RFC 3986, of any scheme, kept byte for byte as the caller chose it.
///
/// ```
/// use larder::store::ResourceUri;
///
/// assert!(ResourceUri::parse("results://search/42").is_ok());
/// assert!(ResourceUri::parse("urn:isbn:0451450523").is_ok());
/// // No scheme, a space, something that is not ASCII, far too long: refused.
/// assert!(ResourceUri::parse("search/42").is_err());
/// assert!(ResourceUri::parse("results://a b").is_err());
/// assert!(ResourceUri::parse("results://ä").is_err());
/// assert!(ResourceUri::parse(&format!("x:{}", "a".repeat(5000))).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceUri(Arc<str>);

/// Not a URI that can name a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{quoted} is not a URI (RFC 3986): {reason}. Write it like results://search/42, with percent-encoding for other characters."
)]
pub struct InvalidUri {
    quoted: String,
    reason: String,
}

impl ResourceUri {
    /// Checks that `uri` is an absolute URI of bearable length.
    pub fn parse(uri: &str) -> Result<Self, InvalidUri> {
        let invalid = |reason: String| {
            let start: String = uri.chars().take(80).collect();
            Err(InvalidUri { quoted: format!("{start:?}"), reason })
        };
        if uri.len() > MAX_URI_BYTES {
            return invalid(format!(
                "it has {} bytes, at most {MAX_URI_BYTES} are taken",
                uri.len()
            ));
        }
        match UriStr::new(uri) {
            Ok(_) => Ok(Self(uri.into())),
            Err(_) if !uri.contains(':') => invalid("it has no scheme".into()),
            Err(_) => invalid("it holds characters that a URI cannot hold as they are".into()),
        }
    }

    /// A name for a result of that tool, which nobody can guess as long as `id`
    /// is random. Who reads it later can tell which tool to run again.
    ///
    /// ```
    /// use larder::store::ResourceUri;
    ///
    /// let uri = ResourceUri::of_result("search_logs", "8d1f3c").unwrap();
    /// assert_eq!(uri.as_str(), "larder://r/search_logs/8d1f3c");
    /// assert_eq!(uri.made_by(), Some("search_logs"));
    /// ```
    ///
    /// # Errors
    /// When the tool's name has characters that a URI cannot hold.
    pub fn of_result(tool: &str, id: &str) -> Result<Self, InvalidUri> {
        Self::parse(&format!("{RESULTS}{tool}/{id}"))
    }

    /// The tool whose result this names, if the name says so.
    pub fn made_by(&self) -> Option<&str> {
        let (tool, id) = self.0.strip_prefix(RESULTS)?.split_once('/')?;
        (!tool.is_empty() && !id.is_empty() && !id.contains('/')).then_some(tool)
    }

    /// The URI, as it was given.
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
