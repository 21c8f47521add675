//! [`CommandConnection`]: the shared connection for commands, replaced when it is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::redis::{
    Arg, AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, PushInfo,
    PushKind, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
};
use futures_util::{FutureExt, future::BoxFuture};
use larder_runtime::spans::outgoing_span;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::Instrument;

use super::{
    Call, RedisError,
    error::{ends_connection, is_read_only, is_unknown_script},
    finder::Finder,
    settings::{Address, ServerKind},
};

/// The connection of this process for commands.
pub(super) struct CommandConnection {
    target: RedisTarget,
    /// The limit for one command, including a reconnect.
    timeout: Duration,
    /// Notified when the server no longer accepts writes.
    demoted: Arc<Notify>,
}

enum RedisTarget {
    Server(SingleServer),
    Cluster(Cluster),
}

/// A single server, or the present primary behind Sentinels.
struct SingleServer {
    finder: Finder,
    timeout: Duration,
    live: Mutex<Option<LiveConnection>>,

    /// Held while connecting, so that concurrent callers share one attempt.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection, and whether it is lost.
#[derive(Clone)]
struct LiveConnection {
    connection: MultiplexedConnection,
    /// Whether the connection must not be used again.
    lost: Arc<AtomicBool>,
}

/// A cluster. The client finds the nodes and reconnects to them.
struct Cluster {
    client: ClusterClient,
    live: tokio::sync::OnceCell<ClusterConnection>,
}

impl CommandConnection {
    /// Prepares a connection, which the first command opens. It notifies `demoted` when a server
    /// stops accepting writes.
    pub(super) fn new(
        address: &Address,
        timeout: Duration,
        demoted: Arc<Notify>,
    ) -> Result<Self, RedisError> {
        let classify = |error| RedisError::classify(error, timeout);

        if address.is_tls() {
            // rustls panics without a default provider where several are built in. An earlier
            // choice of a provider stays.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }

        let target = if matches!(address.kind, ServerKind::Cluster) {
            let client = ClusterClient::builder(address.nodes.iter().cloned())
                .connection_timeout(timeout)
                .response_timeout(timeout)
                .overall_response_timeout(Some(timeout))
                .build()
                .map_err(classify)?;
            RedisTarget::Cluster(Cluster { client, live: tokio::sync::OnceCell::new() })
        } else {
            let finder = Finder::new(address).map_err(classify)?;
            RedisTarget::Server(SingleServer {
                finder,
                timeout,
                live: Mutex::default(),
                connecting: tokio::sync::Mutex::default(),
            })
        };

        Ok(Self { target, timeout, demoted })
    }

    pub(super) async fn query<T: FromRedisValue>(&self, cmd: &Cmd) -> Result<T, RedisError> {
        self.read(self.request(CommandRequest::Command(cmd)).await?)
    }

    pub(super) async fn pipeline<T: FromRedisValue>(
        &self,
        pipeline: &Pipeline,
    ) -> Result<T, RedisError> {
        self.read(self.request(CommandRequest::Pipeline(pipeline)).await?)
    }

    pub(super) async fn call<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, RedisError> {
        let reply = self.request(CommandRequest::Command(call.evalsha())).await;
        self.read(self.load_if_unknown(call, reply).await?)
    }

    /// Runs the pipeline and the script atomically. Only the script's reply is returned.
    pub(super) async fn call_after<T: FromRedisValue>(
        &self,
        mut first: Pipeline,
        call: &Call<'_>,
    ) -> Result<T, RedisError> {
        first.atomic().add_command(call.evalsha().clone());
        let reply = self.request(CommandRequest::Pipeline(&first)).await.map(|reply| match reply {
            // The script's reply is the only one that is not ignored.
            Value::Array(mut replies) => replies.pop().unwrap_or(Value::Nil),
            other => other,
        });

        // The commands before the script took effect even if the script was unknown.
        self.read(self.load_if_unknown(call, reply).await?)
    }

    /// Loads the script and runs it again if the reply says that the server does not have it.
    async fn load_if_unknown(
        &self,
        call: &Call<'_>,
        reply: Result<Value, RedisError>,
    ) -> Result<Value, RedisError> {
        match reply {
            Err(RedisError::Refused(error)) if is_unknown_script(&error) => {
                self.request(CommandRequest::Command(&call.load())).await?;
                self.request(CommandRequest::Command(call.evalsha())).await
            }
            reply => reply,
        }
    }

    fn read<T: FromRedisValue>(&self, reply: Value) -> Result<T, RedisError> {
        T::from_redis_value(reply).map_err(|error| RedisError::classify(error.into(), self.timeout))
    }

    /// Sends a request within the timeout. Boxed and with one type of reply, so that the future is
    /// compiled once and not for each caller.
    fn request<'a>(
        &'a self,
        request: CommandRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, RedisError>> {
        let span = outgoing_span("redis", || request.name());
        async move {
            // The connection on which the last attempt waits, for the case of a timeout.
            let used = Mutex::new(None);
            let attempt = async {
                match self.try_request(request, &used).await {
                    // A read-only server executed nothing: send the request to the new primary.
                    Err(error) if is_read_only(&error) => {
                        self.demoted.notify_one();
                        self.try_request(request, &used).await
                    }
                    reply => reply,
                }
            };

            match tokio::time::timeout(self.timeout, attempt).await {
                Ok(reply) => reply.map_err(|error| RedisError::classify(error, self.timeout)),
                Err(_) => {
                    // A host that has vanished sends no error, so only a new connection can tell.
                    if let Some(lost) = used.lock().take() {
                        lost.store(true, Ordering::Relaxed);
                    }
                    Err(RedisError::Timeout(self.timeout))
                }
            }
        }
        .instrument(span)
        .boxed()
    }

    /// Sends a request once. `used` receives the connection on which it waits.
    async fn try_request(
        &self,
        request: CommandRequest<'_>,
        used: &Mutex<Option<Arc<AtomicBool>>>,
    ) -> RedisResult<Value> {
        match &self.target {
            RedisTarget::Server(server) => {
                *used.lock() = None;
                let mut live = server.live().await?;
                *used.lock() = Some(Arc::clone(&live.lost));

                let reply = request.send(&mut live.connection).await;
                live.check_liveness(reply)
            }
            RedisTarget::Cluster(cluster) => request.send(&mut cluster.live().await?).await,
        }
    }
}

/// A command or a pipeline to send.
#[derive(Clone, Copy)]
enum CommandRequest<'a> {
    Command(&'a Cmd),
    Pipeline(&'a Pipeline),
}

impl CommandRequest<'_> {
    /// The name of the command, or of the last one of a pipeline, which is its purpose.
    fn name(self) -> String {
        let cmd = match self {
            Self::Command(cmd) => Some(cmd),
            Self::Pipeline(pipeline) => pipeline.cmd_iter().last(),
        };
        let first = cmd.and_then(|cmd| cmd.args_iter().next());
        match first {
            Some(Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        }
    }

    async fn send(self, connection: &mut (impl ConnectionLike + Send)) -> RedisResult<Value> {
        match self {
            Self::Command(cmd) => cmd.query_async(connection).await,
            Self::Pipeline(pipeline) => pipeline.query_async(connection).await,
        }
    }
}

impl SingleServer {
    /// The open connection, or a new one.
    async fn live(&self) -> RedisResult<LiveConnection> {
        match self.current() {
            Some(live) => Ok(live),
            // Connecting is rare and its future large; boxed, each command's future stays small.
            None => self.connect().boxed().await,
        }
    }

    /// Connects, unless another caller has connected in the meantime.
    async fn connect(&self) -> RedisResult<LiveConnection> {
        let _connecting = self.connecting.lock().await;
        if let Some(live) = self.current() {
            return Ok(live);
        }

        let lost = Arc::new(AtomicBool::new(false));

        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_push_sender({
                let lost = Arc::clone(&lost);
                // Detects a connection that is lost while idle, before a command fails on it.
                move |push: PushInfo| {
                    if push.kind == PushKind::Disconnection {
                        lost.store(true, Ordering::Relaxed);
                    }
                    Ok::<(), ()>(())
                }
            });

        let connection = connect(&self.finder.servers().await?, &config).await?;

        let live = LiveConnection { connection, lost };
        *self.live.lock() = Some(live.clone());
        Ok(live)
    }

    fn current(&self) -> Option<LiveConnection> {
        self.live.lock().clone().filter(|live| !live.lost.load(Ordering::Relaxed))
    }
}

impl LiveConnection {
    /// Marks the connection as lost if the reply shows that it is unusable. A read-only server is
    /// unusable, because another server is the primary now.
    fn check_liveness<T>(&self, reply: RedisResult<T>) -> RedisResult<T> {
        if reply.as_ref().is_err_and(ends_connection) {
            self.lost.store(true, Ordering::Relaxed);
        }
        reply
    }
}

impl Cluster {
    async fn live(&self) -> RedisResult<ClusterConnection> {
        self.live.get_or_try_init(|| self.client.get_async_connection()).await.cloned()
    }
}

/// Opens a separate connection that sends its push messages to `pushes`.
pub(super) async fn dedicated(
    finder: &Finder,
    timeout: Duration,
    pushes: tokio::sync::mpsc::UnboundedSender<PushInfo>,
) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(timeout))
        .set_push_sender(pushes);

    connect(&finder.servers().await?, &config).await
}

/// Connects to the first server that accepts.
async fn connect(
    servers: &[Client],
    config: &AsyncConnectionConfig,
) -> RedisResult<MultiplexedConnection> {
    let mut result = Err(::redis::RedisError::from((ErrorKind::InvalidClientConfig, "no servers")));

    for server in servers {
        result = server.get_multiplexed_async_connection_with_config(config).await;
        if result.is_ok() {
            break;
        }
    }

    result
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ::redis::cmd;

    use super::*;
    use crate::testing::RedisServer;

    #[tokio::test]
    async fn a_timeout_gives_up_the_connection_on_which_it_waited_and_no_newer_one() {
        let redis = RedisServer::start().await;
        let address = Address::parse(&redis.url()).unwrap();
        let timeout = Duration::from_secs(2);
        let commands = CommandConnection::new(&address, timeout, Arc::default()).unwrap();
        let RedisTarget::Server(server) = &commands.target else { panic!("one server") };

        commands.query::<()>(&cmd("PING")).await.unwrap();
        let first = server.current().unwrap();

        let mut blocking = cmd("BLPOP");
        blocking.arg("nothing").arg(0);
        let waits = commands.query::<()>(&blocking);

        let replaced = async {
            // The first connection is replaced while a command waits on it.
            first.lost.store(true, Ordering::Relaxed);
            commands.query::<()>(&cmd("PING")).await.unwrap();
            server.current().unwrap()
        };

        let (waited, second) = tokio::join!(waits, replaced);
        assert!(matches!(waited, Err(RedisError::Timeout(_))), "{waited:?}");
        assert!(!Arc::ptr_eq(&first.lost, &second.lost));
        assert!(server.current().is_some_and(|now| Arc::ptr_eq(&now.lost, &second.lost)));

        // A timeout on the present connection replaces it.
        assert!(commands.query::<()>(&blocking).await.is_err());
        assert!(server.current().is_none());
    }
}
