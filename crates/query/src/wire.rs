//! The messages between Larder and a worker: a tag, a length, a payload.

use std::io::{self, Read, Write};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The argument that makes the program a worker.
pub const COMMAND: &str = "query-worker";

/// The maximum size of a message in bytes. Blocks and results are far smaller.
const MAX_BYTES: u32 = 64 << 20;
/// [`MAX_BYTES`] as a size.
pub(super) const MAX_MESSAGE_BYTES: usize = MAX_BYTES as usize;

/// To the worker: a [`Question`](super::Question).
pub(super) const QUESTION: u8 = b'Q';
/// To the worker: a block of the content that it asked for.
pub(super) const BLOCK: u8 = b'B';
/// To the worker: the end of that content.
pub(super) const END: u8 = b'E';
/// From the worker, once at its start: its [`Confinement`](super::Confinement).
pub(super) const READY: u8 = b'R';
/// From the worker: it asks for the content of a table, by index.
pub(super) const PULL: u8 = b'P';
/// From the worker: [`Progress`].
pub(super) const PROGRESS: u8 = b'N';
/// From the worker: a part of the result to store.
pub(super) const STORE: u8 = b'S';
/// From the worker: an [`Answer`](super::Answer). It awaits the next question.
pub(super) const ANSWER: u8 = b'A';
/// From the worker: a [`QueryError`](super::QueryError). It awaits the next
/// question.
pub(super) const FAILURE: u8 = b'F';
/// To the worker, in place of a question: a [`ScriptStart`](crate::script::ScriptStart). It ends
/// with the script.
pub(super) const SCRIPT: u8 = b'J';
/// To the worker: a [`ScriptReply`](crate::script::ScriptReply).
pub(super) const REPLY: u8 = b'r';
/// From the worker: a [`ScriptMessage`](crate::script::ScriptMessage).
pub(super) const FROM_SCRIPT: u8 = b'j';

/// How far a worker has come: rows that it has read, and all rows if they were counted.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Progress {
    pub(super) read: u64,
    pub(super) total: Option<u64>,
}

/// The tag and the length that precede a payload.
fn head(tag: u8, payload: &[u8]) -> io::Result<[u8; 5]> {
    let length = u32::try_from(payload.len()).ok().filter(|length| *length <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::other("the message is too long"))?;
    let [a, b, c, d] = length.to_le_bytes();
    Ok([tag, a, b, c, d])
}

/// Parses what [`head`] writes.
fn parse([tag, length @ ..]: [u8; 5]) -> io::Result<(u8, usize)> {
    let length = u32::from_le_bytes(length);
    if length > MAX_BYTES {
        return Err(io::Error::other("the message is too long"));
    }
    Ok((tag, length as usize))
}

pub(super) fn write(to: &mut impl Write, tag: u8, payload: &[u8]) -> io::Result<()> {
    to.write_all(&head(tag, payload)?)?;
    to.write_all(payload)?;
    to.flush()
}

/// Reads the next message into a buffer; `None` at the end.
pub(super) fn read(from: &mut impl Read, payload: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }

    let (tag, length) = parse(head)?;
    payload.resize(length, 0);
    from.read_exact(payload)?;
    Ok(Some(tag))
}

pub(super) async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    tag: u8,
    payload: &[u8],
) -> io::Result<()> {
    to.write_all(&head(tag, payload)?).await?;
    to.write_all(payload).await?;
    to.flush().await
}

/// The next message; `None` at the end.
///
/// # Errors
/// The message is larger than `max_bytes`, or cannot be read.
pub(super) async fn receive(
    from: &mut (impl AsyncRead + Unpin),
    max_bytes: usize,
) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }

    let (tag, length) = parse(head)?;
    if length > max_bytes {
        return Err(io::Error::other("the message is too long"));
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).await?;
    Ok(Some((tag, payload)))
}
