//! Decides whether content is text or bytes.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use larder_store::store::Content;

/// Whether content of that media type can be sent as text: a text type in UTF-8
/// or ASCII.
pub(crate) fn is_text(mime_type: &str) -> bool {
    let (essence, parameters) = mime_type.split_once(';').unwrap_or((mime_type, ""));
    let essence = essence.trim().to_ascii_lowercase();

    let other_charset = parameters.split(';').any(|parameter| {
        let charset = parameter.trim().to_ascii_lowercase();
        let charset =
            charset.strip_prefix("charset=").unwrap_or("utf-8").trim_matches('"').to_owned();
        !matches!(&*charset, "utf-8" | "utf8" | "us-ascii")
    });

    let text_subtypes =
        ["json", "xml", "javascript", "yaml", "x-yaml", "toml", "x-sh", "sql", "graphql"];
    let is_text = essence.starts_with("text/")
        || essence.split_once('/').is_some_and(|(_, subtype)| {
            text_subtypes.contains(&subtype)
                || subtype.ends_with("+json")
                || subtype.ends_with("+xml")
        });

    is_text && !other_charset
}

/// Whether a text has no more than the odd NUL, as logs have after a crash. UTF-16 has many.
fn has_few_nuls(text: &str) -> bool {
    let nuls = text.bytes().filter(|byte| *byte == 0).count();
    nuls == 0 || (text.len() >= 8 && nuls <= 1 + text.len() / 500)
}

/// Content whose kind is not set: text if `may_be_text` and the first piece is
/// UTF-8 with few NUL characters, bytes otherwise.
pub(super) async fn sniff(
    mut pieces: impl Stream<Item = std::io::Result<Bytes>> + Send + Unpin + 'static,
    may_be_text: bool,
) -> Content {
    let first = pieces.next().await;
    let looks_like_text = match &first {
        Some(Ok(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => has_few_nuls(text),
            // The piece can end within a character.
            Err(e) => e.error_len().is_none() && e.valid_up_to() > 0,
        },
        Some(Err(_)) => false,
        None => true,
    };

    let all = stream::iter(first).chain(pieces);
    if may_be_text && looks_like_text {
        Content::text_stream(all)
    } else {
        Content::byte_stream(all)
    }
}
