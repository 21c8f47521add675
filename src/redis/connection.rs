//! The connection for commands: one, shared by all, replaced when it is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, PushInfo, PushKind,
    RedisResult,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
};
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    Call, RedisError,
    error::{ends_connection, is_read_only, is_unknown_script},
    finder::Finder,
    settings::{Kind, Place},
};

pub(super) struct Commands {
    to: To,
    /// What one command may take, with connecting where that is needed.
    timeout: Duration,
    demoted: Arc<Notify>,
}

enum To {
    Server(Server),
    Cluster(Cluster),
}

/// One server, or whichever one its name stands for at the time.
struct Server {
    finder: Finder,
    timeout: Duration,
    live: Mutex<Option<Live>>,
    /// So that one connects and the others wait for it.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    lost: Arc<AtomicBool>,
}

/// It finds its nodes and keeps its connections by itself.
struct Cluster {
    client: ClusterClient,
    live: tokio::sync::OnceCell<ClusterConnection>,
}

impl Commands {
    /// `demoted` is told when a server takes no more writes.
    pub(super) fn new(
        place: &Place,
        timeout: Duration,
        demoted: Arc<Notify>,
    ) -> Result<Self, RedisError> {
        let of = |error| RedisError::of(error, timeout);
        if place.is_tls() {
            // Without one, TLS panics where several are built in. Whoever was first is as good.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let to = if matches!(place.kind, Kind::Cluster) {
            let client = ClusterClient::builder(place.nodes.iter().cloned())
                .connection_timeout(timeout)
                .response_timeout(timeout)
                .overall_response_timeout(Some(timeout))
                .build()
                .map_err(of)?;
            To::Cluster(Cluster { client, live: tokio::sync::OnceCell::new() })
        } else {
            let finder = Finder::new(place).map_err(of)?;
            let (live, connecting) = (Mutex::default(), tokio::sync::Mutex::default());
            To::Server(Server { finder, timeout, live, connecting })
        };
        Ok(Self { to, timeout, demoted })
    }

    pub(super) async fn query<T: FromRedisValue>(&self, cmd: &Cmd) -> Result<T, RedisError> {
        self.request(Request::One(cmd)).await
    }

    pub(super) async fn pipeline<T: FromRedisValue>(
        &self,
        pipeline: &Pipeline,
    ) -> Result<T, RedisError> {
        self.request(Request::Several(pipeline)).await
    }

    pub(super) async fn call<T: FromRedisValue>(&self, call: &Call<'_>) -> Result<T, RedisError> {
        let answer = self.query(call.known()).await;
        self.taught(call, answer).await
    }

    /// Does what the pipeline says and runs the script, as one step.
    pub(super) async fn call_after<T: FromRedisValue>(
        &self,
        mut first: Pipeline,
        call: &Call<'_>,
    ) -> Result<T, RedisError> {
        first.atomic().add_command(call.known().clone());
        let answer = self.pipeline(&first).await.map(|(answer,)| answer);
        // What came before the script was done, also where the script was unknown.
        self.taught(call, answer).await
    }

    /// The answer, or that of a second try where the script was unknown.
    async fn taught<T: FromRedisValue>(
        &self,
        call: &Call<'_>,
        answer: Result<T, RedisError>,
    ) -> Result<T, RedisError> {
        match answer {
            Err(RedisError::Refused(error)) if is_unknown_script(&error) => {
                self.query::<()>(&call.load()).await?;
                self.query(call.known()).await
            }
            answer => answer,
        }
    }

    async fn request<T: FromRedisValue>(&self, request: Request<'_>) -> Result<T, RedisError> {
        let trying = async {
            match self.try_request(request).await {
                // It has done nothing, and another has taken over.
                Err(error) if is_read_only(&error) => {
                    self.demoted.notify_one();
                    self.try_request(request).await
                }
                answer => answer,
            }
        };
        match tokio::time::timeout(self.timeout, trying).await {
            Ok(answer) => answer.map_err(|error| RedisError::of(error, self.timeout)),
            Err(_) => {
                if let To::Server(server) = &self.to {
                    server.doubt();
                }
                Err(RedisError::Slow(self.timeout))
            }
        }
    }

    async fn try_request<T: FromRedisValue>(&self, request: Request<'_>) -> RedisResult<T> {
        match &self.to {
            To::Server(server) => {
                let mut live = server.live().await?;
                let answer = request.over(&mut live.connection).await;
                live.judge(answer)
            }
            To::Cluster(cluster) => request.over(&mut cluster.live().await?).await,
        }
    }
}

/// What is sent at once.
#[derive(Clone, Copy)]
enum Request<'a> {
    One(&'a Cmd),
    Several(&'a Pipeline),
}

impl Request<'_> {
    async fn over<T: FromRedisValue>(
        self,
        connection: &mut (impl ConnectionLike + Send),
    ) -> RedisResult<T> {
        match self {
            Self::One(cmd) => cmd.query_async(connection).await,
            Self::Several(pipeline) => pipeline.query_async(connection).await,
        }
    }
}

impl Server {
    async fn live(&self) -> RedisResult<Live> {
        match self.present() {
            Some(live) => Ok(live),
            // Rare, and large: on the heap, so that each command's future is small.
            None => self.connect().boxed().await,
        }
    }

    async fn connect(&self) -> RedisResult<Live> {
        let _connecting = self.connecting.lock().await;
        if let Some(live) = self.present() {
            return Ok(live);
        }
        let lost = Arc::new(AtomicBool::new(false));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_push_sender({
                let lost = Arc::clone(&lost);
                // So that a connection that was lost while nobody used it fails nobody.
                move |push: PushInfo| {
                    if push.kind == PushKind::Disconnection {
                        lost.store(true, Ordering::Relaxed);
                    }
                    Ok::<(), ()>(())
                }
            });
        let connection = connect(&self.finder.servers().await?, &config).await?;
        let live = Live { connection, lost };
        *self.slot() = Some(live.clone());
        Ok(live)
    }

    fn present(&self) -> Option<Live> {
        self.slot().clone().filter(|live| !live.lost.load(Ordering::Relaxed))
    }

    /// Uses the connection no more for what comes: a host that is gone for
    /// good says nothing, and only a new connection finds out.
    fn doubt(&self) {
        if let Some(live) = &*self.slot() {
            live.lost.store(true, Ordering::Relaxed);
        }
    }

    fn slot(&self) -> parking_lot::MutexGuard<'_, Option<Live>> {
        self.live.lock()
    }
}

impl Live {
    /// Has it replaced if this answer says that it is of no more use; so does
    /// one that may not write: another server has taken over.
    fn judge<T>(&self, answer: RedisResult<T>) -> RedisResult<T> {
        if answer.as_ref().is_err_and(ends_connection) {
            self.lost.store(true, Ordering::Relaxed);
        }
        answer
    }
}

impl Cluster {
    async fn live(&self) -> RedisResult<ClusterConnection> {
        self.live.get_or_try_init(|| self.client.get_async_connection()).await.cloned()
    }
}

/// Opens a connection of its own, which hands what is pushed to `pushed`.
pub(super) async fn dedicated(
    finder: &Finder,
    timeout: Duration,
    pushed: tokio::sync::mpsc::UnboundedSender<PushInfo>,
) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(timeout))
        .set_push_sender(pushed);
    connect(&finder.servers().await?, &config).await
}

/// To the first that answers.
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
