//! The layout of the data in Redis, and the migrations that lead to it. `migrations/README.md`
//! describes them.

use std::{borrow::Cow, fmt, time::Duration};

use futures_util::future::try_join_all;
use larder_runtime::random::Random;

use super::{Redis, RedisError, Script, Shard, cmd, millis};

/// The time to live of the lock. Migrating one shard takes far less.
const LOCK_TTL: Duration = Duration::from_secs(30);

/// The interval at which a waiting instance tries to take the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The code around a migration. It runs the migration if the shard has the previous layout, and
/// returns the shard's layout afterwards.
const STEP: (&str, &str) = (
    "local layout = tonumber(redis.call('GET', KEYS[1]) or '0')
if layout ~= tonumber(ARGV[1]) then return layout end
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

const RENEW_LOCK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end";

/// A migration from one layout to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The number, consecutive from 1.
    pub number: u32,
    /// The name, as in the file name.
    pub name: Cow<'static, str>,
    code: Cow<'static, str>,
}

/// Formats the migration as `0001_resources`.
impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}_{}", self.number, self.name)
    }
}

/// The data has another layout than this version requires.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Migrations are missing.
    #[error(
        "The data in {location} has layout {found}, but this version of Larder needs {required}. Run: larder migrate"
    )]
    Older {
        /// The address of Redis, without passwords.
        location: String,
        /// The layout in Redis, 0 for none.
        found: u32,
        /// The layout that this version requires.
        required: u32,
    },
    /// A newer version of Larder has migrated the data.
    #[error(
        "The data in {location} has layout {found}, which is newer than this version of Larder supports ({required}). Run a newer version."
    )]
    Newer {
        /// The address of Redis, without passwords.
        location: String,
        /// The layout in Redis.
        found: u32,
        /// The newest layout that this version supports.
        required: u32,
    },
}

/// A layout, defined by the migrations that lead to it.
#[derive(Debug, Clone)]
pub struct Layout {
    migrations: Vec<Migration>,
}

/// The layouts of the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The oldest layout of any shard; 0 for none.
    pub oldest: u32,
    /// The newest layout of any shard.
    pub newest: u32,
}

impl Layout {
    /// The layout that this version requires.
    pub fn current() -> Self {
        let migrations = larder_migrations::MIGRATIONS.iter().map(|&(number, name, code)| {
            Migration { number, name: name.into(), code: code.into() }
        });
        Self { migrations: migrations.collect() }
    }

    /// The layout to which the migrations in a folder lead.
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

    /// The number of the last migration.
    pub fn version(&self) -> u32 {
        self.migrations.last().map_or(0, |migration| migration.number)
    }

    /// Reads the layouts of all shards.
    ///
    /// # Errors
    /// Redis cannot be used.
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

    /// Checks that all shards have this layout.
    ///
    /// # Errors
    /// [`RedisError::Layout`] if a shard has another layout.
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

    /// The error for data with the layout `found`.
    pub(crate) fn mismatch(&self, redis: &Redis, found: u32) -> RedisError {
        let location = redis.0.address.to_string();
        let required = self.version();
        RedisError::Layout(if found > required {
            LayoutError::Newer { location, found, required }
        } else {
            LayoutError::Older { location, found, required }
        })
    }

    /// The migrations that are missing after layout `from`.
    pub fn missing(&self, from: u32) -> &[Migration] {
        let applied = self.migrations.partition_point(|migration| migration.number <= from);
        &self.migrations[applied..]
    }

    /// Runs the missing migrations and returns them. If several instances migrate at once, one runs
    /// the migrations while the others wait.
    ///
    /// # Errors
    /// [`RedisError::Layout`] if the data has a newer layout.
    pub async fn migrate(
        &self,
        redis: &Redis,
        random: &Random,
    ) -> Result<Vec<Migration>, RedisError> {
        match self.check(redis).await {
            Err(RedisError::Layout(LayoutError::Older { .. })) => {}
            checked => return checked.map(|()| Vec::new()),
        }

        let lock = MigrationLock::take(redis, random).await?;
        let migrated = self.run_missing(redis, &lock).await;

        // The lock would expire by itself, but other instances may be waiting for it.
        let unlocked = lock.release().await;

        let migrated = migrated?;
        unlocked.map(|()| migrated)
    }

    /// Runs the missing migrations shard by shard, under the lock.
    async fn run_missing(
        &self,
        redis: &Redis,
        lock: &MigrationLock<'_>,
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
                lock.renew().await?;
            }
        }

        Ok(missing.to_vec())
    }
}

/// The key that holds a shard's layout. Scripts that depend on the layout check it.
pub(crate) fn key(shard: &Shard) -> String {
    shard.single("layout")
}

/// A lock for one migrating instance at a time. The lock expires if its holder dies. Two holders
/// would do no harm, because each migration runs once per shard.
struct MigrationLock<'a> {
    redis: &'a Redis,
    key: String,
    token: String,
}

impl<'a> MigrationLock<'a> {
    /// Waits for the lock and takes it.
    async fn take(redis: &'a Redis, random: &Random) -> Result<Self, RedisError> {
        let key = redis.keys().single("migrating");
        let token = random.id();

        loop {
            let mut set = cmd("SET");
            set.arg(&key).arg(&token).arg("NX").arg("PX").arg(millis(LOCK_TTL));
            if redis.query::<Option<String>>(&set).await?.is_some() {
                return Ok(Self { redis, key, token });
            }

            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn renew(&self) -> Result<(), RedisError> {
        let renew = Script::new(RENEW_LOCK);
        self.redis.call(&renew.on(&[&self.key]).arg(&self.token).arg(millis(LOCK_TTL))).await
    }

    async fn release(self) -> Result<(), RedisError> {
        let unlock = Script::new(UNLOCK);
        self.redis.call(&unlock.on(&[&self.key]).arg(&self.token)).await
    }
}
