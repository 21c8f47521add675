//! The layout of what Redis holds, and the migrations that lead to it. See
//! `migrations/README.md`.

use std::{borrow::Cow, fmt, time::Duration};

use futures_util::future::try_join_all;

use super::{Redis, RedisError, Script, Shard, cmd, millis};
use crate::random::Random;

/// How long the lock outlives whoever held it. A shard takes far less.
const LOCK: Duration = Duration::from_secs(30);

/// How often to look whether the lock is free.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a migration in a shard that is where the migration begins, and says
/// where the shard is then.
const STEP: (&str, &str) = (
    "local at = tonumber(redis.call('GET', KEYS[1]) or '0')
if at ~= tonumber(ARGV[1]) then return at end
local function migrate(shard)
",
    "
end
migrate(ARGV[3])
redis.call('SET', KEYS[1], ARGV[2])
return tonumber(ARGV[2])",
);

const UNLOCK: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";

const KEEP_LOCK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end";

/// One step from a layout to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// From 1, without gaps.
    pub number: u32,
    /// As in the file's name.
    pub name: Cow<'static, str>,
    code: Cow<'static, str>,
}

/// `0001_resources`
impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}_{}", self.number, self.name)
    }
}

/// The layout is not the one that this version works with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Migrations are missing.
    #[error(
        "What {place} holds has layout {found}, and this version of Larder needs {wanted}. Run: larder migrate --store {place}"
    )]
    Older {
        /// Where.
        place: String,
        /// 0 where there is none.
        found: u32,
        /// What is needed.
        wanted: u32,
    },
    /// A newer version of Larder has been here.
    #[error(
        "What {place} holds has layout {found}, which is newer than this version of Larder knows ({wanted}). Run a newer version."
    )]
    Newer {
        /// Where.
        place: String,
        /// What is there.
        found: u32,
        /// What is known.
        wanted: u32,
    },
}

/// A layout, as the steps that lead to it.
#[derive(Debug, Clone)]
pub struct Layout {
    migrations: Vec<Migration>,
}

/// How far the shards are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The layout that every shard has reached; 0 for none.
    pub oldest: u32,
    /// The newest that any shard has.
    pub newest: u32,
}

impl Layout {
    /// The layout that this version works with.
    pub fn current() -> Self {
        let migration = |number, name: &'static str, code: &'static str| Migration {
            number,
            name: name.into(),
            code: code.into(),
        };
        let migrations = vec![
            migration(1, "resources", include_str!("../../migrations/0001_resources.lua")),
            migration(
                2,
                "compressed_blocks",
                include_str!("../../migrations/0002_compressed_blocks.lua"),
            ),
            migration(3, "usage", include_str!("../../migrations/0003_usage.lua")),
        ];
        Self { migrations }
    }

    /// The layout that the migrations in a folder lead to.
    #[cfg(test)]
    pub(crate) fn in_folder(folder: &std::path::Path) -> Self {
        let mut migrations: Vec<Migration> = std::fs::read_dir(folder)
            .expect("there is a folder")
            .map(|file| file.expect("it can be read").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "lua"))
            .map(|path| {
                let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("it has a name");
                let (number, name) = stem.split_once('_').expect("it is NNNN_name.lua");
                Migration {
                    number: number.parse().expect("it is NNNN_name.lua"),
                    name: name.to_owned().into(),
                    code: std::fs::read_to_string(&path).expect("it can be read").into(),
                }
            })
            .collect();
        migrations.sort_by_key(|migration| migration.number);
        Self { migrations }
    }

    /// Its number.
    pub fn version(&self) -> u32 {
        self.migrations.last().map_or(0, |migration| migration.number)
    }

    /// How far Redis is.
    pub async fn status(&self, redis: &Redis) -> Result<Status, RedisError> {
        let shards = redis.keys().shards().map(|shard| async move {
            let mut get = cmd("GET");
            redis.query::<Option<u32>>(get.arg(key(&shard))).await
        });
        let versions = try_join_all(shards).await?;
        let versions = versions.into_iter().map(Option::unwrap_or_default);
        Ok(Status {
            oldest: versions.clone().min().unwrap_or_default(),
            newest: versions.max().unwrap_or_default(),
        })
    }

    /// That Redis is at this layout.
    ///
    /// # Errors
    /// [`RedisError::Layout`] if it is not.
    pub async fn check(&self, redis: &Redis) -> Result<(), RedisError> {
        let status = self.status(redis).await?;
        if status.newest > self.version() {
            return Err(self.mismatch(redis, status.newest));
        }
        if status.oldest < self.version() {
            return Err(self.mismatch(redis, status.oldest));
        }
        Ok(())
    }

    /// What to say of a layout that is another.
    pub(crate) fn mismatch(&self, redis: &Redis, found: u32) -> RedisError {
        let (place, wanted) = (redis.0.place.to_string(), self.version());
        RedisError::Layout(if found > wanted {
            LayoutError::Newer { place, found, wanted }
        } else {
            LayoutError::Older { place, found, wanted }
        })
    }

    /// The migrations that are missing at that layout.
    pub fn missing(&self, from: u32) -> &[Migration] {
        let reached = self.migrations.partition_point(|migration| migration.number <= from);
        &self.migrations[reached..]
    }

    /// Runs what is missing and says what that was. Of several who do this at
    /// once, one does it while the others wait.
    ///
    /// # Errors
    /// [`RedisError::Layout`] for a layout that is newer than this one.
    pub async fn migrate(
        &self,
        redis: &Redis,
        random: &Random,
    ) -> Result<Vec<Migration>, RedisError> {
        match self.check(redis).await {
            Err(RedisError::Layout(LayoutError::Older { .. })) => {}
            reached => return reached.map(|()| Vec::new()),
        }
        let lock = Lock::take(redis, random).await?;
        let migrated = self.run_missing(redis, &lock).await;
        // It would go by itself, but others may wait.
        let unlocked = lock.release().await;
        let migrated = migrated?;
        unlocked.map(|()| migrated)
    }

    async fn run_missing(
        &self,
        redis: &Redis,
        lock: &Lock<'_>,
    ) -> Result<Vec<Migration>, RedisError> {
        let status = self.status(redis).await?;
        if status.newest > self.version() {
            return Err(self.mismatch(redis, status.newest));
        }
        let missing = self.missing(status.oldest);
        for migration in missing {
            let code = [STEP.0, &migration.code, STEP.1].concat();
            let script = Script::new(&code);
            for shard in redis.keys().shards() {
                let call = script.on(&[key(&shard)]).arg(migration.number - 1);
                redis.call::<u32>(&call.arg(migration.number).arg(shard.start())).await?;
                lock.keep().await?;
            }
        }
        Ok(missing.to_vec())
    }
}

/// Where a shard's layout stands: scripts that rely on it get this key.
pub(crate) fn key(shard: &Shard) -> String {
    shard.single("layout")
}

/// So that only one migrates at a time. It expires if its holder dies; two
/// holders would do no harm either, since each step is taken once a shard.
struct Lock<'a> {
    redis: &'a Redis,
    key: String,
    token: String,
}

impl<'a> Lock<'a> {
    async fn take(redis: &'a Redis, random: &Random) -> Result<Self, RedisError> {
        let (key, token) = (redis.keys().single("migrating"), random.id());
        loop {
            let mut set = cmd("SET");
            set.arg(&key).arg(&token).arg("NX").arg("PX").arg(millis(LOCK));
            if redis.query::<Option<String>>(&set).await?.is_some() {
                return Ok(Self { redis, key, token });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn keep(&self) -> Result<(), RedisError> {
        let keep = Script::new(KEEP_LOCK);
        self.redis.call(&keep.on(&[&self.key]).arg(&self.token).arg(millis(LOCK))).await
    }

    async fn release(self) -> Result<(), RedisError> {
        let unlock = Script::new(UNLOCK);
        self.redis.call(&unlock.on(&[&self.key]).arg(&self.token)).await
    }
}
