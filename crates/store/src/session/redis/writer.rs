//! The writer of a stream.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use larder_identity::Owner;
use larder_protocol::RequestId;
use larder_runtime::held::HeldBytes;
use serde_json::json;
use tokio::time::Instant;

use super::{
    LINGER, MAX_OUTAGE, RETRY, RedisSessionStore, keys::SessionKeys, lease_renewal::Lease,
    scripts::with_limits, unavailable,
};
use crate::{
    redis::{RedisError, millis},
    session::{EventId, Retention, Session, SessionError, StreamWriter, unkept_answer_error},
};

/// The writer of a call's stream. Dropping it closes the stream.
pub(super) struct RedisWriter {
    inner: Arc<RedisSessionStore>,
    keys: SessionKeys,
    stream: Arc<str>,
    call: RequestId,

    position: u64,
    /// The bytes of the messages so far, up to the number that the stream keeps.
    bytes: usize,
    owner: Owner,

    finished: bool,
    /// Whether a message could not be written. Such a stream must not end as if the call had
    /// finished.
    broken: bool,
    lease: Option<Lease>,
}

/// The way in which the last message is kept.
struct LastMessage {
    /// The error for later followers in place of the message; empty if the message is kept.
    lost: String,
    /// Whether the earlier messages are dropped, too.
    trim: bool,
}

/// The error response for followers of a call whose result is lost.
pub(super) fn lost_call_error(call: &RequestId) -> String {
    let message = "The server process that ran this call is gone, so its result is lost. Send the request again.";
    json!({ "jsonrpc": "2.0", "id": call, "error": { "code": -32603, "message": message } })
        .to_string()
}

impl RedisSessionStore {
    /// Opens a stream for a call of the session.
    pub(super) async fn open(
        self: &Arc<Self>,
        session: &Session,
        call: &RequestId,
    ) -> Result<RedisWriter, SessionError> {
        let keys = self.keys(session);
        let stream = Arc::from(self.random.id());
        let max = self.limits.streams_per_session;
        let lease = self.leases.acquire(&keys, Some(&stream));

        let open = keys.session(&self.scripts.open).arg(&*stream).arg(max);
        let open = open.arg(millis(self.limits.replay)).arg(millis(LINGER));
        let open = open.arg(&**self.instance.name()).arg(json!(call).to_string());
        if self.call(open).await?[0] == "many" {
            return Err(SessionError::too_many_streams(max));
        }

        Ok(RedisWriter {
            inner: Arc::clone(self),
            keys,
            stream,
            call: call.clone(),
            position: 0,
            bytes: 0,
            owner: session.principal.owner(),
            finished: false,
            broken: false,
            lease: Some(lease),
        })
    }

    /// Closes a stream if it is open and belongs to `writer`. A non-empty message is appended first.
    pub(super) async fn close(
        &self,
        keys: &SessionKeys,
        stream: &str,
        writer: &str,
        message: &str,
    ) -> Result<(), RedisError> {
        let call = keys.stream(&self.scripts.close, stream).arg(millis(self.limits.replay));
        let call = call.arg(millis(LINGER)).arg(writer).arg(message);
        self.redis.call::<Vec<String>>(&with_limits(call, &self.limits)).await.map(drop)
    }
}

#[async_trait]
impl StreamWriter for RedisWriter {
    fn start(&self) -> EventId {
        EventId { stream: Arc::clone(&self.stream), position: 0 }
    }

    async fn append(&mut self, message: Bytes) -> Result<(), SessionError> {
        self.write(&message, None).await?;
        self.bytes = (self.bytes + message.len()).min(self.inner.limits.bytes_per_stream);
        Ok(())
    }

    async fn finish(
        &mut self,
        message: HeldBytes,
        retention: Retention,
    ) -> Result<(), SessionError> {
        let message = message.as_bytes();
        let budget = &self.inner.budget;
        let is_kept = retention == Retention::Kept;
        let mut kept = is_kept.then(|| budget.reserve(&self.owner, self.bytes + message.len()));

        let mut last = LastMessage { lost: String::new(), trim: false };
        if kept.as_ref().is_none_or(Option::is_none) {
            last.lost = unkept_answer_error(&self.call);
            kept = Some(budget.reserve(&self.owner, self.bytes));
            last.trim = kept.as_ref().is_some_and(Option::is_none);
        }

        self.write(message, Some(last)).await?;
        self.finished = true;
        self.inner.keep(kept.flatten());
        Ok(())
    }

    async fn disconnect(&mut self, retry: Duration) -> Result<(), SessionError> {
        let call = self.keys.stream(&self.inner.scripts.disconnect, &self.stream);
        let result: Result<Vec<String>, _> = self.inner.redis.call(&call.arg(millis(retry))).await;
        result.map(drop).map_err(|error| unavailable(&error))
    }
}

impl RedisWriter {
    /// Appends a message. `last` marks the last message, which also closes the stream.
    async fn write(
        &mut self,
        message: &Bytes,
        last: Option<LastMessage>,
    ) -> Result<(), SessionError> {
        if self.broken {
            return Err(SessionError::Unavailable);
        }

        let inner = Arc::clone(&self.inner);
        let position = self.position + 1;
        let begin = Instant::now();

        loop {
            let call = self.keys.stream(&inner.scripts.append, &self.stream);
            let call = call.arg(position).arg(&message[..]);
            let replay = last.as_ref().map(|_| millis(inner.limits.replay).to_string());
            let call = call.arg(replay.unwrap_or_default());
            let call = with_limits(call.arg(millis(LINGER)), &inner.limits);
            let lost = last.as_ref().map_or("", |last| &last.lost);
            let trim = if last.as_ref().is_some_and(|last| last.trim) { "trim" } else { "" };
            let call = call.arg(lost).arg(trim);

            match inner.redis.call::<Vec<String>>(&call).await {
                Ok(reply) if reply[0] == "ok" => {
                    self.position = position;
                    return Ok(());
                }
                // The session has ended, or a failover lost acknowledged messages. In the second
                // case a follower still has to receive the error.
                Ok(_) => {
                    self.broken = true;
                    return Err(SessionError::NotFound);
                }
                // The outage may be short and the call's result expensive, so try again.
                Err(error) if begin.elapsed() < MAX_OUTAGE => {
                    tracing::debug!(%error, "cannot append a message yet");
                    tokio::time::sleep(RETRY).await;
                }
                Err(error) => {
                    self.broken = true;
                    return Err(unavailable(&error));
                }
            }
        }
    }
}

impl Drop for RedisWriter {
    fn drop(&mut self) {
        if self.finished {
            return;
        }

        // Without a runtime the process is ending, which other instances will notice.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let inner = Arc::clone(&self.inner);
        let keys = self.keys.clone();
        let stream = Arc::clone(&self.stream);
        let message = if self.broken { lost_call_error(&self.call) } else { String::new() };
        let lease = self.lease.take();

        runtime.spawn(async move {
            let begin = Instant::now();
            // After this time the stream has expired.
            while begin.elapsed() < inner.limits.replay + LINGER {
                if inner.close(&keys, &stream, inner.instance.name(), &message).await.is_ok() {
                    break;
                }
                tokio::time::sleep(RETRY).await;
            }

            drop(lease);
        });
    }
}
