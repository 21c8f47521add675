//! Text or bytes: by media type, by what is there, or as somebody said.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use crate::store::Content;

/// Whether what has that media type is text to be sent as such.
pub(super) fn is_text(mime_type: &str) -> bool {
    let (essence, parameters) = mime_type.split_once(';').unwrap_or((mime_type, ""));
    let essence = essence.trim().to_ascii_lowercase();
    let other_charset = parameters.split(';').any(|parameter| {
        let charset = parameter.trim().to_ascii_lowercase();
        let charset =
            charset.strip_prefix("charset=").unwrap_or("utf-8").trim_matches('"').to_owned();
        !matches!(&*charset, "utf-8" | "utf8" | "us-ascii")
    });
    let texts = ["json", "xml", "javascript", "yaml", "x-yaml", "toml", "x-sh", "sql", "graphql"];
    let is_text = essence.starts_with("text/")
        || essence.split_once('/').is_some_and(|(_, kind)| {
            texts.contains(&kind) || kind.ends_with("+json") || kind.ends_with("+xml")
        });
    is_text && !other_charset
}

/// Content of unknown kind: text if it may be and its beginning is, bytes otherwise.
pub(super) async fn sniff(
    mut pieces: impl Stream<Item = std::io::Result<Bytes>> + Send + Unpin + 'static,
    may_be_text: bool,
) -> Content {
    let first = pieces.next().await;
    let looks_like_text = match &first {
        Some(Ok(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => !text.contains('\0'),
            // A character may be cut at the piece's end.
            Err(e) => e.error_len().is_none() && e.valid_up_to() > 0,
        },
        Some(Err(_)) => false,
        None => true,
    };
    let whole = stream::iter(first).chain(pieces);
    if may_be_text && looks_like_text {
        Content::text_stream(whole)
    } else {
        Content::byte_stream(whole)
    }
}
