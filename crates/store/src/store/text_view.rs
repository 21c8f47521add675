//! Text views: compressed content and content in other character encodings as UTF-8 text, for
//! lines, searches and records. The stored bytes stay as they are.

use std::{io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use larder_identity::Owner;
use larder_records::{
    DecodeFault, EscapeStripper, TextDecoder, TextEncoding, essence, has_escapes,
    preview::{HEAD_BYTES, TAIL_BYTES},
};
use larder_runtime::compute::{self, Compute, Slot};
use parking_lot::Mutex;

use super::{Content, Kind, StoreError, StoredResource};

/// The most bytes of decoded text, which is in memory while a request reads it.
pub const TEXT_VIEW_BYTES: u64 = 64 << 20;

/// About how many bytes are decoded before the text is passed on.
const PIECE_BYTES: usize = 256 << 10;

/// Content as UTF-8 text.
pub struct TextView {
    /// The text, with the metadata of the stored resource.
    pub text: StoredResource,
    /// How the stored bytes are text.
    pub encoding: TextEncoding,
    /// The text's share of the memory for decoded texts, to be held as long as the text.
    pub slot: Slot,
}

impl StoredResource {
    /// How the content is text, if its bytes are not UTF-8 text already. `None` also if it is no
    /// text at all.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn text_encoding(&self) -> Result<Option<TextEncoding>, StoreError> {
        let entry = &self.entry;
        let is_text = entry.kind == Kind::Text;
        if is_text && !TextEncoding::is_declared_in(&entry.mime_type) {
            return Ok(None);
        }

        let (head, _) = self.head_and_tail(HEAD_BYTES as u64, 0).await?;
        // Text that is UTF-8 is not what its media type says, unless it is UTF-16 with few letters.
        if is_text && !head.contains(&0) {
            return Ok(None);
        }

        let entry = Arc::clone(entry);
        let detecting = Compute::run(self.entry.owner.as_str(), head.len(), move || {
            TextEncoding::detect(&head, Some(&entry.mime_type))
        });
        Ok(detecting.done().await?)
    }

    /// The first bytes of content as text in this encoding.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn decoded_head(&self, encoding: TextEncoding) -> Result<Bytes, StoreError> {
        let (head, _) = self.head_and_tail(HEAD_BYTES as u64, 0).await?;
        let decoding = Compute::run(self.entry.owner.as_str(), HEAD_BYTES, move || {
            encoding.decode_head(&head, HEAD_BYTES)
        });
        Ok(decoding.done().await?.into())
    }

    /// The content as text, if its bytes are not UTF-8 text already, as work of `caller`. `None`
    /// also if it is no text at all.
    ///
    /// # Errors
    /// [`StoreError::Undecodable`]: the content is damaged, or longer than [`TEXT_VIEW_BYTES`].
    pub async fn text_view(&self, caller: &Owner) -> Result<Option<TextView>, StoreError> {
        match self.text_encoding().await? {
            Some(encoding) => self.text_view_in(caller, encoding).await.map(Some),
            None => Ok(None),
        }
    }

    /// The text view of the content, with the slot to be held as long as the text; or the content
    /// as it is, if it has no text view. Works for `caller`.
    ///
    /// # Errors
    /// [`StoreError::Undecodable`]: the content is damaged, or longer than [`TEXT_VIEW_BYTES`].
    pub async fn into_text(self, caller: &Owner) -> Result<(Self, Option<Slot>), StoreError> {
        Ok(match self.text_view(caller).await? {
            Some(view) => (view.text, Some(view.slot)),
            None => (self, None),
        })
    }

    /// The content as text in this encoding.
    async fn text_view_in(
        &self,
        caller: &Owner,
        encoding: TextEncoding,
    ) -> Result<TextView, StoreError> {
        let slot = compute::view_slot(caller.as_str()).await?;
        let fault = Arc::new(Mutex::new(None));
        let pieces = Decoding {
            blocks: Box::pin(self.stream()),
            rest: Bytes::new(),
            decoder: Some(TextDecoder::new(encoding, TEXT_VIEW_BYTES)),
            caller: caller.clone(),
            fault: Arc::clone(&fault),
        };

        let content = Content::text_stream(pieces.into_pieces());
        let made = self.view(content, text_type(&self.entry.mime_type)).await;

        if let Some(fault) = *fault.lock() {
            return Err(StoreError::Undecodable { uri: self.entry.uri.clone(), fault });
        }
        Ok(TextView { text: made?, encoding, slot })
    }
}

impl StoredResource {
    /// Whether the first or the last bytes of text have terminal escapes.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn seems_coloured(&self) -> Result<bool, StoreError> {
        let (head, tail) = self.head_and_tail(HEAD_BYTES as u64, TAIL_BYTES as u64).await?;
        Ok(has_escapes(&head) || has_escapes(&tail))
    }

    /// Text without its terminal escapes, whose lines have the same numbers. `None` if it is
    /// longer than [`TEXT_VIEW_BYTES`].
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn plain_view(&self, caller: &Owner) -> Result<Option<Self>, StoreError> {
        let entry = &self.entry;
        if entry.size > TEXT_VIEW_BYTES {
            return Ok(None);
        }

        let state = (Box::pin(self.stream()), Some(EscapeStripper::default()), caller.clone());
        let pieces = stream::unfold(state, |(mut blocks, stripper, caller)| async {
            let mut stripper = stripper?;
            let block = blocks.next().await.transpose().map_err(io::Error::other);
            let stripping = async {
                let block = block?;
                let length = block.as_ref().map_or(0, Bytes::len);
                let work = move || {
                    let mut out = Vec::with_capacity(length);
                    match block {
                        Some(block) => {
                            stripper.feed(&block, &mut out);
                            (Bytes::from(out), Some(stripper))
                        }
                        None => {
                            stripper.finish(&mut out);
                            (Bytes::from(out), None)
                        }
                    }
                };
                Compute::run(caller.as_str(), length, work).done().await.map_err(io::Error::other)
            };
            match stripping.await {
                Ok((piece, stripper)) => Some((Ok(piece), (blocks, stripper, caller))),
                Err(error) => Some((Err(error), (blocks, None, caller))),
            }
        });

        let view = self.view(Content::text_stream(pieces), entry.mime_type.clone()).await?;
        Ok(Some(view))
    }
}

/// The media type of the text: without the character encoding, and of the text that is compressed,
/// which has none.
pub(super) fn text_type(mime_type: &str) -> String {
    let essence = essence(mime_type);
    let is_of_text =
        essence.starts_with("text/") || essence.contains("json") || essence.contains("csv");
    if is_of_text { essence } else { "text/plain".to_owned() }
}

type Blocks = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

/// Decodes blocks as they are asked for.
struct Decoding {
    blocks: Blocks,
    /// The part of the last block that has not been decoded.
    rest: Bytes,
    /// `None` after the end.
    decoder: Option<TextDecoder>,
    caller: Owner,
    /// The reason why decoding has failed, once it has.
    fault: Arc<Mutex<Option<DecodeFault>>>,
}

impl Decoding {
    fn into_pieces(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut decoding| async {
            let piece = decoding.next().await.transpose()?;
            Some((piece, decoding))
        })
    }

    /// The next piece of text; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let Some(mut decoder) = self.decoder.take() else { return Ok(None) };

            let mut is_last = false;
            if self.rest.is_empty() {
                match self.blocks.next().await {
                    Some(block) => self.rest = block.map_err(io::Error::other)?,
                    None => is_last = true,
                }
            }

            let mut rest = std::mem::take(&mut self.rest);
            let decoding = Compute::run(self.caller.as_str(), PIECE_BYTES, move || {
                let mut text = Vec::new();
                let mut decode = || {
                    while !rest.is_empty() && text.len() < PIECE_BYTES {
                        let read = decoder.step(&rest, &mut text)?;
                        rest = rest.split_off(read);
                    }
                    if is_last { decoder.finish(&mut text) } else { Ok(()) }
                };
                decode().map(|()| (text, rest, decoder))
            });

            let decoded = decoding.done().await.map_err(io::Error::other)?;
            let (text, rest, decoder) = decoded.map_err(|fault| {
                *self.fault.lock() = Some(fault);
                io::Error::other(fault)
            })?;

            self.rest = rest;
            self.decoder = (!is_last).then_some(decoder);
            if !text.is_empty() {
                return Ok(Some(text.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::store::blocks::tests::stored;

    fn view(bytes: &[u8], block_bytes: usize) -> Result<Option<TextView>, StoreError> {
        let found = stored(Kind::Binary, &[bytes], block_bytes).expect("bytes are bytes");
        let runtime = tokio::runtime::Runtime::new().expect("it starts");
        runtime.block_on(found.text_view(&Owner::new("local")))
    }

    #[test]
    fn bytes_in_other_encodings_have_lines_and_stay_as_they_are() {
        let text = "name\n\u{e4}\nb\n";
        let utf_16: Vec<u8> = "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        let zstd = zstd::stream::encode_all(text.as_bytes(), 1).expect("it is in memory");

        for bytes in [utf_16, zstd] {
            for block_bytes in [5, 1_000] {
                let TextView { text: found, .. } =
                    view(&bytes, block_bytes).expect("it can be read").expect("it is text");
                assert_eq!((found.entry.kind, found.entry.lines), (Kind::Text, 3));
                let whole = found.bytes().now_or_never().expect("memory never waits");
                assert_eq!(whole.expect("it can be read"), text.as_bytes());
            }
        }
    }

    #[test]
    fn a_bomb_ends_at_the_limit_of_views() {
        let bomb = vec![b'a'; usize::try_from(TEXT_VIEW_BYTES).expect("it fits") + 1];
        let bytes = zstd::stream::encode_all(&bomb[..], 1).expect("it is in memory");
        drop(bomb);

        let found = stored(Kind::Binary, &[&bytes], 256 << 10).expect("bytes are bytes");
        let runtime = tokio::runtime::Runtime::new().expect("it starts");
        let error = runtime.block_on(found.text_view(&Owner::new("local")));
        let error = error.err().expect("it is too long").to_string();
        assert!(error.contains("longer than 67,108,864 bytes when it is decoded"), "{error}");
    }

    #[test]
    fn other_bytes_have_no_view() {
        assert!(view(b"\x89PNG\r\n\x1A\n\0\0\0\r\xFF", 1_000).expect("it can be read").is_none());
        let text = stored(Kind::Text, &["\u{e4}".as_bytes()], 5).expect("it is text");
        let view = text.text_view(&Owner::new("local")).now_or_never().expect("it never waits");
        assert!(view.expect("it can be read").is_none());
    }
}
