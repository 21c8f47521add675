//! Content on its way into Redis, under a key that expires if it never arrives.

use std::{future::poll_fn, io::Write, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::{runtime::Handle, sync::oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{Inner, entry, unavailable};
use crate::{
    auth::Owner,
    redis::{Pipeline, RedisError, RedisWrite, ToRedisArgs, cmd, millis, pipe},
    store::{Committed, Draft, Packed, StoreError, Upload, blocks::BLOCK_BYTES},
};

/// How much is collected while something else is being sent. What is left at the
/// end goes with the commit, so that small content takes one round trip in all.
const WINDOW: usize = 2 * BLOCK_BYTES;

/// How much the committing script takes as an argument. It costs the script a
/// few copies, which are dearer than a command of its own where it is more.
const INLINE: usize = 16 * 1024;

/// How long the next blocks may take to come.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Content that is one argument, without being one piece.
#[derive(Default)]
pub(super) struct Pieces(Vec<Bytes>);

impl Pieces {
    pub(super) fn of(bytes: Bytes) -> Self {
        Self(vec![bytes])
    }

    fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ToRedisArgs for Pieces {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        out.reserve_space_for_args([self.len()]);
        let mut argument = out.writer_for_next_arg();
        for piece in &self.0 {
            // Writing to memory cannot fail.
            let _ = argument.write_all(piece);
        }
    }
}

/// How the end of content goes with the commit.
pub(super) enum Rest {
    /// As the script's argument; the script appends it.
    Inline(Pieces),
    /// By commands that come before it.
    Before(Pipeline),
}

struct Sending {
    /// Comes when it has been handed to the connection, where there is one.
    handed: oneshot::Receiver<()>,
    sent: AbortOnDropHandle<Result<(), RedisError>>,
}

pub(super) struct RedisUpload {
    inner: Arc<Inner>,
    owner: Owner,
    /// Of the content; of no other ever.
    id: String,
    key: String,
    /// How much content has come.
    size: u64,
    /// How much is kept of it.
    stored: u64,
    /// What is not sent yet.
    held: Pieces,
    /// Whether anything was.
    begun: bool,
    /// What is being sent, while more comes.
    sending: Option<Sending>,
    /// Whether what lies there may be removed when this is dropped.
    mine: bool,
}

impl RedisUpload {
    pub(super) fn new(inner: Arc<Inner>, owner: Owner) -> Self {
        let id = inner.random.id();
        let key = entry::blob_key(&inner.shard_of(&owner), &id);
        Self {
            inner,
            owner,
            id,
            key,
            size: 0,
            stored: 0,
            held: Pieces::default(),
            begun: false,
            sending: None,
            mine: true,
        }
    }

    /// The commands that send what is held. Whether all is there is counted
    /// when it is committed.
    fn taking(&mut self) -> Pipeline {
        let held = std::mem::take(&mut self.held);
        let mut taking = pipe();
        // Together, or a lost connection might leave a key that never expires.
        taking.atomic();
        if std::mem::replace(&mut self.begun, true) {
            taking.cmd("APPEND").arg(&self.key).arg(held).ignore();
            taking.cmd("PEXPIRE").arg(&self.key).arg(millis(PATIENCE)).ignore();
        } else {
            taking.cmd("SET").arg(&self.key).arg(held).arg("PX").arg(millis(PATIENCE)).ignore();
        }
        taking
    }

    /// Sends what is held, and does not wait for it to arrive.
    fn send(&mut self) {
        let (inner, taking) = (Arc::clone(&self.inner), self.taking());
        let (hand, handed) = oneshot::channel();
        let mut hand = Some(hand);
        let sent = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut sending = std::pin::pin!(inner.redis.pipeline(&taking));
            poll_fn(|context| {
                let sent = sending.as_mut().poll(context);
                // Who waits no longer need not know.
                let _ = hand.take().map(|hand| hand.send(()));
                sent
            })
            .await
        }));
        self.sending = Some(Sending { handed, sent });
    }
}

impl Sending {
    async fn arrived(self) -> Result<(), StoreError> {
        let lost =
            |error| StoreError::Unavailable { backend: super::NAME, source: Box::new(error) };
        self.sent.await.map_err(lost)?.map_err(unavailable)
    }
}

#[async_trait]
impl Upload for RedisUpload {
    async fn append(&mut self, block: Packed) -> Result<(), StoreError> {
        // The commit counts exactly; this is so that what can never fit does not fill Redis first.
        self.inner.quota.check_upload(self.size + block.size)?;
        let idle = self.sending.as_ref().is_none_or(|sending| sending.sent.is_finished());
        if !self.held.is_empty() && (idle || self.held.len() + block.bytes.len() > WINDOW) {
            if let Some(sending) = self.sending.take() {
                sending.arrived().await?;
            }
            self.send();
        }
        self.size += block.size;
        self.stored += block.bytes.len() as u64;
        self.held.0.push(block.bytes);
        Ok(())
    }

    async fn commit(mut self: Box<Self>, draft: Draft) -> Result<Committed, StoreError> {
        debug_assert_eq!(self.owner, draft.owner, "content stays with whom it was begun for");
        let mut sending = self.sending.take();
        if let Some(sending) = &mut sending {
            // So that what comes now comes after it. Where it does not, too little is there,
            // and the commit is refused.
            let _ = (&mut sending.handed).await;
        }
        // From here on it may be somebody's resource, also where no answer comes:
        // what is refused is removed there, and what never arrives expires.
        self.mine = false;
        let rest = if self.held.len() <= INLINE {
            Rest::Inline(std::mem::take(&mut self.held))
        } else {
            Rest::Before(self.taking())
        };
        let arriving = async {
            match sending {
                Some(sending) => sending.arrived().await,
                None => Ok(()),
            }
        };
        let committing = self.inner.commit(draft, &self.id, rest, self.stored);
        let (arrived, committed) = tokio::join!(arriving, committing);
        let committed = match (arrived, committed) {
            // That tells more than that there is too little.
            (Err(lost), Err(_)) => Err(lost),
            (_, committed) => committed,
        };
        self.mine = matches!(committed, Err(StoreError::NotFound { .. }));
        committed
    }
}

impl Drop for RedisUpload {
    fn drop(&mut self) {
        // It would expire, but may be large. Where nothing runs any more, it does expire.
        if self.mine
            && self.stored > 0
            && let Ok(runtime) = Handle::try_current()
        {
            let (inner, key) = (Arc::clone(&self.inner), self.key.clone());
            runtime.spawn(async move {
                if let Err(error) = inner.redis.query::<()>(cmd("UNLINK").arg(&key)).await {
                    tracing::debug!(%error, "content that was given up is left to expire");
                }
            });
        }
    }
}
