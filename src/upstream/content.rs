//! The contents of a resource that an upstream has read.

use base64::{DecodeError, Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::Value;

use super::{error::UpstreamError, names::Naming};
use crate::{
    handler::{Contents, ReadContent, ReceivedText, Scope},
    protocol::Fault,
    store::{Content, StoreError},
};

/// Why a result has no contents.
pub(super) enum NoContents {
    /// The upstream refuses, or its result is not what the protocol says.
    Upstream(UpstreamError),
    /// The store did not take a long content while it arrived.
    NotStored(StoreError),
}

impl NoContents {
    pub(super) fn into_fault(self) -> Fault {
        match self {
            Self::Upstream(error) => error.into_fault(),
            Self::NotStored(error) => error.into(),
        }
    }
}

/// The contents in a result of `resources/read`. Long ones come from the store, where they have
/// arrived.
pub(super) async fn of_result(
    mut result: Value,
    naming: &Naming,
    scope: &Scope,
) -> Result<Contents, NoContents> {
    let contents = result["contents"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut parsed = Vec::with_capacity(contents.len());
    for mut content in contents {
        naming.offer_member(&mut content, "uri");
        parsed.push(parse(content, naming, scope).await?);
    }
    let mut parsed = parsed.into_iter();
    let first = parsed.next();
    let first = first.ok_or_else(|| invalid(naming, "a resource must have a content"))?;
    Ok(Contents { first, further: parsed.collect() })
}

async fn parse(
    mut content: Value,
    naming: &Naming,
    scope: &Scope,
) -> Result<ReadContent, NoContents> {
    let parsed = match (content["text"].take(), content["blob"].take()) {
        (Value::String(text), _) => match scope.control.take_content(&text) {
            Some(received) => stored(received, naming, scope).await?,
            None => Content::from(text),
        },
        (_, Value::String(blob)) => match scope.control.take_content(&blob) {
            Some(received) => stored(received, naming, scope).await?,
            None => Content::from(decode(blob).map_err(|_| not_base64(naming))?),
        },
        _ => return Err(invalid(naming, "a content must have text or a blob")),
    };
    let text = |member: &Value| member.as_str().map(str::to_owned);
    Ok(ReadContent {
        uri: text(&content["uri"]),
        mime_type: text(&content["mimeType"]),
        meta: content["_meta"].as_object_mut().map(std::mem::take),
        content: parsed,
    })
}

/// The bytes of base64, with the line breaks of MIME or without (RFC 2045, section 6.8), as of long
/// blobs.
fn decode(mut blob: String) -> Result<Bytes, DecodeError> {
    blob.retain(|c| !matches!(c, '\r' | '\n'));
    BASE64_STANDARD.decode(blob.trim_ascii()).map(Bytes::from)
}

/// Content that has arrived in the store.
async fn stored(
    received: ReceivedText,
    naming: &Naming,
    scope: &Scope,
) -> Result<Content, NoContents> {
    match received.upload {
        Ok(arrived) => scope.store.in_transit(arrived).await.map_err(NoContents::NotStored),
        Err(StoreError::NotAsAnnounced(_)) => Err(not_base64(naming)),
        Err(error) => Err(NoContents::NotStored(error)),
    }
}

fn not_base64(naming: &Naming) -> NoContents {
    invalid(naming, "its blob is not base64")
}

fn invalid(naming: &Naming, problem: &str) -> NoContents {
    let (name, problem) = (naming.upstream.as_str().into(), problem.to_owned());
    NoContents::Upstream(UpstreamError::Invalid { name, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_may_have_line_breaks_and_nothing_else() {
        for text in ["QUJD\r\nREVG\r\n", "QUJD\nREVG", "QU\nJDREVG\n", "QUJDREVG"] {
            assert_eq!(decode(text.into()).ok(), Some(Bytes::from_static(b"ABCDEF")), "{text:?}");
        }
        for text in ["QUJD\tREVG", "QUJD.REVG", "QUJD\r\nREV", "QQ==\r\nQQ==", "\u{b}QUJD"] {
            assert!(decode(text.into()).is_err(), "{text:?}");
        }
    }
}
