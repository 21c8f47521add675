//! The Lua scripts: changes of entry, index and quota, each atomic.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::{
    RedisState,
    arguments::{CommitArguments, DeleteArguments, DiscardArguments, ReserveArguments},
    entry, events,
    parts::ContentParts,
    unavailable,
    upload::{Chunks, LastPart},
};
use crate::{
    redis::layout::{self, Layout},
    redis::{
        Call, FromRedisValue, Keys, ParsingError, Pipeline, RedisError, Script, Shard, Value,
        escape, millis,
    },
    store::quota::MAX_RESERVATIONS,
    store::upload_reservation::UploadReservation,
    store::{ChangeKind, Committed, Draft, Entry, ResourceUri, StoreError, Version, WriteMode},
};

/// The life of replaced or deleted content, for reads that have begun.
const GRACE: Duration = Duration::from_secs(60);

/// How long an index outlives its last resource, so that there is time to publish the expiry.
const LINGER: Duration = Duration::from_secs(60);

/// The most expired resources that one script run removes, which takes some milliseconds.
pub(super) const BATCH: usize = 500;

/// The scripts, and the arguments that all of them take.
#[derive(Debug)]
pub(super) struct Scripts {
    commit: Script,
    delete: Script,
    reserve: Script,
    discard: Script,
    sweep: Script,

    channel: String,
    version: u32,
}

/// The code of the scripts. Instances of different versions may share a layout, so new arguments
/// are added at the end only, and a script leaves alone fields that it does not know.
#[derive(Debug)]
pub(super) struct ScriptCode {
    pub(super) index: &'static str,
    pub(super) commit: &'static str,
    pub(super) delete: &'static str,
    pub(super) reserve: &'static str,
    pub(super) discard: &'static str,
    pub(super) sweep: &'static str,
}

impl ScriptCode {
    pub(super) const CURRENT: Self = Self {
        index: include_str!("index.lua"),
        commit: CommitArguments::SCRIPT,
        delete: DeleteArguments::SCRIPT,
        reserve: ReserveArguments::SCRIPT,
        discard: DiscardArguments::SCRIPT,
        sweep: include_str!("sweep.lua"),
    };
}

impl Scripts {
    pub(super) fn new(code: &ScriptCode, keys: &Keys, layout: &Layout) -> Self {
        let script = |script| Script::with_time_functions(&[code.index, script]);
        Self {
            commit: script(code.commit),
            delete: script(code.delete),
            reserve: script(code.reserve),
            discard: script(code.discard),
            sweep: script(code.sweep),
            channel: keys.channel(events::CHANNEL),
            version: layout.version(),
        }
    }

    /// A call with the arguments that all scripts take first.
    fn call<'a>(&self, script: &'a Script, shard: &Shard, keys: &[&str]) -> Call<'a> {
        let layout = layout::key(shard);
        let keys: Vec<&str> =
            std::iter::once(layout.as_str()).chain(keys.iter().copied()).collect();

        let call = script.on(&keys).arg(self.version).arg(shard.start()).arg(&self.channel);
        call.arg(millis(LINGER)).arg(BATCH)
    }
}

/// A script's reply.
#[derive(Debug)]
struct ScriptReply {
    /// The outcome, such as `done` or `again`.
    status: String,
    numbers: Vec<i64>,
    /// The external content whose mark the script removes, for [`RedisState::remove_external`].
    external: Vec<String>,
}

impl FromRedisValue for ScriptReply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let mut values = Vec::<Value>::from_redis_value(value)?.into_iter();
        let status = String::from_redis_value(values.next().unwrap_or(Value::Nil))?;

        let (lists, numbers): (Vec<_>, Vec<_>) =
            values.partition(|value| matches!(value, Value::Array(_)));
        let numbers = numbers.into_iter().map(i64::from_redis_value).collect::<Result<_, _>>()?;
        let external = lists.into_iter().map(Vec::<String>::from_redis_value);
        let external = external.collect::<Result<Vec<_>, _>>()?;

        Ok(Self { status, numbers, external: external.concat() })
    }
}

impl ScriptReply {
    /// The count or time at this position; 0 if the script returned none.
    fn number(&self, index: usize) -> u64 {
        self.numbers
            .get(index)
            .copied()
            .and_then(|number| number.try_into().ok())
            .unwrap_or_default()
    }
}

impl RedisState {
    /// Runs a script, and again while it replies that it removed expired resources first.
    async fn run(&self, call: &Call<'_>) -> Result<ScriptReply, RedisError> {
        self.run_after(&mut None, call).await
    }

    /// Runs a script after the commands of `before`, which are sent once.
    async fn run_after(
        &self,
        before: &mut Option<Pipeline>,
        call: &Call<'_>,
    ) -> Result<ScriptReply, RedisError> {
        let mut migrated = false;
        let mut external = Vec::new();

        loop {
            let mut reply: ScriptReply = match before.take() {
                Some(before) => self.redis.call_after(before, call).await?,
                None => self.redis.call(call).await?,
            };

            match reply.status.as_str() {
                "again" => external.append(&mut reply.external),
                // The layout was current when the backend was opened, so Redis has restarted empty.
                "layout" if reply.number(0) == 0 && !migrated => {
                    tracing::warn!("Redis has lost its data; creating the layout again");
                    self.layout.migrate(&self.redis, &self.random).await?;
                    migrated = true;
                }
                "layout" => {
                    let found = u32::try_from(reply.number(0)).unwrap_or(u32::MAX);
                    return Err(self.layout.mismatch(&self.redis, found));
                }
                _ => {
                    reply.external.append(&mut external);
                    return Ok(reply);
                }
            }
        }
    }

    pub(super) async fn delete(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        version: Option<Version>,
    ) -> Result<bool, StoreError> {
        let shard = self.shard_of(owner);
        let entry = entry::key(&shard, owner, uri.as_str());
        let (created, revision) = match version {
            Some(Version { created, revision }) => {
                (created.as_millis().to_string(), revision.to_string())
            }
            None => Default::default(),
        };

        let arguments = DeleteArguments {
            owner: &escape(owner.as_str()),
            uri: uri.as_str(),
            grace: millis(GRACE),
            created,
            revision,
        };
        let call = self.scripts.call(&self.scripts.delete, &shard, &[&entry]);
        let reply = self.run(&arguments.add_to(call)).await.map_err(unavailable)?;

        self.remove_external(owner, &reply.external).await;
        Ok(reply.number(0) == 1)
    }

    /// Commits the content of `parts`, `stored` bytes in total, of which `rest` is not in Redis
    /// yet. Ends the reservation.
    pub(super) async fn commit(
        &self,
        draft: Draft,
        parts: &ContentParts,
        reservation: &UploadReservation<RedisState>,
        rest: LastPart,
        stored: u64,
    ) -> Result<Committed, StoreError> {
        let owner = draft.owner.clone();
        let uri = draft.uri.clone();
        let shard = self.shard_of(&owner);
        let entry_key = entry::key(&shard, &owner, uri.as_str());
        let first_part = parts.key(&shard, 0);

        let (ttl, updating) = match &draft.mode {
            WriteMode::Create { ttl, .. } => (Some(*ttl), false),
            WriteMode::Update { ttl, .. } => (*ttl, true),
            WriteMode::Restore(_) => (None, false),
        };
        let is_restored = matches!(draft.mode, WriteMode::Restore(_));
        let ttl = ttl.map_or_else(String::new, |ttl| millis(ttl).to_string());

        let (inline, mut before) = match rest {
            LastPart::Inline(chunks) => (chunks, None),
            LastPart::Before(pipeline) => (Chunks::default(), Some(pipeline)),
        };

        // A commit that loses to a concurrent one is tried again. Each loss is another's success,
        // so this ends.
        loop {
            let previous = if updating { self.look_up(&owner, &uri).await? } else { None };
            let (previous, predecessor) = previous.unzip();
            let missing = || StoreError::NotFound { uri: uri.clone() };
            let entry = draft.clone().apply_to(previous.as_ref()).ok_or_else(missing)?;

            let arguments = CommitArguments {
                owner: &escape(owner.as_str()),
                uri: uri.as_str(),
                id: &parts.id(),
                meta: entry::meta(&entry),
                blocks: entry::blocks(&entry.blocks),
                size: entry.size,
                ttl: &ttl,
                predecessor: predecessor.as_deref().unwrap_or_default(),
                max_bytes: self.quota.bytes,
                max_resources: self.quota.resources,
                grace: millis(GRACE),
                stored_bytes: stored,
                rest: &inline,
                revisions: draft.revisions,
                counted: entry.counted_bytes(),
                reservation: reservation.id(),
                outlives: reservation.is_given(),
                restored_revision: is_restored.then_some(entry.revision),
                restored_created: is_restored.then_some(entry.created.as_millis()),
                restored_updated: is_restored.then_some(entry.updated.as_millis()),
                restored_expires: is_restored.then_some(entry.expires.as_millis()),
            };
            let call = self.scripts.call(&self.scripts.commit, &shard, &[&entry_key, &first_part]);
            let call = arguments.add_to(call);
            let reply = self.run_after(&mut before, &call).await.map_err(unavailable)?;

            self.remove_external(&owner, &reply.external).await;
            if let Some(committed) = self.committed(entry, &reply, is_restored)? {
                return Ok(committed);
            }
        }
    }

    /// Reads the reply to the commit of `entry`. `None` if a concurrent commit was faster.
    fn committed(
        &self,
        mut entry: Entry,
        reply: &ScriptReply,
        is_restored: bool,
    ) -> Result<Option<Committed>, StoreError> {
        match reply.status.as_str() {
            "changed" => Ok(None),
            "later" => Err(StoreError::NotFound { uri: entry.uri }),
            "done" => {
                let change = apply_reply(&mut entry, reply);
                if !is_restored {
                    self.time.set(entry.updated);
                }
                Ok(Some(Committed { entry: Arc::new(entry), change }))
            }
            "bytes" => Err(self.quota.out_of_bytes(reply.number(0), entry.counted_bytes())),
            "count" => Err(self.quota.out_of_resources(reply.number(0))),
            status => {
                let source = format!("Redis lost the content during the upload ({status})");
                Err(StoreError::Unavailable { backend: super::NAME, source: source.into() })
            }
        }
    }

    /// Counts at least `bytes` towards the owner's quota under `id`, for at least `ttl`. Returns
    /// how many bytes `id` counted before.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the quota has no room, or the owner has too many reservations.
    pub(super) async fn reserve(
        &self,
        owner: &Owner,
        uri: &ResourceUri,
        id: &str,
        bytes: u64,
        ttl: Duration,
    ) -> Result<u64, StoreError> {
        let shard = self.shard_of(owner);
        let entry = entry::key(&shard, owner, uri.as_str());

        let arguments = ReserveArguments {
            owner: &escape(owner.as_str()),
            id,
            bytes,
            max_bytes: self.quota.bytes,
            ttl: millis(ttl),
            max_reservations: MAX_RESERVATIONS,
        };
        let call = self.scripts.call(&self.scripts.reserve, &shard, &[&entry]);
        let reply = self.run(&arguments.add_to(call)).await.map_err(unavailable)?;

        self.remove_external(owner, &reply.external).await;
        match reply.status.as_str() {
            "done" => Ok(reply.number(0)),
            "reservations" => Err(self.quota.out_of_reservations()),
            _ => Err(self.quota.out_of_bytes(reply.number(0), bytes)),
        }
    }

    /// Removes the content of an upload, and reduces its reservation to `keep` bytes; 0 ends it.
    /// An empty `id` or `reservation` is skipped.
    pub(super) async fn discard(
        &self,
        owner: &Owner,
        id: &str,
        reservation: &str,
        keep: u64,
    ) -> Result<(), RedisError> {
        let shard = self.shard_of(owner);
        let owner = escape(owner.as_str());
        let arguments = DiscardArguments { owner: &owner, id, reservation, keep };

        let call = self.scripts.call(&self.scripts.discard, &shard, &[]);
        self.run(&arguments.add_to(call)).await.map(drop)
    }

    /// Publishes the expiries of a shard. Returns the time until the next one, or none if the
    /// shard has no resources left.
    pub(super) async fn sweep(&self, shard: &Shard) -> Result<Option<Duration>, RedisError> {
        let call = self.scripts.call(&self.scripts.sweep, shard, &[]);
        let reply = self.run(&call).await?;
        let next = reply.numbers.first().copied().and_then(|next| u64::try_from(next).ok());
        Ok(next.map(Duration::from_millis))
    }
}

/// Sets the revision and times that the script decided, by the clock of Redis.
fn apply_reply(entry: &mut Entry, reply: &ScriptReply) -> ChangeKind {
    let time = |index| Timestamp::from_millis(reply.number(index));
    entry.revision = reply.number(0);
    entry.created = time(1);
    entry.updated = time(2);
    entry.expires = time(3);

    if reply.number(4) == 1 { ChangeKind::Updated } else { ChangeKind::Created }
}
