//! The steps that must be taken as one.

use std::{sync::Arc, time::Duration};

use super::{
    Inner, entry, events, unavailable,
    upload::{Pieces, Rest},
};
use crate::{
    auth::Owner,
    redis::{
        Call, FromRedisValue, Keys, ParsingError, Pipeline, RedisError, Script, Shard, Value,
        escape,
        layout::{self, Layout},
        millis,
    },
    store::{ChangeKind, Committed, Draft, Entry, Placement, ResourceUri, StoreError},
};

/// How long content that was replaced or deleted stays for those who have
/// begun to read it.
const GRACE: Duration = Duration::from_secs(60);

/// How long an index outlives its last resource, so that there is time to
/// tell that it has expired.
const LINGER: Duration = Duration::from_secs(60);

/// How many expired resources are pruned in one step: some milliseconds.
pub(super) const BATCH: usize = 500;

#[derive(Debug)]
pub(super) struct Scripts {
    commit: Script,
    delete: Script,
    sweep: Script,
    channel: String,
    version: u32,
}

impl Scripts {
    pub(super) fn new(keys: &Keys, layout: &Layout) -> Self {
        let script = |code| Script::timed(&[include_str!("index.lua"), code]);
        Self {
            commit: script(include_str!("commit.lua")),
            delete: script(include_str!("delete.lua")),
            sweep: script(include_str!("sweep.lua")),
            channel: keys.channel(events::CHANNEL),
            version: layout.version(),
        }
    }

    /// With what they all take.
    fn call<'a>(&self, script: &'a Script, shard: &Shard, keys: &[&str]) -> Call<'a> {
        let layout = layout::key(shard);
        let keys: Vec<&str> =
            std::iter::once(layout.as_str()).chain(keys.iter().copied()).collect();
        let call = script.on(&keys).arg(self.version).arg(shard.start()).arg(&self.channel);
        call.arg(millis(LINGER)).arg(BATCH)
    }
}

/// The first word of an answer and its numbers.
#[derive(Debug)]
struct Answer(String, Vec<i64>);

impl FromRedisValue for Answer {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let mut values = Vec::<Value>::from_redis_value(value)?.into_iter();
        let word = String::from_redis_value(values.next().unwrap_or(Value::Nil))?;
        let numbers = values.map(i64::from_redis_value).collect::<Result<_, _>>()?;
        Ok(Self(word, numbers))
    }
}

impl Answer {
    /// A count or a time.
    fn number(&self, at: usize) -> u64 {
        self.1.get(at).copied().and_then(|number| number.try_into().ok()).unwrap_or_default()
    }
}

impl Inner {
    /// Runs a script as often as it has more to prune first.
    async fn run(&self, call: &Call<'_>) -> Result<Answer, RedisError> {
        self.run_after(&mut None, call).await
    }

    /// Accepts what is to be done before, once.
    async fn run_after(
        &self,
        first: &mut Option<Pipeline>,
        call: &Call<'_>,
    ) -> Result<Answer, RedisError> {
        let mut healed = false;
        loop {
            let answer: Answer = match first.take() {
                Some(first) => self.redis.call_after(first, call).await?,
                None => self.redis.call(call).await?,
            };
            match answer.0.as_str() {
                "again" => {}
                // It was the right one when we began, so Redis came back empty.
                "layout" if answer.number(0) == 0 && !healed => {
                    tracing::warn!("Redis has lost what it held; its layout is made anew");
                    self.layout.migrate(&self.redis, &self.random).await?;
                    healed = true;
                }
                "layout" => {
                    let found = u32::try_from(answer.number(0)).unwrap_or(u32::MAX);
                    return Err(self.layout.mismatch(&self.redis, found));
                }
                _ => return Ok(answer),
            }
        }
    }

    pub(super) async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
    ) -> Result<bool, StoreError> {
        let shard = self.shard_of(owner);
        let entry = entry::key(&shard, owner, uri.as_str());
        let call = self.scripts.call(&self.scripts.delete, &shard, &[&entry]);
        let call = call.arg(escape(owner.as_str())).arg(uri.as_str());
        let answer = self.run(&call.arg(millis(GRACE))).await.map_err(unavailable)?;
        Ok(answer.number(0) == 1)
    }

    /// Puts content in its place: what lies under that id, and then `rest`,
    /// `stored` bytes in all.
    pub(super) async fn commit(
        &self,
        draft: Draft,
        id: &str,
        rest: Rest,
        stored: u64,
    ) -> Result<Committed, StoreError> {
        let (owner, uri) = (draft.owner.clone(), draft.uri.clone());
        let shard = self.shard_of(&owner);
        let (ttl, updating) = match &draft.placement {
            Placement::Create { ttl, .. } => (Some(*ttl), false),
            Placement::Update { ttl } => (*ttl, true),
        };
        let ttl = ttl.map_or_else(String::new, |ttl| millis(ttl).to_string());
        let (inline, mut first) = match rest {
            Rest::Inline(pieces) => (pieces, None),
            Rest::Before(pipeline) => (Pieces::default(), Some(pipeline)),
        };
        // Who loses against another tries again, and somebody has won each
        // time: so this ends.
        loop {
            let previous = if updating { self.look_up(&owner, &uri).await? } else { None };
            let (previous, predecessor) = previous.unzip();
            let missing = || StoreError::NotFound { uri: uri.clone() };
            let mut entry = draft.clone().over(previous.as_ref()).ok_or_else(missing)?;
            let key = entry::key(&shard, &owner, uri.as_str());
            let blob = entry::blob_key(&shard, id);
            let call = self.scripts.call(&self.scripts.commit, &shard, &[&key, &blob]);
            let call = call.arg(escape(owner.as_str())).arg(uri.as_str()).arg(id);
            let call = call.arg(entry::meta(&entry)).arg(entry::blocks(&entry.blocks));
            let call = call.arg(entry.size).arg(&ttl).arg(predecessor.unwrap_or_default());
            let call = call.arg(self.quota.bytes).arg(self.quota.resources);
            let call = call.arg(millis(GRACE)).arg(stored).arg(&inline);
            let call = call.arg(draft.revisions);
            let answer = self.run_after(&mut first, &call).await.map_err(unavailable)?;
            match answer.0.as_str() {
                "changed" => {}
                "done" => {
                    let change = finish(&mut entry, &answer);
                    return Ok(Committed { entry: Arc::new(entry), change });
                }
                "bytes" => return Err(self.quota.out_of_bytes(answer.number(0))),
                "count" => return Err(self.quota.out_of_resources(answer.number(0))),
                word => {
                    let source = format!("the content was lost on its way ({word})");
                    return Err(StoreError::Unavailable {
                        backend: super::NAME,
                        source: source.into(),
                    });
                }
            }
        }
    }

    /// Tells what has expired in a shard; says when there is more to tell, if
    /// it is known that there will be.
    pub(super) async fn sweep(&self, shard: &Shard) -> Result<Option<Duration>, RedisError> {
        let call = self.scripts.call(&self.scripts.sweep, shard, &[]);
        let answer = self.run(&call).await?;
        let next = answer.1.first().copied().and_then(|next| u64::try_from(next).ok());
        Ok(next.map(Duration::from_millis))
    }
}

/// Fills in what was decided there: all replicas go by the time of Redis.
fn finish(entry: &mut Entry, answer: &Answer) -> ChangeKind {
    use crate::clock::Timestamp;

    let time = |at| Timestamp::from_millis(answer.number(at));
    entry.revision = answer.number(0);
    (entry.created, entry.updated, entry.expires) = (time(1), time(2), time(3));
    if answer.number(4) == 1 { ChangeKind::Updated } else { ChangeKind::Created }
}
