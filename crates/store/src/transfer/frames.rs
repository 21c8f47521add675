//! Compressed frames of an export: a writer and a reader that hold one frame at most.

use std::io::Write;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zstd::stream::{raw, raw::Operation, write::Encoder};

use super::TransferError;

/// The maximum length of a payload: a block of content, or metadata.
const MAX_PAYLOAD: usize = 1 << 20;

/// The most bytes that are read or written at a time.
const CHUNK: usize = 128 << 10;

/// The content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Header,
    Revision,
    Content,
    Abandoned,
    End,
}

const KINDS: [(FrameKind, u8); 5] = [
    (FrameKind::Header, b'H'),
    (FrameKind::Revision, b'R'),
    (FrameKind::Content, b'C'),
    (FrameKind::Abandoned, b'A'),
    (FrameKind::End, b'E'),
];

/// Writes frames.
pub(super) struct FrameWriter<W> {
    out: W,
    encoder: Encoder<'static, Vec<u8>>,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(super) fn new(out: W) -> std::io::Result<Self> {
        let mut encoder = Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self { out, encoder })
    }

    pub(super) async fn write(&mut self, kind: FrameKind, payload: &[u8]) -> std::io::Result<()> {
        // A piece of content may be larger than a frame.
        let mut rest = payload;
        loop {
            let (part, next) = rest.split_at(rest.len().min(MAX_PAYLOAD));
            let code = KINDS.iter().find(|(known, _)| *known == kind).map_or(0, |(_, code)| *code);
            let length = u32::try_from(part.len()).unwrap_or_default();

            self.encoder.write_all(&[code])?;
            self.encoder.write_all(&length.to_be_bytes())?;
            self.encoder.write_all(part)?;

            if self.encoder.get_ref().len() >= CHUNK {
                self.out.write_all(self.encoder.get_ref()).await?;
                self.encoder.get_mut().clear();
            }

            if next.is_empty() {
                return Ok(());
            }
            rest = next;
        }
    }

    /// Writes the rest, and returns the output.
    pub(super) async fn finish(mut self) -> std::io::Result<W> {
        let rest = self.encoder.finish()?;
        self.out.write_all(&rest).await?;
        self.out.flush().await?;
        Ok(self.out)
    }
}

/// Reads frames.
pub(super) struct FrameReader<R> {
    input: R,
    decoder: raw::Decoder<'static>,
    buffer: Vec<u8>,
    /// The range of the buffer that is not decoded yet.
    unread: std::ops::Range<usize>,
    is_begun: bool,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(input: R) -> std::io::Result<Self> {
        let (decoder, buffer) = (raw::Decoder::new()?, vec![0; CHUNK]);
        Ok(Self { input, decoder, buffer, unread: 0..0, is_begun: false })
    }

    /// Reads the next frame.
    pub(super) async fn next(&mut self) -> Result<(FrameKind, Vec<u8>), TransferError> {
        let mut head = [0; 5];
        self.read_exact(&mut head).await?;
        let [code, length @ ..] = head;
        let kind = KINDS.iter().find(|(_, known)| *known == code).map(|(kind, _)| *kind);

        let length = u32::from_be_bytes(length) as usize;

        match kind {
            Some(FrameKind::Header) if !self.is_begun => self.is_begun = true,
            _ if !self.is_begun => return Err(TransferError::NotAnExport),
            _ => {}
        }

        let Some(kind) = kind.filter(|_| length <= MAX_PAYLOAD) else {
            return Err(TransferError::Damaged("a frame is unknown or too long".to_owned()));
        };

        let mut payload = vec![0; length];
        self.read_exact(&mut payload).await?;
        Ok((kind, payload))
    }

    async fn read_exact(&mut self, out: &mut [u8]) -> Result<(), TransferError> {
        let mut filled = 0;
        while filled < out.len() {
            let input = &self.buffer[self.unread.clone()];
            let status = self.decoder.run_on_buffers(input, &mut out[filled..]);
            let status = status.map_err(|error| {
                if self.is_begun {
                    TransferError::Damaged(error.to_string())
                } else {
                    TransferError::NotAnExport
                }
            })?;

            self.unread.start += status.bytes_read;
            filled += status.bytes_written;
            if filled == out.len() || status.bytes_read + status.bytes_written > 0 {
                continue;
            }

            let read = self.input.read(&mut self.buffer).await?;
            if read == 0 {
                return Err(if self.is_begun {
                    TransferError::Incomplete
                } else {
                    TransferError::NotAnExport
                });
            }

            self.unread = 0..read;
        }
        Ok(())
    }
}
