//! Appends a body to an upload, in parts. What has arrived before a connection breaks is kept.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use larder_runtime::random::Random;
use larder_store::store::{AppendError, ContentStream, PART_BYTES, PartialUpload};
use tokio::sync::oneshot;

use super::received::{BodyProblem, Received, not_stored};
use crate::http::problem::Problem;

/// Appends the whole body. Returns the upload with what was appended, and why that is not all.
pub(super) async fn append_all(
    mut upload: PartialUpload,
    body: Received,
    random: &Random,
) -> (PartialUpload, Result<(), Problem>) {
    let mut feed = Feed { body, rest: Bytes::new(), end: None };

    loop {
        feed.fill().await;
        if let Some(end) = feed.end {
            return (upload, end.map_err(Problem::from));
        }

        let (part, back) = feed.into_part();
        if let Err(error) = upload.append(part, random).await {
            return (upload, Err(refused(error)));
        }

        match back.await {
            Ok(returned) => feed = returned,
            // The store reads a stream to its end.
            Err(_) => return (upload, Err(BodyProblem::Incomplete.into())),
        }
    }
}

/// The problem of an upload that could not be changed.
pub(super) fn refused(error: AppendError) -> Problem {
    match error {
        AppendError::Changed => Problem::new(http::StatusCode::CONFLICT, error.to_string()),
        AppendError::Store(error) => not_stored(error),
    }
}

/// A body and what was read of it.
struct Feed {
    body: Received,
    /// Bytes that belong to the next part.
    rest: Bytes,
    /// How the body ended, once all of it was passed on.
    end: Option<Result<(), BodyProblem>>,
}

impl Feed {
    /// Waits until there are bytes for a part, or the body ends.
    async fn fill(&mut self) {
        while self.rest.is_empty() && self.end.is_none() {
            match self.body.next().await {
                Ok(Some(piece)) => self.rest = piece,
                Ok(None) => self.end = Some(Ok(())),
                Err(problem) => self.end = Some(Err(problem)),
            }
        }
    }

    /// The next part, and the feed once the part is read.
    fn into_part(self) -> (ContentStream, oneshot::Receiver<Self>) {
        let (back, returned) = oneshot::channel();

        let part = stream::unfold((self, back, PART_BYTES), |(mut feed, back, left)| async move {
            if left > 0 {
                feed.fill().await;
                if !feed.rest.is_empty() {
                    let piece = feed.rest.split_to(feed.rest.len().min(left));
                    let left = left - piece.len();
                    return Some((Ok(piece), (feed, back, left)));
                }
            }

            // The receiver is gone if the part was not stored.
            let _ = back.send(feed);
            None
        });

        (part.boxed(), returned)
    }
}
