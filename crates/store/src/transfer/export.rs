//! Writes all resources of a store.

use std::pin::pin;

use futures_util::StreamExt;
use larder_identity::Owner;
use serde::Serialize;
use tokio::io::AsyncWrite;

use super::{
    Progress, TransferError, VERSION,
    frames::{FrameKind, FrameWriter},
    revision::Revision,
};
use crate::store::{Entry, ResourceUri, Store, StoreError, StoredResource};

/// The number of owners in one listing.
const OWNERS: usize = 256;

/// The number of resources in one listing.
const RESOURCES: usize = 64;

/// The counts of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Exported {
    /// Revisions in the export.
    pub revisions: u64,
    /// The bytes of their content.
    pub bytes: u64,
    /// Revisions that were deleted or expired during the export.
    pub gone: u64,
    /// Revisions that are damaged in the store, and are not in the export.
    pub damaged: u64,
}

/// Writes all resources of all owners, with their revisions. Holds a few blocks in memory.
///
/// # Errors
/// The store or the output fails; the export is incomplete then.
pub async fn export<W: AsyncWrite + Unpin>(
    store: &Store,
    out: W,
    mut report: impl FnMut(Progress<'_>),
) -> Result<(Exported, W), TransferError> {
    let mut export = Export { store, frames: FrameWriter::new(out)?, done: Exported::default() };
    let header = serde_json::json!({ "format": "larder-export", "version": VERSION, "exported": store.now().as_millis() });
    export.frames.write(FrameKind::Header, header.to_string().as_bytes()).await?;

    let mut after = None;
    loop {
        let page = store.owners(after.as_deref(), OWNERS).await?;
        for owner in &page.owners {
            export.owner(owner, &mut report).await?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }

    let Export { mut frames, done, .. } = export;

    let end = serde_json::to_vec(&done).map_err(std::io::Error::from)?;
    frames.write(FrameKind::End, &end).await?;
    Ok((done, frames.finish().await?))
}

/// The end of a revision in an export.
enum RevisionEnd {
    Written,
    /// The content cannot be read to its end.
    Abandoned(StoreError),
}

struct Export<'s, W> {
    store: &'s Store,
    frames: FrameWriter<W>,
    done: Exported,
}

impl<W: AsyncWrite + Unpin> Export<'_, W> {
    /// Writes all resources of an owner.
    async fn owner(
        &mut self,
        owner: &Owner,
        report: &mut impl FnMut(Progress<'_>),
    ) -> Result<(), TransferError> {
        let mut after: Option<ResourceUri> = None;

        loop {
            let from = after.as_ref().map(ResourceUri::as_str);
            let page = self.store.list(owner, "", from, RESOURCES).await?;
            for entry in &page.entries {
                self.resource(entry, report).await?;
            }

            after = page.entries.last().map(|entry| entry.uri.clone());
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Writes the revisions of a resource.
    async fn resource(
        &mut self,
        entry: &Entry,
        report: &mut impl FnMut(Progress<'_>),
    ) -> Result<(), TransferError> {
        match self.store.revisions(&entry.owner, &entry.uri).await {
            Ok(revisions) => {
                for found in revisions {
                    match self.revision(&found).await? {
                        RevisionEnd::Written => {}
                        RevisionEnd::Abandoned(why) => {
                            self.left_out(&found.entry, why, report)?;
                        }
                    }
                    let Exported { revisions, bytes, .. } = self.done;
                    report(Progress::Done { revisions, bytes });
                }
                Ok(())
            }
            Err(why) => self.left_out(entry, why, report),
        }
    }

    /// Writes a revision, as far as its content can be read.
    async fn revision(&mut self, found: &StoredResource) -> Result<RevisionEnd, TransferError> {
        let metadata = serde_json::to_vec(&Revision::from(&*found.entry));
        let metadata = metadata.map_err(std::io::Error::from)?;
        self.frames.write(FrameKind::Revision, &metadata).await?;

        let mut content = pin!(found.stream());
        while let Some(piece) = content.next().await {
            match piece {
                Ok(piece) => self.frames.write(FrameKind::Content, &piece).await?,
                Err(error) => {
                    self.frames.write(FrameKind::Abandoned, &[]).await?;
                    return Ok(RevisionEnd::Abandoned(error));
                }
            }
        }

        self.done.revisions += 1;
        self.done.bytes += found.entry.size;
        Ok(RevisionEnd::Written)
    }

    /// Counts a revision that is not exported.
    ///
    /// # Errors
    /// The store is not available.
    fn left_out(
        &mut self,
        entry: &Entry,
        why: StoreError,
        report: &mut impl FnMut(Progress<'_>),
    ) -> Result<(), TransferError> {
        if why.is_not_found() {
            self.done.gone += 1;
        } else if matches!(why, StoreError::Corrupt { .. }) {
            self.done.damaged += 1;
            let owner = entry.owner.as_str();
            let uri = entry.uri.as_str();
            report(Progress::LeftOut { owner, uri, revision: entry.revision, why: &why });
        } else {
            return Err(why.into());
        }
        Ok(())
    }
}
