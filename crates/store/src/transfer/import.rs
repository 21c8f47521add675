//! Writes the resources of an export into a store.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::{io::AsyncRead, sync::mpsc};

use super::{
    Progress, TransferError, VERSION,
    frames::{FrameKind, FrameReader},
    revision::Revision,
};
use crate::store::{Entry, Restored, Store, StoreError};

/// The most pieces of content that wait for the store.
const PIECES: usize = 4;

/// The counts of an import. Each revision of the export counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Revisions that were written.
    pub written: u64,
    /// The bytes of their content.
    pub bytes: u64,
    /// Revisions that the store had already.
    pub present: u64,
    /// Revisions whose URI has a later write in the store, which stays.
    pub later: u64,
    /// Revisions that have expired since the export.
    pub expired: u64,
    /// Revisions that the store refused, for example because a quota is exceeded.
    pub refused: u64,
}

impl Imported {
    fn count(&mut self, restored: Restored, size: u64) {
        match restored {
            Restored::Written => {
                self.written += 1;
                self.bytes += size;
            }
            Restored::Present => self.present += 1,
            Restored::Later => self.later += 1,
            Restored::Expired => self.expired += 1,
        }
    }
}

type ReceivedBytes = mpsc::Receiver<std::io::Result<Bytes>>;

#[derive(Deserialize)]
struct Header {
    format: String,
    version: u32,
}

/// Whether all content of a revision has been read.
enum ContentEnd {
    Complete,
    Abandoned,
}

/// Writes the resources of an export. Revisions that the store has are not written again, so an
/// interrupted import can be repeated. Holds a few blocks in memory.
///
/// # Errors
/// The store or the input fails. Revisions that were written before stay.
pub async fn import<R: AsyncRead + Unpin>(
    store: &Store,
    input: R,
    mut report: impl FnMut(Progress<'_>),
) -> Result<Imported, TransferError> {
    let mut frames = FrameReader::new(input)?;
    let (_, header) = frames.next().await?;
    let header: Header = serde_json::from_slice(&header).map_err(|_| TransferError::NotAnExport)?;
    if header.format != "larder-export" {
        return Err(TransferError::NotAnExport);
    }
    if header.version != VERSION {
        return Err(TransferError::Version(header.version));
    }

    let mut done = Imported::default();
    let mut revisions = 0;
    let mut bytes = 0;

    loop {
        let entry = match frames.next().await? {
            (FrameKind::Revision, metadata) => {
                let revision = serde_json::from_slice::<Revision>(&metadata);
                Entry::from(revision.map_err(|error| TransferError::Damaged(error.to_string()))?)
            }
            (FrameKind::End, _) => return Ok(done),
            (kind, _) => {
                return Err(TransferError::Damaged(format!("unexpected frame: {kind:?}")));
            }
        };

        match revision(store, &mut frames, &entry).await? {
            RevisionEnd::Restored(restored) => done.count(restored, entry.size),
            RevisionEnd::Refused(why) if why.is_internal() => return Err(why.into()),
            RevisionEnd::Refused(why) => {
                done.refused += 1;
                let owner = entry.owner.as_str();
                let uri = entry.uri.as_str();
                report(Progress::LeftOut { owner, uri, revision: entry.revision, why: &why });
            }
            RevisionEnd::Abandoned => {}
        }

        revisions += 1;
        bytes += entry.size;
        report(Progress::Done { revisions, bytes });
    }
}

/// The end of a revision of an export.
enum RevisionEnd {
    Restored(Restored),
    /// The store has not taken it.
    Refused(StoreError),
    /// The export does not have all of it.
    Abandoned,
}

/// Restores a revision.
async fn revision<R: AsyncRead + Unpin>(
    store: &Store,
    frames: &mut FrameReader<R>,
    entry: &Entry,
) -> Result<RevisionEnd, TransferError> {
    let (pieces, received) = mpsc::channel(PIECES);
    let received = stream::unfold(received, |mut received: ReceivedBytes| async move {
        received.recv().await.map(|piece| (piece, received))
    });

    let restoring = store.restore(entry, received.boxed());
    let (end, restored) = tokio::join!(read_content(frames, entry.size, pieces), restoring);

    Ok(match (end?, restored) {
        (ContentEnd::Abandoned, _) => RevisionEnd::Abandoned,
        (ContentEnd::Complete, Ok(restored)) => RevisionEnd::Restored(restored),
        (ContentEnd::Complete, Err(why)) => RevisionEnd::Refused(why),
    })
}

/// Reads the content of a revision and sends it to the store. The store may end early.
async fn read_content<R: AsyncRead + Unpin>(
    frames: &mut FrameReader<R>,
    size: u64,
    pieces: mpsc::Sender<std::io::Result<Bytes>>,
) -> Result<ContentEnd, TransferError> {
    let mut left = size;

    let send = async |piece| {
        // If the store does not need the content, or refuses it, the rest is skipped.
        let _ = pieces.send(piece).await;
    };
    // Without an error, the content would seem to end here.
    let fail = async |why: &str| send(Err(std::io::Error::other(why.to_owned()))).await;

    while left > 0 {
        match frames.next().await {
            Ok((FrameKind::Content, piece)) if piece.len() as u64 <= left => {
                left -= piece.len() as u64;
                send(Ok(Bytes::from(piece))).await;
            }
            Ok((FrameKind::Abandoned, _)) => {
                fail("the export has abandoned it").await;
                return Ok(ContentEnd::Abandoned);
            }
            Ok((kind, _)) => {
                fail("the export is damaged").await;
                return Err(TransferError::Damaged(format!("unexpected frame: {kind:?}")));
            }
            Err(error) => {
                fail("the export is damaged").await;
                return Err(error);
            }
        }
    }

    Ok(ContentEnd::Complete)
}
