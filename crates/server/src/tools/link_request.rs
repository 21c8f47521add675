//! Links of `download_url` and `upload_url`: the request, its lifetime, and its quoting.

use std::{collections::BTreeMap, time::Duration};

use larder_records::words::number;
use larder_runtime::clock::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    content_link::{BaseUrl, ContentLinks},
    handler::{Context, ToolError},
};

/// An HTTP request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    /// The method. For a download, POST responds with a redirect to the content.
    method: &'static str,
    /// The URL.
    url: String,
    /// The headers that it needs: none.
    headers: BTreeMap<String, String>,
    /// When the URL expires, in RFC 3339.
    expires_at: String,
}

impl Request {
    pub(super) fn new(method: &'static str, url: String, expires: Timestamp) -> Self {
        Self { method, url, headers: BTreeMap::new(), expires_at: expires.to_string() }
    }
}

/// The links of the server and their base.
pub(super) fn links<S>(ctx: &Context<S>) -> Result<(&ContentLinks, &BaseUrl), ToolError> {
    let links = ctx.registry().content_links().ok_or_else(no_url)?;
    Ok((links, links.base().ok_or_else(no_url)?))
}

pub(super) fn no_url() -> ToolError {
    ToolError::permanent("This server does not know its URL: set server.public_url.")
}

/// The lifetime of a link, in seconds if it is given.
pub(super) fn lifetime(
    links: &ContentLinks,
    seconds: Option<f64>,
    default: Duration,
) -> Result<Duration, ToolError> {
    let max = links.max_expires;
    let Some(seconds) = seconds else { return Ok(default.min(max)) };

    if !(seconds >= 1.0 && seconds <= max.as_secs_f64()) {
        return Err(ToolError::permanent(format!(
            "expires must be between 1 and {} seconds (content.max_expires).",
            number(max.as_secs())
        )));
    }

    Ok(Duration::from_secs_f64(seconds))
}

/// A word of a POSIX shell.
pub(super) fn quoted_for_shell(word: &str) -> String {
    // A name that begins with a hyphen would be an option.
    let path = if word.starts_with('-') { "./" } else { "" };
    format!("'{path}{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_one_word_of_a_shell() {
        assert_eq!(quoted_for_shell("it's $(rm)"), "'it'\\''s $(rm)'");
        assert_eq!(quoted_for_shell("-o"), "'./-o'");
    }
}
