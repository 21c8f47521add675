//! Puts the parts by, all or none of them.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use futures_util::stream;

use super::{
    Spiller, lines,
    parts::{Body, Part},
};
use crate::{
    preview::{HEAD_BYTES, Preview, Sample, TAIL_BYTES, words::number},
    store::{Content, Details, Entry, ResourceUri, StoreError},
};

/// How many parts of one result are put by.
const PARTS: usize = 64;

/// What was put by, and how it looks.
pub(super) struct Kept {
    pub(super) entry: Arc<Entry>,
    pub(super) preview: Preview,
}

/// Why nothing was.
pub(super) enum Refused {
    TooManyParts(usize),
    Store(StoreError),
}

/// Puts all parts by; where one is refused, none stays.
pub(super) async fn keep(tool: &str, parts: Vec<Part>, to: &Spiller) -> Result<Vec<Kept>, Refused> {
    if parts.len() > PARTS {
        return Err(Refused::TooManyParts(parts.len()));
    }
    let several = parts.len() > 1;
    // Each has its share of what the answer holds, and none a whole page.
    let budget = (to.output_bytes / 2 / parts.len().max(1)).clamp(300, 3_000);
    let mut kept: Vec<Kept> = Vec::with_capacity(parts.len());
    for (at, part) in parts.into_iter().enumerate() {
        let name = match &part.name {
            Some(name) => format!("{name} (of {tool})"),
            None if several => format!("Result of {tool}, part {}", at + 1),
            None => format!("Result of {tool}"),
        };
        match one(tool, name, part, budget, to).await {
            Ok(one) => kept.push(one),
            Err(error) => {
                for Kept { entry, .. } in kept {
                    // What cannot be removed either expires by itself.
                    let _ = to.scope.store.delete(to.scope.identity.owner(), &entry.uri).await;
                }
                return Err(Refused::Store(error));
            }
        }
    }
    Ok(kept)
}

async fn one(
    tool: &str,
    name: String,
    part: Part,
    budget: usize,
    to: &Spiller,
) -> Result<Kept, StoreError> {
    let (pieces, value, is_text) = match part.body {
        Body::Text(pieces) => (pieces, None, true),
        Body::Json(value, json) => (lines::broken(&json), Some(value), true),
        Body::Base64(data) => match BASE64_STANDARD.decode(data.trim_ascii()) {
            Ok(bytes) => (vec![bytes.into()], None, false),
            // The handler's mistake; nothing of it is lost.
            Err(_) => (vec![data.into()], None, true),
        },
    };
    let (head, tail) = (head(&pieces), tail(&pieces));
    let sample = Sample {
        mime_type: part.mime_type.as_deref(),
        is_text,
        size: pieces.iter().map(|piece| piece.len() as u64).sum(),
        lines: is_text.then(|| line_count(&pieces)),
        head: &head,
        tail: &tail,
        value: value.as_ref(),
    };
    let preview = Preview::new(&sample, budget);
    // It takes several times the memory of its text.
    drop(value);
    let mime_type = part.mime_type.unwrap_or_else(|| preview.mime_type().to_owned());
    let details = Details {
        name: Some(name),
        description: preview.facts.first().cloned(),
        mime_type: Some(mime_type),
        session: to.scope.session.clone(),
        ..Details::default()
    };
    let pieces = stream::iter(pieces.into_iter().map(Ok));
    let content = if is_text { Content::text_stream(pieces) } else { Content::byte_stream(pieces) };
    let uri = ResourceUri::of_result(tool, &to.scope.random.id())?;
    let entry = to.scope.store.create(to.scope.identity.owner(), uri, content, details).await?;
    Ok(Kept { entry, preview })
}

/// The first bytes; a slice where the first piece has them.
fn head(pieces: &[Bytes]) -> Bytes {
    if let Some(first) = pieces.first().filter(|f| f.len() >= HEAD_BYTES || pieces.len() == 1) {
        return first.slice(..first.len().min(HEAD_BYTES));
    }
    let mut head = BytesMut::new();
    for piece in pieces {
        let room = HEAD_BYTES - head.len();
        head.extend_from_slice(&piece[..piece.len().min(room)]);
    }
    head.freeze()
}

/// The last bytes.
fn tail(pieces: &[Bytes]) -> Bytes {
    if let Some(last) = pieces.last().filter(|l| l.len() >= TAIL_BYTES || pieces.len() == 1) {
        return last.slice(last.len().saturating_sub(TAIL_BYTES)..);
    }
    let mut parts = Vec::new();
    let mut room = TAIL_BYTES;
    for piece in pieces.iter().rev() {
        let part = piece.slice(piece.len().saturating_sub(room)..);
        room -= part.len();
        parts.push(part);
    }
    parts.reverse();
    parts.concat().into()
}

/// As the store counts them: what follows the last line feed is a line, too.
fn line_count(pieces: &[Bytes]) -> u64 {
    let feeds: usize = pieces.iter().map(|p| memchr::memchr_iter(b'\n', p).count()).sum();
    let last = pieces.iter().rev().find_map(|piece| piece.last());
    feeds as u64 + u64::from(last.is_some_and(|last| *last != b'\n'))
}

impl Refused {
    /// In words for the model: what was refused, why, and what to do.
    pub(super) fn message(&self, tool: &str, budget: usize) -> String {
        let budget = number(budget as u64);
        match self {
            Self::TooManyParts(parts) => format!(
                "The result of {tool} has {parts} parts that are too large for one answer, and at most {PARTS} of one result can be stored. Nothing of it is shown. Call {tool} again for less at a time."
            ),
            Self::Store(error) => {
                if error.is_internal() {
                    let source = std::error::Error::source(error);
                    tracing::error!(%error, ?source, tool, "a result could not be put by");
                }
                let advice = match error {
                    StoreError::Full(_) => format!(
                        "Delete stored resources that are no longer needed (list_resources, delete_resource), or call {tool} again for less."
                    ),
                    StoreError::Unavailable { .. } => {
                        format!("Call {tool} again shortly, or for less.")
                    }
                    _ => format!("Call {tool} again for less."),
                };
                format!(
                    "{tool} ran, but its result has more than the {budget} bytes that one answer holds, and it could not be stored: {error} Nothing of it is shown. {advice}"
                )
            }
        }
    }
}
