//! Uploads into Redis, to keys that expire if the upload is abandoned.

use std::{any::Any, future::poll_fn, io::Write, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use larder_identity::Owner;
use larder_runtime::{clock::Timestamp, random::Random};
use tokio::{runtime::Handle, sync::oneshot, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{
    RedisState,
    blob::RedisBlob,
    parts::{ContentParts, MAX_INLINE, PART_BYTES},
    unavailable,
};
use crate::{
    redis::{Cmd, Pipeline, RedisError, RedisWrite, Shard, ToRedisArgs, cmd, millis, pipe},
    store::upload_reservation::{ReservingBackend, UPLOAD_TTL, UploadReservation},
    store::uploads_in_progress::UploadInProgress,
    store::{
        Committed, Draft, OwnerQuota, ResourceUri, StoreError, StoredBlock, StoredResource, Upload,
    },
};

/// How many parts one round trip copies, which takes Redis some milliseconds.
const COPIED_AT_ONCE: usize = 16;

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

    /// Removes and returns the first `len` bytes. `self` has at least `len`.
    fn split_to(&mut self, len: usize) -> Self {
        let mut first = Vec::new();
        let mut left = len;
        let mut chunks = std::mem::take(&mut self.0).into_iter();

        for mut chunk in chunks.by_ref() {
            if chunk.len() > left {
                first.push(chunk.split_to(left));
                self.0.push(chunk);
                break;
            }

            left -= chunk.len();
            first.push(chunk);
        }

        self.0.extend(chunks);
        Self(first)
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

/// How the last part of the content is sent with the commit.
pub(super) enum LastPart {
    /// An argument of the script, which writes it.
    Inline(Chunks),
    /// Commands before the script, which write it.
    Before(Pipeline),
}

impl ReservingBackend for RedisState {
    /// All bytes are reserved before they are sent.
    const STEP: u64 = 1;

    fn quota(&self) -> OwnerQuota {
        self.quota
    }

    fn random(&self) -> &Random {
        &self.random
    }

    fn now(&self) -> Timestamp {
        self.time.now()
    }

    fn begin_upload(&self, _owner: &Owner) -> Option<UploadInProgress> {
        None
    }

    async fn reserve_upload(
        self: &Arc<Self>,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        _unreserved: u64,
    ) -> Result<(), StoreError> {
        self.reserve(owner, uri, id, bytes, UPLOAD_TTL).await.map(drop)
    }
}

/// A part whose command runs in the background.
struct PendingPart {
    /// Resolves when the command has been passed to the connection.
    queued: oneshot::Receiver<()>,
    task: AbortOnDropHandle<Result<(), RedisError>>,
}

/// An upload of content into Redis.
pub(super) struct RedisUpload {
    inner: Arc<RedisState>,
    owner: Owner,
    shard: Shard,
    /// The ID of the content without the number of its parts, never reused.
    base: String,

    /// The size of the content in bytes, uncompressed.
    size: u64,
    /// The size of the content in bytes, as stored.
    stored: u64,
    /// Content that is not sent yet, at most one part.
    buffer: Chunks,
    /// The number of parts that were sent.
    sent: usize,
    /// The start of the current [`UPLOAD_TTL`] of the sent parts.
    extended: Instant,

    reservation: UploadReservation<RedisState>,
    /// The latest part, while the next one fills.
    sending: Option<PendingPart>,
    remove_on_drop: bool,
}

impl RedisUpload {
    pub(super) fn new(
        inner: Arc<RedisState>,
        owner: Owner,
        reservation: UploadReservation<RedisState>,
    ) -> Self {
        let base = inner.random.id();
        let shard = inner.shard_of(&owner);

        Self {
            inner,
            owner,
            shard,
            base,
            size: 0,
            stored: 0,
            buffer: Chunks::default(),
            sent: 0,
            extended: Instant::now(),
            reservation,
            sending: None,
            remove_on_drop: true,
        }
    }

    /// The parts that were sent.
    fn sent(&self) -> ContentParts {
        ContentParts::new(&self.base, self.sent)
    }

    /// The command that writes the next part. The commit checks the total length.
    fn set(&self, part: &Chunks) -> Cmd {
        let mut set = cmd("SET");
        set.arg(self.sent().key(&self.shard, self.sent)).arg(part);
        set.arg("PX").arg(millis(UPLOAD_TTL));
        set
    }

    /// The removal of the sent parts and the reservation, if Redis has either.
    fn discarding(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let is_known = self.sent > 0 || self.reservation.is_used();

        is_known.then(|| {
            let id = self.sent().id();
            discard(Arc::clone(&self.inner), self.owner.clone(), &id, &self.reservation)
        })
    }

    /// Sends a part in the background, after the earlier one.
    async fn send(&mut self, part: Chunks) -> Result<(), StoreError> {
        let earlier = self.sending.take();
        // Reserved before it is sent. Content of a single part is counted by the commit.
        tokio::try_join!(self.reservation.cover(self.size), finish(earlier))?;

        let inner = Arc::clone(&self.inner);
        let set = self.set(&part);
        drop(part);
        self.sent += 1;

        let (queue, queued) = oneshot::channel();
        let mut queue = Some(queue);
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut sending = std::pin::pin!(inner.redis.query(&set));
            poll_fn(|context| {
                let sent = sending.as_mut().poll(context);
                // The first poll passes the command to the connection. The upload may be
                // dropped already.
                let _ = queue.take().map(|queue| queue.send(()));
                sent
            })
            .await
        }));

        self.sending = Some(PendingPart { queued, task });
        Ok(())
    }

    /// Copies the parts of other content of this shard within Redis. They become the sent parts.
    async fn copy_parts(&mut self, source: &RedisBlob) -> Result<(), StoreError> {
        let keys: Vec<_> = source.parts.keys(&self.shard).collect();

        for keys in keys.chunks(COPIED_AT_ONCE) {
            let mut copies = pipe();
            for key in keys {
                let copy = self.sent().key(&self.shard, self.sent);
                // An attempt whose answer was lost may have made the copy already.
                copies.cmd("COPY").arg(key).arg(&copy).arg("REPLACE");
                copies.cmd("PEXPIRE").arg(copy).arg(millis(UPLOAD_TTL));
                self.sent += 1;
            }

            let copied: Vec<bool> =
                self.inner.redis.pipeline(&copies).await.map_err(unavailable)?;
            // Redis has removed the source, or a part of it.
            if copied.contains(&false) {
                return Err(StoreError::NotFound { uri: source.uri.clone() });
            }
            self.extend().await?;
        }

        Ok(())
    }

    /// Renews the expiry of sent parts and the reservation while content arrives slowly.
    async fn extend(&mut self) -> Result<(), StoreError> {
        if self.sent == 0 || self.extended.elapsed() < UPLOAD_TTL / 2 {
            return Ok(());
        }

        let mut extensions = pipe();
        for key in self.sent().keys(&self.shard) {
            extensions.cmd("PEXPIRE").arg(key).arg(millis(UPLOAD_TTL)).ignore();
        }

        let extended = Instant::now();
        let extending =
            async { self.inner.redis.pipeline::<()>(&extensions).await.map_err(unavailable) };
        tokio::try_join!(self.reservation.cover(self.size), extending)?;

        self.extended = extended;
        Ok(())
    }
}

/// Waits until a part has been sent.
async fn finish(sending: Option<PendingPart>) -> Result<(), StoreError> {
    let Some(sending) = sending else { return Ok(()) };
    let lost = |error| StoreError::Unavailable { backend: super::NAME, source: Box::new(error) };
    sending.task.await.map_err(lost)?.map_err(unavailable)
}

#[async_trait]
impl Upload for RedisUpload {
    async fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.reservation.announce(bytes).await
    }

    fn reserved(&self) -> u64 {
        self.reservation.bytes()
    }

    async fn copy(&mut self, source: &StoredResource) -> Result<bool, StoreError> {
        let blob: &dyn Any = &*source.blob;
        let stored = source.entry.stored_size();
        let is_copied = |blob: &&RedisBlob| blob.is_copied_into(&self.inner, &self.shard, stored);
        let Some(blob) = blob.downcast_ref().filter(is_copied) else { return Ok(false) };

        self.size = source.entry.size;
        self.stored = stored;
        self.reservation.cover(self.size).await?;
        self.copy_parts(blob).await?;
        Ok(true)
    }

    async fn append(&mut self, block: StoredBlock) -> Result<(), StoreError> {
        // Refuses content that can never fit. The commit checks the quota exactly.
        self.inner.quota.check_upload(self.size + block.size)?;

        self.size += block.size;
        self.stored += block.bytes.len() as u64;
        self.buffer.0.push(block.bytes);
        self.extend().await?;

        // The last part goes with the commit.
        while self.buffer.len() > PART_BYTES {
            let part = self.buffer.split_to(PART_BYTES);
            self.send(part).await?;
        }

        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "an upload commits for the owner that began it");

        let mut sending = self.sending.take();
        if let Some(part) = &mut sending {
            // The commit must reach Redis after this part. If it does not, content is
            // missing and the script refuses the commit.
            let _ = (&mut part.queued).await;
        }

        // From here on a resource may use the content, even if no reply arrives. The
        // script removes content that it refuses, and abandoned content expires.
        self.remove_on_drop = false;

        // Copied content has all its parts. Any other content has its last part in the buffer, even
        // if it is empty.
        let unsent = usize::from(self.buffer.len() > 0 || self.sent == 0);
        let parts = ContentParts::new(&self.base, self.sent + unsent);
        let last = std::mem::take(&mut self.buffer);
        let rest = if last.len() <= MAX_INLINE {
            LastPart::Inline(last)
        } else {
            let mut before = pipe();
            before.add_command(self.set(&last)).ignore();
            self.sent += 1;
            LastPart::Before(before)
        };

        let committing = self.inner.commit(draft, &parts, &self.reservation, rest, self.stored);
        let (sent, committed) = tokio::join!(finish(sending), committing);
        let committed = match (sent, committed) {
            // The lost part is the cause of the failed commit.
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
        // Without a runtime the content is left to expire; removing it frees memory sooner.
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
    inner: Arc<RedisState>,
    owner: Owner,
    id: &str,
    reservation: &UploadReservation<RedisState>,
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
    fn chunks_are_split_at_any_byte() {
        let chunks = || Chunks(vec![Bytes::from("ab"), Bytes::from("cde"), Bytes::from("f")]);
        for len in 0..=6 {
            let mut rest = chunks();
            let first = rest.split_to(len);

            assert_eq!(first.0.concat(), &b"abcdef"[..len]);
            assert_eq!(rest.0.concat(), &b"abcdef"[len..]);
            assert_eq!((first.len(), rest.len()), (len, 6 - len));
        }
    }
}
