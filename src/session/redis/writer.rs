//! The one writer of a stream.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Inner, LINGER, PATIENCE, RETRY,
    lease_renewal::Hold,
    scripts::{Place, limited},
};
use crate::{
    protocol::RequestId,
    redis::millis,
    session::{EventId, SessionError, StreamWriter},
};

/// Closes the stream when it is dropped.
pub(super) struct RedisWriter {
    pub(super) inner: Arc<Inner>,
    pub(super) place: Place,
    pub(super) stream: Arc<str>,
    pub(super) call: RequestId,
    pub(super) position: u64,
    pub(super) finished: bool,
    /// A message could not be written: whoever follows must not take the end
    /// for the end of the call.
    pub(super) broken: bool,
    pub(super) hold: Option<Hold>,
}

/// What a follower is told when the call will never answer.
pub(super) fn last_words(call: &RequestId) -> String {
    let message = "The server process that ran this call is gone, and its result with it. Send the request again.";
    json!({ "jsonrpc": "2.0", "id": call, "error": { "code": -32603, "message": message } })
        .to_string()
}

#[async_trait]
impl StreamWriter for RedisWriter {
    fn start(&self) -> EventId {
        EventId { stream: Arc::clone(&self.stream), position: 0 }
    }

    async fn append(&mut self, message: Bytes) -> Result<(), SessionError> {
        self.write(&message, None).await
    }

    async fn finish(&mut self, message: Bytes) -> Result<(), SessionError> {
        let replay = self.inner.limits.replay;
        self.write(&message, Some(millis(replay))).await?;
        self.finished = true;
        Ok(())
    }

    async fn disconnect(&mut self, retry: Duration) -> Result<(), SessionError> {
        let call = self.place.stream(&self.inner.scripts.disconnect, &self.stream);
        let done: Result<Vec<String>, _> = self.inner.redis.call(&call.arg(millis(retry))).await;
        done.map(drop).map_err(|error| self.inner.unavailable(&error))
    }
}

impl RedisWriter {
    /// Appends; with a time for which it can be resumed, closes the stream, too.
    async fn write(&mut self, message: &Bytes, replay: Option<u64>) -> Result<(), SessionError> {
        if self.broken {
            return Err(SessionError::Unavailable);
        }
        let (inner, position) = (Arc::clone(&self.inner), self.position + 1);
        let begin = Instant::now();
        loop {
            let call = self.place.stream(&inner.scripts.append, &self.stream);
            let call = call.arg(position).arg(&message[..]);
            let call = call.arg(replay.map_or_else(String::new, |replay| replay.to_string()));
            let call = limited(call.arg(millis(LINGER)), &inner.limits);
            match inner.redis.call::<Vec<String>>(&call).await {
                Ok(answer) if answer[0] == "ok" => {
                    self.position = position;
                    return Ok(());
                }
                // Its session has ended; or what was acknowledged was lost in a
                // failover, and then there is somebody to tell.
                Ok(_) => {
                    self.broken = true;
                    return Err(SessionError::NotFound);
                }
                // It may come back soon, and a call may have cost a lot.
                Err(error) if begin.elapsed() < PATIENCE => {
                    tracing::debug!(%error, "a message is not written yet");
                    tokio::time::sleep(RETRY).await;
                }
                Err(error) => {
                    self.broken = true;
                    return Err(inner.unavailable(&error));
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
        // Without a runtime the process is ending; others will see that it has.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (inner, place, stream) =
            (Arc::clone(&self.inner), self.place.clone(), Arc::clone(&self.stream));
        let last_words = if self.broken { last_words(&self.call) } else { String::new() };
        let hold = self.hold.take();
        runtime.spawn(async move {
            let begin = Instant::now();
            // Later, nothing is left of it.
            while begin.elapsed() < inner.limits.replay + LINGER {
                if inner.close(&place, &stream, inner.instance.name(), &last_words).await.is_ok() {
                    break;
                }
                tokio::time::sleep(RETRY).await;
            }
            drop(hold);
        });
    }
}

impl Inner {
    /// Closes a stream of that writer's, if it is open.
    pub(super) async fn close(
        &self,
        place: &Place,
        stream: &str,
        writer: &str,
        last_words: &str,
    ) -> Result<(), crate::redis::RedisError> {
        let call = place.stream(&self.scripts.close, stream).arg(millis(self.limits.replay));
        let call = call.arg(millis(LINGER)).arg(writer).arg(last_words);
        self.redis.call::<Vec<String>>(&limited(call, &self.limits)).await.map(drop)
    }
}
