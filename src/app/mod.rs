//! Puts the parts together: the one place that knows them all.

mod access;
mod live;
mod stores;

use std::{io, sync::Arc, time::Duration};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    admission::Limits,
    auth::Authenticator,
    clock::{Clock, SystemClock},
    config::{Config, ConfigError},
    dispatch::{DispatchLimits, Dispatcher},
    era::{Legacy, Modern, StateSealer, announce_changes, announce_edits},
    http::{self, Endpoint, HttpOptions, ProtectedResource, Readiness, ServeLimits},
    random::Random,
    redis::{Instance, Redis, RedisError},
    registry::Registry,
    session::{MemorySessions, RedisSessions, SessionLimits, Sessions},
    stdio::Stdio,
    store::{PlaceError, Store},
    task::{MemoryTasks, RedisTasks, TaskLimits, Tasks},
    telemetry::Inventory,
};

pub(crate) use self::access::AccessSetup;
pub use self::live::{Live, Reloaded};
use self::{
    access::http_options,
    stores::{as_objects, in_memory, on_redis},
};

const ASK_REDIS: &str = "Redis has to be asked whether it is there: use App::open";

/// How long it may take to tell that calls were stopped.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A server: what it offers, over where its resources lie.
///
/// ```no_run
/// use larder::{Context, Registry, Tool, app::App, config::Config};
///
/// /// Says it back.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Echo {
///     /// What to say.
///     text: String,
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let echo = Tool::new(|_: Context, args: Echo| async move { args.text });
/// let registry = Registry::builder("echo").tool(echo).build()?;
/// let app = App::open(registry, Config::default()).await?;
/// // Mounted in a router of one's own; or run by itself, by app.serve(listener, stop).
/// let router: axum::Router = axum::Router::new().merge(app.router());
/// # Ok(()) }
/// ```
pub struct App {
    config: Config,
    clock: Arc<dyn Clock>,
    store: Store,
    dispatcher: Arc<Dispatcher>,
    legacy: Arc<Legacy>,
    modern: Modern,
    authenticator: Arc<Authenticator>,
    protected: Option<ProtectedResource>,
    closing: CancellationToken,
    sessions: Arc<dyn Sessions>,
    http: HttpOptions,
    live: Arc<Live>,
    random: Random,
    maintenance: Vec<JoinHandle<()>>,
}

/// Why a server cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Redis cannot be used.
    #[error("{setting}{error}", setting = if needs_action(.0) { "" } else { "store.url: " }, error = .0)]
    Redis(#[from] RedisError),
    /// The directory or the bucket cannot be used.
    #[error("store.url: {0}")]
    Objects(#[from] PlaceError),
    /// The directory or the bucket for large content cannot be used.
    #[error("store.blobs: {0}")]
    Blobs(#[source] PlaceError),
    /// The Redis of the sessions cannot be used.
    #[error("sessions.url: {0}")]
    Sessions(#[source] RedisError),
}

impl OpenError {
    /// Whether something has to be set or done before it can work, rather
    /// than something being out of order.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) => true,
            Self::Redis(error) | Self::Sessions(error) => needs_action(error),
            Self::Objects(error) | Self::Blobs(error) => matches!(error, PlaceError::Setting(_)),
        }
    }
}

/// Whether the error itself says what to set or do.
fn needs_action(error: &RedisError) -> bool {
    matches!(error, RedisError::Setting(_) | RedisError::Layout(_))
}

impl App {
    /// A server of that definition, configured like that. Needs a Tokio
    /// runtime: what expires is removed in the background while the value lives.
    ///
    /// # Errors
    /// Names the setting that cannot be used; or says why its store does not
    /// answer, or what it needs first.
    pub async fn open(registry: Registry, config: Config) -> Result<Self, OpenError> {
        config.check()?;
        let (clock, random) = (Arc::new(SystemClock), Random::system());
        let redis = match config.redis() {
            Some(settings) => Some(Redis::open(&settings).await?),
            None => None,
        };
        let store = match &redis {
            Some(redis) => on_redis(redis.clone(), &config, clock.clone(), &random).await?,
            None if config.has_objects() => as_objects(&config, clock.clone(), &random).await?,
            None => in_memory(&config, clock.clone())?,
        };
        let calls = match config.sessions_redis() {
            Some(settings) => {
                let redis = match redis.filter(|_| config.redis() == Some(settings.clone())) {
                    Some(redis) => redis,
                    None => Redis::open(&settings).await.map_err(OpenError::Sessions)?,
                };
                let instance = Instance::join(redis, &random);
                let tasks = RedisTasks::new(instance.clone(), random.clone(), task_limits(&config));
                let sessions =
                    RedisSessions::new(instance, random.clone(), session_limits(&config));
                Calls { sessions: Arc::new(sessions), tasks: Arc::new(tasks) }
            }
            None => Calls::in_memory(&config, clock.clone(), &random),
        };
        Ok(Self::over(store, calls, registry, config, clock, random)?)
    }

    /// The same for a store that needs not be asked whether it is there.
    ///
    /// # Errors
    /// Names the setting that cannot be used: `store.url` among them where
    /// that needs [`App::open`].
    pub fn new(registry: Registry, config: Config) -> Result<Self, ConfigError> {
        Self::with(registry, config, Arc::new(SystemClock), Random::system())
    }

    /// The same with a time and a randomness of one's own, for tests.
    ///
    /// # Errors
    /// As [`App::new`].
    pub fn with(
        registry: Registry,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let store = in_memory(&config, Arc::clone(&clock))?;
        if config.sessions_redis().is_some() {
            return Err(ConfigError::new("sessions.url", ASK_REDIS));
        }
        let calls = Calls::in_memory(&config, Arc::clone(&clock), &random);
        Self::over(store, calls, registry, config, clock, random)
    }

    fn over(
        store: Store,
        Calls { sessions, tasks }: Calls,
        registry: Registry,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Result<Self, ConfigError> {
        let state_key = state_key(&config, &random)?;
        let AccessSetup { registry, authenticator, protected, certificate } =
            AccessSetup::of(registry, &config, Arc::clone(&clock))?;
        let limits = DispatchLimits { read_bytes: config.limits.read_bytes };
        let principals = Limits::new(config.limits.principals(), Arc::clone(&clock));
        let dispatcher = Arc::new(Dispatcher::new(
            registry,
            store.clone(),
            Arc::clone(&tasks),
            random.clone(),
            limits,
            principals,
        ));
        let max = config.max_version();
        let sealer = StateSealer::new(state_key, Arc::clone(&clock));
        let modern = Modern::new(Arc::clone(&dispatcher), sealer, max);
        let legacy = Arc::new(Legacy::new(
            Arc::clone(&dispatcher),
            Arc::clone(&sessions),
            max,
            config.sessions.delete_resources,
        ));
        let maintenance = vec![
            tokio::spawn(async move { tasks.maintain().await }),
            tokio::spawn({
                let store = store.clone();
                async move { store.maintain().await }
            }),
            tokio::spawn({
                let sessions = Arc::clone(&sessions);
                async move { sessions.maintain().await }
            }),
            tokio::spawn(Arc::clone(&legacy).handle_signals()),
            tokio::spawn(announce_edits(dispatcher.registry().listen(), Arc::clone(&sessions))),
            tokio::spawn(announce_changes(store.feed().listen_to_all(), Arc::clone(&sessions))),
        ];
        let http = http_options(&config, config.public_url()?.as_ref());
        let closing = CancellationToken::new();
        let live = Arc::new(Live::new(&config, Arc::clone(&dispatcher), certificate));
        Ok(Self {
            config,
            clock,
            store,
            dispatcher,
            legacy,
            modern,
            authenticator,
            protected,
            closing,
            sessions,
            http,
            live,
            random,
            maintenance,
        })
    }

    /// How the endpoint behaves, to be changed before it is used.
    pub fn http(&mut self) -> &mut HttpOptions {
        &mut self.http
    }

    /// Where its resources lie.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What it keeps, for metrics.
    pub fn stock(&self) -> Inventory {
        Inventory::new(self.store.clone(), Arc::clone(&self.sessions), &self.random)
    }

    /// The time it goes by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Who finds out who calls.
    pub fn authenticator(&self) -> &Arc<Authenticator> {
        &self.authenticator
    }

    /// The endpoint, to be mounted in a router of one's own.
    pub fn router(&self) -> axum::Router {
        http::router(self.endpoint())
    }

    fn endpoint(&self) -> Arc<Endpoint> {
        let (store, sessions) = (self.store.clone(), Arc::clone(&self.sessions));
        let readiness = Readiness::new(store, sessions, Arc::clone(&self.authenticator));
        Arc::new(Endpoint {
            options: self.live.http(&self.http),
            dispatcher: Arc::clone(&self.dispatcher),
            legacy: Arc::clone(&self.legacy),
            modern: self.modern.clone(),
            clock: Arc::clone(&self.clock),
            authenticator: Arc::clone(&self.authenticator),
            protected: self.protected.clone(),
            closing: self.closing.clone(),
            readiness,
            random: self.random.clone(),
        })
    }

    /// What can be changed while it serves.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Ends the streams that would not end by themselves: for those who serve
    /// the router themselves and want to stop.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Serves on a bound listener until `stop` resolves, then ends softly
    /// within the grace period: calls that still run then end with an error
    /// that says to send them again, and have a moment to be told so. Says
    /// whether everything ended by itself.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<bool> {
        let grace = self.config.grace();
        let limits = ServeLimits {
            grace: grace + LAST_WORDS,
            connections: Arc::clone(self.live.connections()),
            ..ServeLimits::default()
        };
        let stopping = CancellationToken::new();
        let stop = async {
            stop.await;
            stopping.cancel();
            self.closing.cancel();
        };
        let certificate = self.live.certificate().cloned();
        let service = http::service(self.endpoint());
        let ended = async {
            let finished = http::serve(listener, certificate, service, &limits, stop).await?;
            // Calls may run on without a connection.
            tokio::join!(self.legacy.drain(), self.dispatcher.drain());
            Ok(finished)
        };
        let mut ended = std::pin::pin!(ended);
        let over = async {
            stopping.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        tokio::select! {
            biased;
            ended = &mut ended => return ended,
            () = over => {}
        }
        self.dispatcher.stop();
        // Whoever waits for them, here or elsewhere, is told that they are over.
        match tokio::time::timeout(2 * LAST_WORDS, ended).await {
            Ok(ended) => ended.map(|_| false),
            Err(_) => Ok(false),
        }
    }

    /// Serves one client on standard input and output until the input ends or
    /// `stop` resolves.
    ///
    /// # Errors
    /// When input or output fails.
    pub async fn serve_stdio(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let stdio = Stdio {
            dispatcher: Arc::clone(&self.dispatcher),
            legacy: Arc::clone(&self.legacy),
            modern: self.modern.clone(),
            closing: self.closing.clone(),
            message_bytes: self.config.limits.body_bytes,
            message_values: self.config.limits.body_values,
            grace: self.config.grace(),
        };
        let input = tokio::io::BufReader::new(tokio::io::stdin());
        let serving = stdio.serve(input, tokio::io::stdout());
        let closing = self.closing.clone();
        let stop = async move {
            stop.await;
            closing.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            served = serving => served,
            () = stop => Ok(()),
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.closing.cancel();
        for task in &self.maintenance {
            task.abort();
        }
    }
}

/// What is known of calls beyond their requests: both lie in one place.
struct Calls {
    sessions: Arc<dyn Sessions>,
    tasks: Arc<dyn Tasks>,
}

impl Calls {
    fn in_memory(config: &Config, clock: Arc<dyn Clock>, random: &Random) -> Self {
        let tasks = MemoryTasks::new(Arc::clone(&clock), random.clone(), task_limits(config));
        let sessions = MemorySessions::new(clock, random.clone(), session_limits(config));
        Self { sessions: Arc::new(sessions), tasks: Arc::new(tasks) }
    }
}

fn task_limits(config: &Config) -> TaskLimits {
    TaskLimits {
        ttl: Duration::from_secs(config.tasks.ttl),
        per_owner: config.tasks.per_principal,
        ..TaskLimits::default()
    }
}

fn session_limits(config: &Config) -> SessionLimits {
    SessionLimits {
        idle: Duration::from_secs(config.sessions.idle),
        replay: Duration::from_secs(config.sessions.replay),
        sessions_per_principal: config.sessions.per_principal,
        ..SessionLimits::default()
    }
}

fn state_key(config: &Config, random: &Random) -> Result<Vec<u8>, ConfigError> {
    let Some(file) = &config.server.state_key_file else {
        return Ok(format!("{}{}", random.id(), random.id()).into_bytes());
    };
    let problem = |problem: &dyn std::fmt::Display| {
        ConfigError::new("server.state_key_file", format!("{}: {problem}", file.display()))
    };
    let key = std::fs::read(file).map_err(|error| problem(&error))?;
    if key.trim_ascii().len() < 32 {
        return Err(problem(&"it must hold at least 32 bytes"));
    }
    Ok(key.trim_ascii().to_vec())
}
