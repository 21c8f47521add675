//! The connection to Redis: one shared connection for commands, one for pub/sub, key names,
//! scripts, and the layout of the stored data. This module knows nothing of the data itself.
//!
//! The command connection reconnects by itself, and no caller waits longer than
//! [`RedisSettings::timeout`]. The whole process shares it, so a blocking command must never go
//! over it.

mod connection;
mod error;
mod finder;
mod instance;
mod keys;
pub mod layout;
mod scan;
mod script;
mod settings;
mod slots;
mod state_keys;
mod subscriptions;
#[cfg(test)]
mod tests;
mod total;

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
pub use slots::RedisSlots;
pub use state_keys::StateKeys;
pub(crate) use subscriptions::{ChannelEvent, Subscription};
pub(crate) use total::Total;

use self::{connection::CommandConnection, settings::Address, subscriptions::PubSub};

/// The delay between two attempts to subscribe while Redis is unreachable.
const RETRY: Duration = Duration::from_millis(200);

/// A Redis server, a primary behind Sentinels, or a cluster. Cheap to clone; all clones share its
/// connections.
#[derive(Clone)]
pub struct Redis(Arc<Connections>);

struct Connections {
    commands: CommandConnection,
    pubsub: PubSub,
    keys: Keys,
    address: Address,
}

impl Redis {
    /// Connects and waits for the reply to a PING. Needs a Tokio runtime.
    ///
    /// # Errors
    /// [`RedisError::Setting`] for an invalid URL or prefix; any other error
    /// when Redis cannot be reached or refuses the connection.
    pub async fn open(settings: &RedisSettings) -> Result<Self, RedisError> {
        let keys = Keys::new(&settings.prefix)?;
        let address = Address::parse(&settings.url)?;
        let demoted = Arc::new(Notify::new());

        let commands = CommandConnection::new(&address, settings.timeout, Arc::clone(&demoted))?;
        commands.query::<()>(&cmd("PING")).await?;
        warn_of_eviction(&commands, &address).await;

        let pubsub = PubSub::new(&address, settings.timeout, demoted)?;
        Ok(Self(Arc::new(Connections { commands, pubsub, keys, address })))
    }

    /// The identity of the installation: address and prefix, without passwords. Instances with equal
    /// URL and prefix have equal names.
    pub fn name(&self) -> String {
        format!("{}#{}", self.0.address, self.0.keys.prefix())
    }

    /// The names of this installation's keys.
    pub fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// Sends a PING.
    ///
    /// # Errors
    /// Returned if Redis does not reply.
    pub async fn ping(&self) -> Result<(), RedisError> {
        self.query(&cmd("PING")).await
    }

    /// Sends a non-blocking command and reads the reply.
    pub(crate) async fn query<T: FromRedisValue>(&self, cmd: &Cmd) -> Result<T, RedisError> {
        self.0.commands.query(cmd).await
    }

    /// Sends several commands at once. In a cluster, all their keys must be of one [`Shard`].
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

    /// Runs the pipeline and then the script, atomically and in one round trip. The pipeline's own
    /// replies must be ignored.
    pub(crate) async fn call_after<T: FromRedisValue>(
        &self,
        first: Pipeline,
        call: &Call<'_>,
    ) -> Result<T, RedisError> {
        self.0.commands.call_after(first, call).await
    }

    /// Subscribes to a channel. Messages that are published after this returns are delivered. All
    /// subscriptions share one connection.
    pub(crate) async fn subscribe(&self, channel: &str) -> Result<Subscription, RedisError> {
        self.0.pubsub.subscribe(channel).await
    }

    /// Subscribes to a channel, and retries until it succeeds.
    pub(crate) async fn subscribe_with_retry(&self, channel: &str) -> Subscription {
        loop {
            match self.subscribe(channel).await {
                Ok(subscription) => return subscription,
                Err(error) => tracing::warn!(%error, "cannot subscribe to other instances yet"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Warns if this Redis evicts keys: Larder refuses content that does not fit, but eviction would
/// lose stored results.
async fn warn_of_eviction(commands: &CommandConnection, address: &Address) {
    // INFO may be forbidden or lack these fields; then nothing is reported.
    let memory = commands.query::<String>(cmd("INFO").arg("memory")).await.unwrap_or_default();
    let value = |name: &str| memory.lines().find_map(|line| line.strip_prefix(name));

    if let (Some(limit), Some(policy)) = (value("maxmemory:"), value("maxmemory_policy:"))
        && limit != "0"
        && policy != "noeviction"
    {
        tracing::warn!(%address, policy, "this Redis evicts keys when its memory is full; set maxmemory-policy to noeviction");
    }
}

/// A duration in milliseconds, for scripts and commands. The maximum is 2^52, because Lua represents
/// integers exactly up to 2^53.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).min(1 << 52)
}

/// Shows the address without passwords.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redis").field(&self.0.address.to_string()).finish()
    }
}
