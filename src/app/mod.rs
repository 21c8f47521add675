//! Assembles the server from its parts. Only this module knows all of them.

mod access;
mod authorization;
mod call_stores;
mod console;
mod http;
mod live;
mod logins;
mod state_key;
mod stdio;
mod stores;
mod used_links;
mod vault;

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::AuthMode;
use larder_oauth::Authenticator;
use larder_runtime::{
    clock::{Clock, SystemClock},
    compute,
    random::Random,
};
use larder_server::http::Console;
use larder_server::{
    admission::Limits,
    dispatch::Dispatcher,
    era::{Legacy, Modern, StateSealer, announce_changes, announce_edits},
    registry::Registry,
};
use larder_store::redis::{Redis, RedisError, StateKeys};
use larder_store::store::LocationError;
use larder_store::{
    session::Sessions,
    store::{self, Store},
};

use crate::config::{Config, ConfigError};
use larder_login::LoginServer;
use larder_oauth::OwnTokens;

pub(crate) use self::access::AccessSetup;
pub(crate) use self::http::HttpSetup;
pub use self::live::{Live, Reloaded};
use self::{call_stores::CallStores, state_key::StateKey, stores::memory_store};
#[cfg(feature = "cli")]
pub(crate) use self::{call_stores::open_sessions_alone, stores::open_alone};

/// How long the error responses of stopped calls may take to be sent.
const STOP_MARGIN: Duration = Duration::from_secs(1);

const NEEDS_OPEN: &str = "Redis must be checked first: use App::open";

/// A server: a registry over a store.
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
/// // Mounted in another router. Or standalone: app.serve(listener, stop).
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
    closing: CancellationToken,
    sessions: Arc<dyn Sessions>,
    /// Keeps the keys of `requestState` up to date.
    _state_key: StateKey,

    http: HttpSetup,
    /// The authorization server, if this server is its own.
    login: Option<Arc<LoginServer>>,
    /// The pages for people, if they are served.
    console: Option<Arc<Console>>,

    live: Arc<Live>,
    random: Random,
    maintenance: Vec<JoinHandle<()>>,
}

/// What a server keeps, opened.
struct Stores {
    store: Store,
    calls: CallStores,
    state_key: StateKey,
    login: Option<Arc<LoginServer>>,
    console: Option<Arc<Console>>,
}

/// The reason why a server cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Redis cannot be used.
    #[error("{setting}{error}", setting = if needs_action(.0) { "" } else { "store.url: " }, error = .0)]
    Redis(#[from] RedisError),
    /// The directory or the bucket cannot be used.
    #[error("store.url: {0}")]
    Objects(#[from] LocationError),
    /// The directory or the bucket for large content cannot be used.
    #[error("store.blobs: {0}")]
    Blobs(#[source] LocationError),
    /// The Redis of the sessions cannot be used.
    #[error("sessions.url: {0}")]
    Sessions(#[source] RedisError),
}

impl OpenError {
    /// Whether the user has to change a setting or run a migration, rather than retry.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) => true,
            Self::Redis(error) | Self::Sessions(error) => needs_action(error),
            Self::Objects(error) | Self::Blobs(error) => matches!(error, LocationError::Setting(_)),
        }
    }
}

/// Whether the error itself names the setting or the next step.
fn needs_action(error: &RedisError) -> bool {
    matches!(error, RedisError::Setting(_) | RedisError::Layout(_))
}

impl App {
    /// Opens a server. Needs a Tokio runtime: background tasks remove expired resources
    /// while the value lives.
    ///
    /// # Errors
    /// Names the invalid setting, or says why the store is not available.
    pub async fn open(registry: Registry, config: Config) -> Result<Self, OpenError> {
        // Boxes the future, because it is large and becomes part of the caller's future.
        Box::pin(Self::open_with(registry, config, Arc::new(SystemClock), Random::system())).await
    }

    /// As [`App::open`], with the given clock and source of randomness, for tests.
    ///
    /// # Errors
    /// As [`App::open`].
    pub async fn open_with(
        registry: Registry,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Result<Self, OpenError> {
        config.check()?;

        let redis = match config.redis() {
            Some(settings) => Some(Redis::open(&settings).await?),
            None => None,
        };
        let store = stores::open(&config, redis.as_ref(), clock.clone(), &random).await?;

        let upstreams_log_in = registry.has_logins();
        let vault = if upstreams_log_in || config.auth.mode == AuthMode::Login {
            let redis = vault::open(&config, redis.as_ref(), &clock, &random);
            Some(redis.await?)
        } else {
            None
        };

        let login = authorization::open(&config, vault.as_ref(), &clock, &random)?;
        if let Some(vault) = vault.filter(|_| upstreams_log_in) {
            logins::open(&registry, &config, vault, clock.clone(), &random)?;
        }

        let calls_redis = match config.sessions_redis() {
            Some(settings) => Some(match &redis {
                Some(redis) if config.redis().as_ref() == Some(&settings) => redis.clone(),
                _ => Redis::open(&settings).await.map_err(OpenError::Sessions)?,
            }),
            None => None,
        };

        let state_key = match calls_redis.as_ref().or(redis.as_ref()) {
            Some(redis) if config.server.state_key_file.is_none() => {
                let is_sessions = calls_redis.is_some() && config.sessions.url.is_some();
                let wrong = if is_sessions { OpenError::Sessions } else { OpenError::Redis };
                let keys = StateKeys::open(redis.clone(), random.clone()).await;
                StateKey::Shared(keys.map_err(wrong)?)
            }
            _ => StateKey::of_process(&config, &random)?,
        };

        let calls = match calls_redis {
            Some(redis) => CallStores::in_redis(redis, &config, &random),
            None => CallStores::in_memory(&config, clock.clone(), &random),
        };

        {
            let used =
                used_links::open(&config, redis.as_ref(), Arc::clone(&clock), &random).await?;
            http::offer_content_links(&registry, &config, state_key.ring(), used, &clock)?;
        }

        let console = console::open(&config, redis.as_ref(), &clock, &random).await?;
        let stores = Stores { store, calls, state_key, login, console };
        Ok(Self::assemble(stores, registry, config, clock, random)?)
    }

    /// Creates a server with a store that needs no connection.
    ///
    /// # Errors
    /// Names the invalid setting: `store.url` if it needs [`App::open`].
    pub fn new(registry: Registry, config: Config) -> Result<Self, ConfigError> {
        Self::with(registry, config, Arc::new(SystemClock), Random::system())
    }

    /// As [`App::new`], with the given clock and source of randomness, for tests.
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

        let store = memory_store(&config, Arc::clone(&clock))?;
        let vault = vault::in_memory(&config, &clock, &random)?;
        let login = authorization::open(&config, Some(&vault), &clock, &random)?;
        if registry.has_logins() {
            logins::open(&registry, &config, vault, Arc::clone(&clock), &random)?;
        }

        if config.sessions_redis().is_some() {
            return Err(ConfigError::new("sessions.url", NEEDS_OPEN));
        }

        let calls = CallStores::in_memory(&config, Arc::clone(&clock), &random);
        let state_key = StateKey::of_process(&config, &random)?;
        {
            let used = used_links::in_memory(Arc::clone(&clock));
            http::offer_content_links(&registry, &config, state_key.ring(), used, &clock)?;
        }

        let console = console::in_memory(&config, &clock, &random)?;
        let stores = Stores { store, calls, state_key, login, console };
        Self::assemble(stores, registry, config, clock, random)
    }

    fn assemble(
        stores: Stores,
        registry: Registry,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Result<Self, ConfigError> {
        let CallStores { sessions, tasks, parts } = stores.calls;
        let (store, state_key) = (stores.store, stores.state_key);

        compute::configure(config.compute.limits());
        store::set_cache_bytes(config.store.cache_bytes);

        let AccessSetup { registry, authenticator } = AccessSetup::new(
            registry,
            &config,
            stores.login.clone().map(|login| login as Arc<dyn OwnTokens>),
            Arc::clone(&clock),
        )?;
        if let Some(parts) = &parts {
            registry.share_sessions(parts);
        }

        let http = HttpSetup::new(&config, &authenticator)?;
        let limits = config.limits.per_call();
        let caller_limits = Limits::new(config.limits.admission(), Arc::clone(&clock));
        let dispatcher = Arc::new(Dispatcher::new(
            registry,
            store.clone(),
            Arc::clone(&tasks),
            random.clone(),
            limits,
            caller_limits,
        ));

        let max = config.max_version();
        let sealer = StateSealer::new(state_key.ring(), Arc::clone(&clock));
        let modern = Modern::new(Arc::clone(&dispatcher), sealer, max);
        let legacy = Arc::new(Legacy::new(
            Arc::clone(&dispatcher),
            Arc::clone(&sessions),
            max,
            config.sessions.delete_resources,
        ));

        let mut maintenance = vec![
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
            tokio::spawn(announce_changes(store.feed().queue(), Arc::clone(&sessions))),
        ];

        if let Some(console) = stores.console.clone() {
            let traffic = Arc::clone(dispatcher.traffic());
            maintenance.push(tokio::spawn(async move { console.sample(&traffic).await }));
        }

        let closing = CancellationToken::new();
        let live = Live::new(
            &config,
            Arc::clone(&dispatcher),
            Arc::clone(&authenticator),
            Arc::clone(&http.live),
        );

        Ok(Self {
            config,
            clock,
            store,
            dispatcher,
            legacy,
            modern,
            authenticator,
            closing,
            sessions,
            _state_key: state_key,
            http,
            login: stores.login,
            console: stores.console,
            live: Arc::new(live),
            random,
            maintenance,
        })
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The gauges of stored resources and sessions, for metrics.
    #[cfg(feature = "cli")]
    pub fn inventory(&self) -> crate::telemetry::Inventory {
        crate::telemetry::Inventory::new(
            self.store.clone(),
            Arc::clone(&self.sessions),
            &self.random,
        )
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The authenticator.
    pub fn authenticator(&self) -> &Arc<Authenticator> {
        &self.authenticator
    }

    /// The authorization server of `auth.mode = "login"`.
    pub fn login(&self) -> Option<&Arc<LoginServer>> {
        self.login.as_ref()
    }

    /// Connects to the authorization server of `[console.oidc]`, for an operator.
    #[cfg(feature = "cli")]
    pub(crate) async fn check_console(&self) -> Option<Result<String, String>> {
        match &self.console {
            Some(console) => console.check_oidc().await,
            None => None,
        }
    }

    /// The settings that can change while the server runs.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Ends the streams that do not end by themselves. For servers that serve the router
    /// themselves.
    pub fn close(&self) {
        self.closing.cancel();
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
