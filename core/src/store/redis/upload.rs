//! Uploads into Redis, to a key that expires if the upload is abandoned.

use std::{future::poll_fn, io::Write, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Inner, entry,
    reservation::{Reservation, UNRESERVED, UPLOAD_TTL},
    unavailable,
};
use crate::{
    auth::Owner,
    redis::{Pipeline, RedisError, RedisWrite, ToRedisArgs, millis, pipe},
    store::{Committed, Draft, StoreError, StoredBlock, Upload},
};

/// How many bytes are buffered while others are sent. The rest goes with the
/// commit, so that small content takes one round trip in total.
const MAX_BUFFERED: usize = UNRESERVED;

/// How many bytes may go as an argument of the script. The script copies it a few
/// times, so for more bytes a separate command is cheaper.
const MAX_INLINE: usize = 16 * 1024;

/// The maximum size of a Redis string in bytes (`proto-max-bulk-len`).
const MAX_STRING: u64 = 512 << 20;

/// Refuses content that one string of Redis cannot have.
fn check_string(stored: u64) -> Result<(), StoreError> {
    if stored <= MAX_STRING {
        return Ok(());
    }
    Err(StoreError::Full(
        "The content is larger than 512 MiB when it is compressed, the most that Redis can have of one resource. Store less, or tell the server's operator to set store.blobs.".to_owned(),
    ))
}

/// Content in several chunks that are sent as one argument.
#[derive(Default)]
pub(super) struct Chunks(Vec<Bytes>);

impl From<Bytes> for Chunks {
    fn from(bytes: Bytes) -> Self {
        Self(vec![bytes])
    }
}

impl Chunks {
    fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ToRedisArgs for Chunks {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.reserve_space_for_args([self.len()]);
        let mut argument = out.writer_for_next_arg();
        for chunk in &self.0 {
            // Writing to memory cannot fail.
            let _ = argument.write_all(chunk);
        }
    }
}

/// How the rest of the content goes with the commit.
pub(super) enum Rest {
    /// It is an argument of the script, which appends it.
    Inline(Chunks),
    /// Commands before the script append it.
    Before(Pipeline),
}

/// Content that is being sent.
struct Sending {
    /// Resolves when the commands have been passed to the connection.
    queued: oneshot::Receiver<()>,
    task: AbortOnDropHandle<Result<(), RedisError>>,
}

/// An upload of content into Redis.
pub(super) struct RedisUpload {
    inner: Arc<Inner>,
    owner: Owner,
    /// The ID of the content, never reused.
    id: String,
    key: String,
    /// Bytes of content, uncompressed.
    size: u64,
    /// Bytes as stored.
    stored: u64,
    /// Content that is not sent yet.
    buffer: Chunks,
    /// Whether any content was sent.
    started: bool,
    reservation: Reservation,
    sending: Option<Sending>,
    remove_on_drop: bool,
}

impl RedisUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner, reservation: Reservation) -> Self {
        let id = inner.random.id();
        let key = entry::blob_key(&inner.shard_of(&owner), &id);
        Self {
            inner,
            owner,
            id,
            key,
            size: 0,
            stored: 0,
            buffer: Chunks::default(),
            started: false,
            reservation,
            sending: None,
            remove_on_drop: true,
        }
    }

    /// The commands that send the buffer. The commit checks the total length.
    fn append_commands(&mut self) -> Pipeline {
        let content = std::mem::take(&mut self.buffer);
        let mut commands = pipe();
        // Atomic, because a lost connection could otherwise leave a key without an expiry.
        commands.atomic();
        if std::mem::replace(&mut self.started, true) {
            commands.cmd("APPEND").arg(&self.key).arg(content).ignore();
            commands.cmd("PEXPIRE").arg(&self.key).arg(millis(UPLOAD_TTL)).ignore();
        } else {
            commands
                .cmd("SET")
                .arg(&self.key)
                .arg(content)
                .arg("PX")
                .arg(millis(UPLOAD_TTL))
                .ignore();
        }
        commands
    }

    /// Removes what Redis has of the upload, if it has anything.
    fn discarding(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let is_known = self.started || self.reservation.is_used();
        is_known.then(|| {
            discard(Arc::clone(&self.inner), self.owner.clone(), &self.id, &self.reservation)
        })
    }

    /// Sends the buffer in the background.
    fn send(&mut self) {
        let (inner, commands) = (Arc::clone(&self.inner), self.append_commands());
        let (queue, queued) = oneshot::channel();
        let mut queue = Some(queue);
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut sending = std::pin::pin!(inner.redis.pipeline(&commands));
            poll_fn(|context| {
                let sent = sending.as_mut().poll(context);
                // Its first poll passes the commands to the connection. The upload may be
                // dropped already.
                let _ = queue.take().map(|queue| queue.send(()));
                sent
            })
            .await
        }));
        self.sending = Some(Sending { queued, task });
    }
}

impl Sending {
    async fn finish(self) -> Result<(), StoreError> {
        let lost =
            |error| StoreError::Unavailable { backend: super::NAME, source: Box::new(error) };
        self.task.await.map_err(lost)?.map_err(unavailable)
    }
}

#[async_trait]
impl Upload for RedisUpload {
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.reservation.announce(bytes).await
    }

    fn reserved(&self) -> u64 {
        self.reservation.bytes()
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        // Refuses early what can never fit. The commit checks the quota exactly.
        self.inner.quota.check_upload(self.size + block.size)?;
        check_string(self.stored + block.bytes.len() as u64)?;
        let idle = self.sending.as_ref().is_none_or(|sending| sending.task.is_finished());
        if !self.buffer.is_empty() && (idle || self.buffer.len() + block.bytes.len() > MAX_BUFFERED)
        {
            // Counted before it is sent. Content of one block is counted by the commit.
            let size = self.size + block.size;
            let sending = self.sending.take();
            tokio::try_join!(self.reservation.cover(size), async {
                match sending {
                    Some(sending) => sending.finish().await,
                    None => Ok(()),
                }
            })?;
            self.send();
        }
        self.size += block.size;
        self.stored += block.bytes.len() as u64;
        self.buffer.0.push(block.bytes);
        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "an upload commits for the owner that began it");
        let mut sending = self.sending.take();
        if let Some(sending) = &mut sending {
            // The commit must reach Redis after this content. If it does not, content is
            // missing and the script refuses the commit.
            let _ = (&mut sending.queued).await;
        }
        // From here on a resource may have the content, even if no reply arrives. The
        // script removes content that it refuses, and abandoned content expires.
        self.remove_on_drop = false;
        let rest = if self.buffer.len() <= MAX_INLINE {
            Rest::Inline(std::mem::take(&mut self.buffer))
        } else {
            Rest::Before(self.append_commands())
        };
        let sending = async {
            match sending {
                Some(sending) => sending.finish().await,
                None => Ok(()),
            }
        };
        let committing = self.inner.commit(draft, &self.id, &self.reservation, rest, self.stored);
        let (sent, committed) = tokio::join!(sending, committing);
        let committed = match (sent, committed) {
            // This error is the cause of the other.
            (Err(lost), Err(_)) => Err(lost),
            (_, committed) => committed,
        };
        self.remove_on_drop = matches!(committed, Err(StoreError::NotFound { .. }));
        committed
    }

    async fn discard(mut self: Box<Self>) {
        self.sending = None;
        if let Some(discarding) = self.discarding() {
            discarding.await;
        }
        self.remove_on_drop = false;
    }
}

impl Drop for RedisUpload {
    fn drop(&mut self) {
        // It would expire, but may be large. Without a runtime it is left to expire.
        if self.remove_on_drop
            && let Some(discarding) = self.discarding()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(discarding);
        }
    }
}

/// Removes an abandoned upload with its own reservation.
pub(super) fn discard(
    inner: Arc<Inner>,
    owner: Owner,
    id: &str,
    reservation: &Reservation,
) -> impl Future<Output = ()> + Send + use<> {
    let reservation = if reservation.is_given() { "" } else { reservation.id() }.to_owned();
    let id = id.to_owned();
    async move {
        if let Err(error) = inner.discard(&owner, &id, &reservation, 0).await {
            tracing::debug!(%error, "cannot remove abandoned content; it will expire");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_redis_cannot_have_is_refused_with_what_helps() {
        assert!(check_string(MAX_STRING).is_ok());
        let refused = check_string(MAX_STRING + 1).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|why| why.contains("512 MiB") && why.contains("store.blobs")));
    }
}
