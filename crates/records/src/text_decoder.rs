//! [`TextEncoding`]: how bytes are text. [`TextDecoder`]: makes UTF-8 of them.

use std::io::Write;

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use flate2::write::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use super::{Charset, media_type::essence, words::number};

/// How many compressed bytes are inflated at once. Deflate makes at most 1,032 bytes of one.
const SLICE_BYTES: usize = 256;
/// How much is inflated or decoded at once, in bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// The largest window of zstd that is accepted, as a power of two: 32 MiB.
const MAX_WINDOW_LOG: u32 = 25;

/// A compression of whole contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// The compression that the first bytes show.
    fn detect(head: &[u8]) -> Option<Self> {
        match head {
            [0x1F, 0x8B, 0x08, ..] => Some(Self::Gzip),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// How bytes that are not UTF-8 are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextEncoding {
    /// The compression of the whole content.
    pub compression: Option<Compression>,
    /// The character encoding.
    pub charset: Charset,
    /// Whether nothing but the bytes themselves tells the character encoding.
    pub is_guess: bool,
}

impl TextEncoding {
    /// How content is text, judging by its first bytes and its media type. `None` if it is no
    /// text.
    pub fn detect(head: &[u8], mime_type: Option<&str>) -> Option<Self> {
        let compression = Compression::detect(head);
        let inflated;
        let text = match compression {
            None => head,
            Some(_) => {
                inflated = Inflater::beginning(compression, head);
                &inflated[..]
            }
        };

        let declared = mime_type.and_then(declared_charset);
        let (charset, is_guess) = charset(text, declared, is_text_type(mime_type))?;
        Some(Self { compression, charset: charset.into(), is_guess })
    }

    /// Whether the bytes are the text.
    pub fn is_plain(self) -> bool {
        self.compression.is_none() && self.charset.encoding() == UTF_8
    }

    /// Whether a media type names another character encoding than UTF-8.
    pub fn is_declared_in(mime_type: &str) -> bool {
        declared_charset(mime_type).is_some_and(|encoding| encoding != UTF_8)
    }

    /// The encoding that a caller names, of content that begins so.
    pub fn given(head: &[u8], charset: Charset) -> Self {
        Self { compression: Compression::detect(head), charset, is_guess: false }
    }

    /// The encoding in words: `gzip, windows-1252 (a guess)`.
    pub fn told(self) -> String {
        let charset = String::from(self.charset);
        let guess = if self.is_guess { " (a guess)" } else { "" };
        match self.compression {
            Some(compression) if self.charset.encoding() == UTF_8 => compression.name().to_owned(),
            Some(compression) => format!("{}, {charset}{guess}", compression.name()),
            None => format!("{charset}{guess}"),
        }
    }

    /// The first bytes as UTF-8.
    pub fn decode_head(self, head: &[u8], limit: usize) -> Vec<u8> {
        let mut decoder = TextDecoder::new(self, u64::MAX);
        let mut text = Vec::new();
        let mut rest = head;

        while !rest.is_empty() && text.len() < limit {
            match decoder.step(rest, &mut text) {
                Ok(read) => rest = &rest[read..],
                Err(_) => break,
            }
        }
        text.truncate(limit);
        text
    }
}

/// The parameter `charset` of a media type, if it names an encoding.
fn declared_charset(mime_type: &str) -> Option<&'static Encoding> {
    let parameters = mime_type.split(';').skip(1);
    let mut named = parameters.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    });
    Encoding::for_label_no_replacement(named.next()?.as_bytes())
}

fn is_text_type(mime_type: Option<&str>) -> bool {
    mime_type.is_some_and(|mime_type| {
        let essence = essence(mime_type);
        essence.starts_with("text/") || essence.contains("json") || essence.contains("xml")
    })
}

/// The character encoding of the beginning of a text, and whether it is a guess. `None` if it is
/// no text.
fn charset(
    text: &[u8],
    declared: Option<&'static Encoding>,
    is_text_type: bool,
) -> Option<(&'static Encoding, bool)> {
    if let Some((encoding, _)) = Encoding::for_bom(text) {
        return Some((encoding, false));
    }
    if let Some(encoding) = declared.filter(|encoding| *encoding != UTF_8) {
        return Some((encoding, false));
    }
    if let Some(encoding) = utf_16(text) {
        return Some((encoding, true));
    }

    // The head may end within a character.
    let error = std::str::from_utf8(text).err();
    let is_utf8 = error
        .is_none_or(|error| error.error_len().is_none() && text.len() - error.valid_up_to() < 4);
    let controls = text.iter().filter(|byte| is_control(**byte)).count();
    let few_controls = controls * 500 <= text.len() || (controls == 1 && text.len() >= 8);

    if is_utf8 {
        return few_controls.then_some((UTF_8, false));
    }

    // Texts in an alphabet of one byte a letter have mostly ASCII, or are declared as text.
    let high = text.iter().filter(|byte| **byte >= 0x80).count();
    let is_mostly_ascii = high * 10 <= text.len() * 3;
    (controls == 0 && (is_mostly_ascii || is_text_type)).then_some((WINDOWS_1252, true))
}

/// A control character that texts do not have. The escape character begins colours.
fn is_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0B | 0x0C | 0x1B)
}

/// UTF-16 without a byte order mark: every second byte of most characters is zero.
fn utf_16(text: &[u8]) -> Option<&'static Encoding> {
    let zeros = |first: usize| {
        let bytes = text.iter().skip(first).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let many = (text.len() / 2 * 7 / 10).max(2);

    match () {
        () if odd >= many && even * 20 <= odd => Some(UTF_16LE),
        () if even >= many && odd * 20 <= even => Some(UTF_16BE),
        () => None,
    }
}

/// The reason why content cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeFault {
    /// The compressed content is damaged.
    #[error("its {} is damaged after {} bytes of text", compression.name(), number(*decoded))]
    Damaged {
        /// The compression.
        compression: Compression,
        /// The bytes that were decoded before.
        decoded: u64,
    },
    /// The decoded text is too long.
    #[error("it is longer than {} bytes when it is decoded", number(*limit))]
    TooLong {
        /// The limit.
        limit: u64,
    },
}

/// Makes UTF-8 of content that comes in blocks, in bounded memory.
pub struct TextDecoder {
    inflater: Option<Inflater>,
    inflated: Vec<u8>,
    decoder: Decoder,
    /// The bytes that were decoded.
    total: u64,
    limit: u64,
    has_replaced: bool,
}

impl std::fmt::Debug for TextDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextDecoder").field("total", &self.total).finish_non_exhaustive()
    }
}

impl TextDecoder {
    /// A decoder that makes at most `limit` bytes.
    pub fn new(encoding: TextEncoding, limit: u64) -> Self {
        Self {
            inflater: encoding.compression.and_then(Inflater::new),
            inflated: Vec::new(),
            decoder: encoding.charset.encoding().new_decoder_with_bom_removal(),
            total: 0,
            limit,
            has_replaced: false,
        }
    }

    /// Whether bytes that are no characters of the encoding have become U+FFFD.
    pub fn has_replaced(&self) -> bool {
        self.has_replaced
    }

    /// Decodes a part of a block, and appends at most some hundred kilobytes of text. Returns how
    /// many bytes of the block were read, which may be none if text was appended.
    ///
    /// # Errors
    /// The content is damaged, or too long.
    pub fn step(&mut self, block: &[u8], text: &mut Vec<u8>) -> Result<usize, DecodeFault> {
        let Some(inflater) = &mut self.inflater else {
            let part = &block[..block.len().min(CHUNK_BYTES)];
            self.decode(part, false, text)?;
            return Ok(part.len());
        };

        let mut inflated = std::mem::take(&mut self.inflated);
        inflated.clear();
        let damaged =
            DecodeFault::Damaged { compression: inflater.compression(), decoded: self.total };
        let read = inflater.step(block, &mut inflated).map_err(|()| damaged)?;
        if read == 0 && inflated.is_empty() && !block.is_empty() {
            return Err(damaged);
        }

        let decoded = self.decode(&inflated, false, text);
        self.inflated = inflated;
        decoded.map(|()| read)
    }

    /// Ends the content, and appends the last characters.
    ///
    /// # Errors
    /// The content ends too early, or is too long.
    pub fn finish(&mut self, text: &mut Vec<u8>) -> Result<(), DecodeFault> {
        let mut rest = Vec::new();
        if let Some(inflater) = self.inflater.take() {
            let compression = inflater.compression();
            let damaged = DecodeFault::Damaged { compression, decoded: self.total };
            inflater.finish(&mut rest).map_err(|()| damaged)?;
        }
        self.decode(&rest, true, text)
    }

    fn decode(
        &mut self,
        mut bytes: &[u8],
        last: bool,
        text: &mut Vec<u8>,
    ) -> Result<(), DecodeFault> {
        let mut chunk = [0; 8 << 10];
        loop {
            let (result, read, written, replaced) =
                self.decoder.decode_to_utf8(bytes, &mut chunk, last);
            self.has_replaced |= replaced;
            self.total += written as u64;
            if self.total > self.limit {
                return Err(DecodeFault::TooLong { limit: self.limit });
            }

            text.extend_from_slice(&chunk[..written]);
            bytes = &bytes[read..];
            if result == CoderResult::InputEmpty {
                return Ok(());
            }
        }
    }
}

/// Inflates compressed content, part by part.
enum Inflater {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zstd { decoder: Box<ZstdDecoder<'static>>, at_end: bool },
}

impl Inflater {
    /// `None` if there is no memory for it.
    fn new(compression: Compression) -> Option<Self> {
        Some(match compression {
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Compression::Zstd => {
                let mut decoder = ZstdDecoder::new().ok()?;
                decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG)).ok()?;
                Self::Zstd { decoder: Box::new(decoder), at_end: false }
            }
        })
    }

    /// The first bytes of compressed content.
    fn beginning(compression: Option<Compression>, head: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        let Some(mut inflater) = compression.and_then(Self::new) else { return text };

        let mut rest = head;
        while !rest.is_empty() && text.len() < CHUNK_BYTES {
            let before = text.len();
            match inflater.step(rest, &mut text) {
                Ok(0) if text.len() == before => break,
                Ok(read) => rest = &rest[read..],
                Err(()) => break,
            }
        }
        text
    }

    fn compression(&self) -> Compression {
        match self {
            Self::Gzip(_) => Compression::Gzip,
            Self::Zstd { .. } => Compression::Zstd,
        }
    }

    /// Reads a part of a block, and appends what it becomes.
    fn step(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<usize, ()> {
        match self {
            Self::Gzip(decoder) => {
                let read = decoder.write(&block[..block.len().min(SLICE_BYTES)]).map_err(drop)?;
                decoder.flush().map_err(drop)?;
                out.append(decoder.get_mut());
                // Bytes after the last member, such as padding, are passed over.
                Ok(if read == 0 { block.len() } else { read })
            }
            Self::Zstd { decoder, at_end } => {
                let start = out.len();
                out.resize(start + CHUNK_BYTES, 0);
                let mut output = OutBuffer::around(&mut out[start..]);
                let mut input = InBuffer::around(block);

                let left = decoder.run(&mut input, &mut output).map_err(drop)?;
                let (read, written) = (input.pos(), output.pos());
                out.truncate(start + written);
                *at_end = left == 0;
                Ok(read)
            }
        }
    }

    /// Appends the rest.
    fn finish(self, out: &mut Vec<u8>) -> Result<(), ()> {
        match self {
            Self::Gzip(mut decoder) => {
                decoder.try_finish().map_err(drop)?;
                out.append(decoder.get_mut());
                Ok(())
            }
            Self::Zstd { mut decoder, at_end } => {
                // A frame may have more output than fits into one chunk.
                let mut left = usize::from(!at_end);
                while left > 0 {
                    let start = out.len();
                    out.resize(start + CHUNK_BYTES, 0);
                    let mut output = OutBuffer::around(&mut out[start..]);
                    let run = decoder.run(&mut InBuffer::around(&[]), &mut output);
                    let written = output.pos();
                    out.truncate(start + written);
                    left = run.map_err(drop)?;
                    if written == 0 && left > 0 {
                        return Err(());
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
