//! Stores the parts of a result, all or none of them.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use larder_oauth::Owner;
use larder_protocol::quote::visible;
use larder_records::{
    Compactor,
    preview::{HEAD_BYTES, Preview, Sample, TAIL_BYTES},
    record_lines,
    words::{count, number},
};
use larder_runtime::compute::Compute;
use larder_store::store::{
    Arrived, Content, ContentStream, Details, Entry, Kind, ResourceUri, StoreError,
};
use serde_json::Value;

use super::{
    part::{Body, Item, Part, on_one_line},
    record_columns::column_names,
    tool_calls::{READ_AT_ONCE, arguments_after},
};
use crate::{
    handler::{ReceivedText, Scope, decode_base64},
    registry::Registry,
};

/// The most parts of one result that are stored.
const MAX_PARTS: usize = 64;

/// The bytes of a preview besides facts and excerpts: size, expiry, columns, labels and next calls.
const AROUND_BYTES: usize = 640;
/// How often a preview names the URI.
const NAMED_URIS: usize = 5;
/// The bytes of a URI besides the name of the tool.
const URI_BYTES: usize = 36;

/// The call whose result is stored.
pub(super) struct Storing<'a> {
    pub(super) scope: &'a Scope,
    /// The most bytes of text in its answer.
    pub(super) output_bytes: usize,
    /// The most bytes of text that show what is stored.
    pub(super) preview_bytes: usize,
}

impl Storing<'_> {
    /// The bytes of facts and excerpts of each part.
    fn budget(&self, tool: &str, parts: usize) -> usize {
        let around = AROUND_BYTES + NAMED_URIS * (URI_BYTES + tool.len());
        let shown = self.preview_bytes.min(self.output_bytes / 2);
        (shown / parts.max(1)).saturating_sub(around).max(300)
    }
}

/// A stored part and its preview.
pub(super) struct StoredPart {
    pub(super) entry: Arc<Entry>,
    pub(super) preview: Preview,
    /// The columns of its records, as SQL writes them.
    pub(super) columns: Option<String>,
    /// The arguments of `read_resource` that continue after the preview.
    pub(super) after: Value,
}

/// Why nothing is stored.
pub(super) enum StorePartsError {
    TooManyParts(usize),
    Store(StoreError),
}

/// Stores all parts. If one cannot be stored, deletes the others.
pub(super) async fn store_parts(
    tool: &str,
    parts: Vec<Part>,
    storing: &Storing<'_>,
) -> Result<Vec<StoredPart>, StorePartsError> {
    if parts.len() > MAX_PARTS {
        return Err(StorePartsError::TooManyParts(parts.len()));
    }

    let scope = storing.scope;
    let several = parts.len() > 1;
    let budget = storing.budget(tool, parts.len());
    let mut stored: Vec<StoredPart> = Vec::with_capacity(parts.len());

    for (index, part) in parts.into_iter().enumerate() {
        let name = match &part.name {
            Some(name) => format!("{name} (of {tool})"),
            None if several => format!("Result of {tool}, part {}", index + 1),
            None => format!("Result of {tool}"),
        };

        match store_part(tool, name, part, budget, scope).await {
            Ok(part) => stored.push(part),
            Err(error) => {
                for StoredPart { entry, .. } in stored {
                    // A part that cannot be deleted expires.
                    let _ = scope.store.delete(scope.identity.owner(), &entry.uri).await;
                }
                return Err(StorePartsError::Store(error));
            }
        }
    }
    Ok(stored)
}

/// Stores one part, with a preview of at most about `budget` bytes.
async fn store_part(
    tool: &str,
    name: String,
    part: Part,
    budget: usize,
    scope: &Scope,
) -> Result<StoredPart, StoreError> {
    let owner = scope.identity.owner();
    let part = match part.body {
        Body::Items(items) => return store_items(tool, &name, items, budget, scope).await,
        body => Part { body, ..part },
    };

    let making = Compute::run(owner.as_str(), part.body.size(), move || prepare(part, budget));
    let Prepared { body, head, mime_type, preview } = making.done().await?;

    let fact = preview.facts.first().map(String::as_str);
    let details = details(tool, &name, fact, &mime_type, scope);

    scope.store.add_origins(Registry::from_scope(scope).origin_of(tool));

    let content = match body {
        PreparedBody::Text(pieces) => {
            Content::text_stream(stream::iter(pieces.into_iter().map(Ok)))
        }
        PreparedBody::Bytes(bytes) => Content::from(bytes),
        PreparedBody::Arrived(arrived) => {
            let entry = scope.store.create_arrived(arrived?, details).await?;
            return with_columns(entry, preview, head).await;
        }
    };

    let uri = ResourceUri::for_result(tool, &scope.random.id())?;
    let entry = scope.store.create(owner, uri, content, details).await?;
    with_columns(entry, preview, head).await
}

/// The details of a part. The texts are written by others: a tool, or the content.
fn details(tool: &str, name: &str, fact: Option<&str>, mime_type: &str, scope: &Scope) -> Details {
    let details = Details {
        name: Some(visible(name).into_owned()),
        description: fact.map(|fact| visible(fact).into_owned()),
        mime_type: Some(visible(mime_type).into_owned()),
        session: scope.session.clone(),
        ttl: Registry::from_scope(scope).ttl_of(tool),
        ..Details::default()
    };
    details.shortened()
}

/// Stores a list some of whose items were stored while they arrived. They are read from there.
async fn store_items(
    tool: &str,
    name: &str,
    items: Vec<Item>,
    budget: usize,
    scope: &Scope,
) -> Result<StoredPart, StoreError> {
    let owner = scope.identity.owner();
    let fact = format!("{}, a line each", count(items.len() as u64, "item"));

    let mut lines: Vec<ContentStream> = Vec::with_capacity(items.len());
    for item in items {
        let (text, piece) = match item {
            Item::ReceivedJson(text) => (text, LinePiece::Json(Compactor::default())),
            Item::ReceivedText(text) => (text, LinePiece::Text),
            item => {
                let mut line = Vec::new();
                item.write_line(&mut line);
                lines.push(stream::iter([Ok(line.into())]).boxed());
                continue;
            }
        };

        let (_, pieces) = scope.store.in_transit(text.upload?).await?.into_parts();
        lines.push(line_of(owner.clone(), pieces, piece));
    }

    scope.store.add_origins(Registry::from_scope(scope).origin_of(tool));
    let uri = ResourceUri::for_result(tool, &scope.random.id())?;
    let content = Content::text_stream(stream::iter(lines).flatten());
    let details = details(tool, name, Some(&fact), "application/x-ndjson", scope);
    let entry = scope.store.create(owner, uri, content, details).await?;

    let reading = async {
        let found = scope.store.get(owner, &entry.uri).await?;
        let (preview, head) = found.preview_and_head(budget).await?;
        with_columns(Arc::clone(&entry), preview, head).await
    };
    let stored = reading.await;
    if stored.is_err() {
        // Content that cannot be deleted expires.
        let _ = scope.store.delete(owner, &entry.uri).await;
    }
    stored
}

/// How the pieces of a content become parts of a line.
enum LinePiece {
    /// JSON without white space between its tokens.
    Json(Compactor),
    /// Text, which becomes a JSON string.
    Text,
}

impl LinePiece {
    fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Json(compactor) => {
                compactor.feed(piece, out);
                on_one_line(out);
            }
            Self::Text => {
                // Pieces of stored text are whole characters.
                let quoted = serde_json::to_string(&String::from_utf8_lossy(piece));
                let quoted = quoted.unwrap_or_default();
                out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
            }
        }
    }

    /// The bytes before and after the value of the line.
    fn ends(&self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Json(_) => (b"", b"\n"),
            Self::Text => (b"\"", b"\"\n"),
        }
    }
}

/// Content in pieces as a line.
fn line_of(owner: Owner, pieces: ContentStream, part: LinePiece) -> ContentStream {
    let (begin, end) = part.ends();
    let middle = stream::try_unfold((pieces, part), move |(mut pieces, mut part)| {
        let owner = owner.clone();
        async move {
            let Some(piece) = pieces.next().await.transpose()? else {
                return Ok::<_, io::Error>(None);
            };
            let work = Compute::run(owner.as_str(), piece.len(), move || {
                let mut out = Vec::with_capacity(piece.len());
                part.write(&piece, &mut out);
                (out, part)
            });
            let (out, part) = work.done().await.map_err(io::Error::other)?;
            Ok(Some((Bytes::from(out), (pieces, part))))
        }
    });

    let once = |bytes| stream::iter([Ok(Bytes::from_static(bytes))]);
    once(begin).chain(middle).chain(once(end)).boxed()
}

/// Adds the columns of the records.
async fn with_columns(
    entry: Arc<Entry>,
    preview: Preview,
    head: Bytes,
) -> Result<StoredPart, StoreError> {
    let after = arguments_after(&entry, &preview, &head, READ_AT_ONCE);
    let columns = match entry.records.clone() {
        Some(index) => {
            let naming = move || column_names(&index, &head);
            Compute::run(entry.owner.as_str(), HEAD_BYTES, naming).done().await?
        }
        None => None,
    };

    Ok(StoredPart { entry, preview, columns, after })
}

/// A part as it is stored, and its preview.
struct Prepared {
    body: PreparedBody,
    head: Bytes,
    mime_type: String,
    preview: Preview,
}

/// The body to store.
enum PreparedBody {
    Text(Vec<Bytes>),
    Bytes(Bytes),
    /// The content is in the store already, unless that has failed.
    Arrived(Result<Arrived, StoreError>),
}

/// Decodes a part and makes its preview.
fn prepare(part: Part, budget: usize) -> Prepared {
    let (pieces, value, is_text) = match part.body {
        Body::Text(pieces) => (pieces, None, true),
        // A copy of the value that the tool has laid out itself is stored as it is.
        Body::Json(value, json) if memchr::memchr(b'\n', &json).is_some() => {
            (vec![json], Some(value), true)
        }
        Body::Json(value, json) => (record_lines(&json), Some(value), true),
        Body::Base64(data) => match decode_base64(&data) {
            Ok(bytes) => (vec![bytes.into()], None, false),
            // Invalid base64 is stored as text, so that nothing is lost.
            Err(_) => (vec![data.into()], None, true),
        },
        Body::Items(_) => unreachable!("`store_items` stores lists"),
        Body::Received(text, value) => {
            return prepare_received(*text, value.as_ref(), part.mime_type, budget);
        }
    };

    let head = head(&pieces);
    let tail = tail(&pieces);
    let sample = Sample {
        mime_type: part.mime_type.as_deref(),
        is_text,
        size: pieces.iter().map(|piece| piece.len() as u64).sum(),
        lines: is_text.then(|| line_count(&pieces)),
        head: &head,
        tail: &tail,
        // A parsed value takes several times the memory of its text, and ends here.
        value: value.as_ref(),
    };

    let preview = Preview::new(&sample, budget);
    let mime_type = part.mime_type.unwrap_or_else(|| preview.mime_type().to_owned());

    let body = if is_text {
        PreparedBody::Text(pieces)
    } else {
        PreparedBody::Bytes(pieces.into_iter().next().unwrap_or_default())
    };

    Prepared { body, head, mime_type, preview }
}

/// Makes the preview of content that was stored while it arrived.
fn prepare_received(
    content: ReceivedText,
    value: Option<&Value>,
    mime_type: Option<String>,
    budget: usize,
) -> Prepared {
    let is_text = content.kind == Kind::Text;
    let sample = Sample {
        mime_type: mime_type.as_deref(),
        is_text,
        size: content.size,
        lines: is_text.then(|| content.lines()),
        head: &content.head,
        tail: &content.tail,
        value,
    };

    let preview = Preview::new(&sample, budget);
    let mime_type = mime_type.unwrap_or_else(|| preview.mime_type().to_owned());
    let body = PreparedBody::Arrived(content.upload);
    Prepared { body, head: content.head, mime_type, preview }
}

/// The first bytes. Copies only if they span several pieces.
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

/// The last bytes. Copies only if they span several pieces.
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

/// Counts lines as the store does: text after the last line feed is a line.
fn line_count(pieces: &[Bytes]) -> u64 {
    let feeds: usize = pieces.iter().map(|p| memchr::memchr_iter(b'\n', p).count()).sum();
    let last = pieces.iter().rev().find_map(|piece| piece.last());
    feeds as u64 + u64::from(last.is_some_and(|last| *last != b'\n'))
}

impl StorePartsError {
    /// The error message for the model.
    pub(super) fn message(&self, tool: &str, budget: usize) -> String {
        let budget = number(budget as u64);

        match self {
            Self::TooManyParts(parts) => format!(
                "The result of {tool} has {parts} parts that are too large for one answer, and at most {MAX_PARTS} of one result can be stored. Nothing of it is shown. Call {tool} again for less at a time."
            ),
            Self::Store(error) => {
                if error.is_internal() {
                    let source = std::error::Error::source(error);
                    tracing::error!(%error, ?source, tool, "a result could not be stored");
                }

                let advice = match error {
                    StoreError::Full(_) => format!(
                        "Delete stored resources that are no longer needed (list_resources, delete_resource), or call {tool} again for less."
                    ),
                    StoreError::Unavailable { .. } | StoreError::Busy(_) => {
                        format!("Call {tool} again shortly, or for less.")
                    }
                    _ => format!("Call {tool} again for less."),
                };

                format!(
                    "{tool} ran, but its result is too large for one answer ({budget} bytes of text), and it could not be stored: {error} Nothing of it is shown. {advice}"
                )
            }
        }
    }
}
