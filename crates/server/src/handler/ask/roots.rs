//! Roots: the directories in which the client lets the server work.

use std::path::{Path, PathBuf};

use iri_string::types::UriStr;
use larder_protocol::describe;
use serde::Deserialize;
use serde_json::json;

use super::{capability::Capability, request::AskError};
use crate::handler::Context;

/// A directory or file in which the client lets the server work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// The name to display.
    #[serde(default)]
    pub name: Option<String>,
}

impl<S> Context<S> {
    /// Requests the client's roots.
    ///
    /// # Errors
    /// The errors of [`Context::elicit`].
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        #[derive(Deserialize)]
        struct ListRootsResult {
            roots: Vec<Root>,
        }

        let parse = |result| {
            let parsed: Result<ListRootsResult, _> = serde_json::from_value(result);
            parsed.map(|r| r.roots).map_err(|error| describe(&error))
        };
        self.ask(key, Capability::Roots, "roots/list", json!({}), parse).await
    }
}

/// Whether a `file:` URI is one of the client's roots or below one. Compares
/// the percent-decoded paths and does not resolve symbolic links. A URI with
/// `..` is below no root.
///
/// ```
/// use larder_server::{Root, within_roots};
///
/// let roots = [Root { uri: "file:///home/ana/project".into(), name: None }];
/// assert!(within_roots(&roots, "file:///home/ana/project/src/main.rs"));
/// assert!(!within_roots(&roots, "file:///home/ana/project/../.ssh/id"));
/// assert!(!within_roots(&roots, "file:///home/ana/projects"));
/// ```
pub fn within_roots(roots: &[Root], uri: &str) -> bool {
    let Some(file) = segments(uri) else { return false };
    roots
        .iter()
        .any(|root| segments(&root.uri).is_some_and(|root| file.starts_with(root.as_slice())))
}

/// The path of the root that contains a `file:` URI, and the path of the file below it.
pub(crate) fn below_root(roots: &[Root], uri: &str) -> Option<(PathBuf, PathBuf)> {
    let file = segments(uri)?;
    let root =
        roots.iter().filter_map(|root| segments(&root.uri)).find(|root| file.starts_with(root))?;

    // A path of Windows begins with its drive.
    let start = if cfg!(windows) { "" } else { "/" };
    let below = file[root.len()..].iter().collect();
    Some((Path::new(start).join(root.iter().collect::<PathBuf>()), below))
}

/// The percent-decoded segments of the path. `None` if the URI is not a `file:`
/// URI of this machine.
fn segments(uri: &str) -> Option<Vec<String>> {
    let uri = UriStr::new(uri).ok()?;
    let is_local = matches!(uri.authority_str(), Some("" | "localhost") | None);
    if !uri.scheme_str().eq_ignore_ascii_case("file") || !is_local || uri.query().is_some() {
        return None;
    }

    let absolute = uri.path_str().strip_prefix('/')?;
    let path = absolute.strip_suffix('/').unwrap_or(absolute);
    if path.is_empty() {
        return Some(Vec::new());
    }
    path.split('/').map(larder_protocol::uri_template::decode_segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(uri: &str) -> Root {
        Root { uri: uri.into(), name: None }
    }

    #[test]
    fn only_roots_and_paths_below_them_are_within_roots() {
        let roots = [root("file:///a/b%20c/"), root("https://e.com/x")];
        for (uri, within) in [
            ("file:///a/b%20c", true),
            ("file:///a/b%20c/d", true),
            ("FILE://localhost/a/%62%20c/d/e", true),
            ("file:///a/b%20cd", false),
            ("file:///a", false),
            ("file:///a/b%20c/../d", false),
            ("file:///a/b%20c/%2e%2e/d", false),
            ("file:///a/b%20c/..%2fd", false),
            ("file:///a/b%20c/%00", false),
            ("file:///a/b%20c//d", false),
            ("file://elsewhere/a/b%20c/d", false),
            ("file:a/b%20c/d", false),
            ("https://e.com/x/y", false),
            ("/a/b c/d", false),
        ] {
            assert_eq!(within_roots(&roots, uri), within, "{uri}");
        }

        assert!(within_roots(&[root("file:///")], "file:///etc/hosts"));
        assert!(!within_roots(&[], "file:///a"));
    }
}
