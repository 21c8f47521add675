//! Notes in Redis.

use std::time::Duration;

use async_trait::async_trait;

use super::unavailable;
use crate::{
    redis::{FromRedisValue, Redis, Script, cmd, millis},
    session::{Notes, SessionError},
};

/// Notes in the Redis of the sessions.
pub struct RedisNotes {
    redis: Redis,
    /// The life of an idle session.
    idle: Duration,
    keep: Script,
    read: Script,
}

impl RedisNotes {
    /// Notes that expire after `idle`, as sessions do.
    pub fn new(redis: Redis, idle: Duration) -> Self {
        let script = |code| Script::with_time_functions(&[code]);
        Self {
            redis,
            idle,
            keep: script(include_str!("keep_note.lua")),
            read: script(include_str!("read_note.lua")),
        }
    }

    fn key(&self, session: &str, part: &str) -> String {
        self.redis.keys().shard_of(session).key_with("note", session, part)
    }

    async fn send<T: FromRedisValue>(
        &self,
        command: &crate::redis::Cmd,
    ) -> Result<T, SessionError> {
        self.redis.query(command).await.map_err(|error| unavailable(&error))
    }
}

#[async_trait]
impl Notes for RedisNotes {
    async fn keep(&self, session: &str, part: &str, text: &str) -> Result<(), SessionError> {
        let key = [self.key(session, part)];
        let call = self.keep.on(&key).arg(text).arg(millis(self.idle));
        self.redis.call::<()>(&call).await.map_err(|error| unavailable(&error))
    }

    async fn read(&self, session: &str, part: &str) -> Result<Option<(String, u32)>, SessionError> {
        let key = [self.key(session, part)];
        let call = self.read.on(&key);
        self.redis.call(&call).await.map_err(|error| unavailable(&error))
    }

    async fn extend(&self, session: &str, part: &str) -> Result<(), SessionError> {
        let key = self.key(session, part);
        self.send(cmd("PEXPIRE").arg(key).arg(millis(self.idle))).await
    }

    async fn remove(&self, session: &str, part: &str) -> Result<(), SessionError> {
        self.send(cmd("DEL").arg(self.key(session, part))).await
    }

    fn extension(&self) -> Duration {
        self.idle / 3
    }
}
