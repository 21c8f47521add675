//! Redis, as everything above uses it: one connection for commands, which
//! comes back by itself and never makes a caller wait longer than
//! [`RedisSettings::timeout`]; one for subscriptions; the names of keys;
//! scripts; and the layout of what is stored. Knows nothing of what that is.
//!
//! The connection for commands is shared by everyone in the process, so no
//! command that blocks may be sent over it.

mod connection;
mod error;
mod finder;
mod instance;
mod keys;
pub mod layout;
mod script;
mod settings;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::Notify;

pub(crate) use ::redis::{
    Cmd, FromRedisValue, ParsingError, Pipeline, RedisWrite, ToRedisArgs, Value, cmd, pipe,
};
pub use error::RedisError;
pub use instance::Instance;
pub use keys::{Keys, SHARDS, Shard};
pub(crate) use keys::{escape, unescape};
pub(crate) use script::{Call, Script};
pub use settings::RedisSettings;
pub(crate) use subscriptions::{Heard, Listener};

use self::{connection::Commands, settings::Place, subscriptions::Subscriptions};

/// How long to wait before listening is tried again, while Redis is away.
const RETRY: Duration = Duration::from_millis(200);

/// A Redis server, one that Sentinels look after, or a cluster. Cheap to clone; all clones share its connections.
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    commands: Commands,
    subscriptions: Subscriptions,
    keys: Keys,
    place: Place,
}

impl Redis {
    /// Connects, and sees that it is answered. Needs a Tokio runtime.
    ///
    /// # Errors
    /// [`RedisError::Setting`] for a URL or prefix that cannot be used; any
    /// other when there is no Redis there that would serve us.
    pub async fn open(settings: &RedisSettings) -> Result<Self, RedisError> {
        let keys = Keys::new(&settings.prefix)?;
        let place = Place::parse(&settings.url)?;
        let demoted = Arc::new(Notify::new());
        let commands = Commands::new(&place, settings.timeout, Arc::clone(&demoted))?;
        commands.query::<()>(&cmd("PING")).await?;
        warn_of_eviction(&commands, &place).await;
        let subscriptions = Subscriptions::new(&place, settings.timeout, demoted)?;
        Ok(Self(Arc::new(Inner { commands, subscriptions, keys, place })))
    }

    /// Which Redis, and which installation on it: the same words for whoever
    /// has the same URL and prefix. Passwords are not in them.
    pub fn name(&self) -> String {
        format!("{}#{}", self.0.place, self.0.keys.prefix())
    }

    /// How keys are named here.
    pub fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// Whether it answers.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn ping(&self) -> Result<(), RedisError> {
        self.query(&cmd("PING")).await
    }

    /// Sends a command that does not block, and reads the answer.
    pub(crate) async fn query<T: FromRedisValue>(&self, cmd: &Cmd) -> Result<T, RedisError> {
        self.0.commands.query(cmd).await
    }

    /// Sends several commands at once. In a cluster, all their keys must be of
    /// one [`Shard`].
    pub(crate) async fn pipeline<T: FromRedisValue>(
        &self,
        pipeline: &Pipeline,
    ) -> Result<T, RedisError> {
        self.0.commands.pipeline(pipeline).await
    }

    /// Runs a script.
    pub(crate) async fn call<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, RedisError> {
        self.0.commands.call(call).await
    }

    /// Does what the pipeline says and then runs the script, both as one step
    /// and in one round trip. The pipeline's own answers are to be ignored.
    pub(crate) async fn call_after<T: FromRedisValue>(
        &self,
        first: Pipeline,
        call: &Call<'_>,
    ) -> Result<T, RedisError> {
        self.0.commands.call_after(first, call).await
    }

    /// Hears what is published on a channel, from when this returns. All
    /// listeners share one connection.
    pub(crate) async fn listen(&self, channel: &str) -> Result<Listener, RedisError> {
        self.0.subscriptions.listen(channel).await
    }

    /// The same, tried until it succeeds.
    pub(crate) async fn listen_patiently(&self, channel: &str) -> Listener {
        loop {
            match self.listen(channel).await {
                Ok(listener) => return listener,
                Err(error) => tracing::warn!(%error, "other replicas cannot be heard yet"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Larder refuses what does not fit; a Redis that makes room by itself would
/// lose what somebody was told is there.
async fn warn_of_eviction(commands: &Commands, place: &Place) {
    // Where asking is not allowed, or the answer is another, there is nothing to say.
    let memory = commands.query::<String>(cmd("INFO").arg("memory")).await.unwrap_or_default();
    let value = |name: &str| memory.lines().find_map(|line| line.strip_prefix(name));
    if let (Some(limit), Some(policy)) = (value("maxmemory:"), value("maxmemory_policy:"))
        && limit != "0"
        && policy != "noeviction"
    {
        tracing::warn!(%place, policy, "this Redis drops what it holds when it is full; set its maxmemory-policy to noeviction");
    }
}

/// A span as scripts and commands take it. At most a hundred thousand years:
/// Lua counts whole numbers up to 2^53.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).min(1 << 52)
}

/// Where it is, without what opens it.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redis").field(&self.0.place.to_string()).finish()
    }
}
