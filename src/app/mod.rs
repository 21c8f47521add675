//! Assembles the server from its parts. Only this module knows all of them: [`App::open_with`]
//! opens the places in which things are kept, and `App::assemble` builds each part after those
//! that it needs.

mod access;
mod authorization;
mod base;
mod calls;
mod console;
mod content_links;
mod error;
mod http;
#[cfg(feature = "cli")]
mod inventory;
mod keys;
mod live;
mod logins;
mod maintenance;
mod place;
mod stdio;

use std::{sync::Arc, time::Duration};

use larder_login::LoginServer;
use larder_oauth::Authenticator;
use larder_runtime::{
    clock::{Clock, SystemClock},
    compute,
    random::Random,
};
use larder_server::{http::Console, registry::Registry};
use larder_store::{
    session::Sessions,
    store::{self, Backend, Store},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub(crate) use self::base::Base;
#[cfg(feature = "cli")]
pub(crate) use self::place::{CallPlace, Place};
use self::{
    access::Access, calls::Calls, http::HttpSetup, maintenance::Maintenance, place::Places,
};
pub use self::{
    error::OpenError,
    live::{Live, Reloaded},
};
use crate::config::{Config, ConfigError, StoreUrl};

/// How long the error responses of stopped calls may take to be sent.
const STOP_MARGIN: Duration = Duration::from_secs(1);

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
    base: Base,
    /// The places of what is kept, and the keys that seal it, which change while they exist.
    _places: Places,
    store: Store,
    sessions: Arc<dyn Sessions>,

    access: Access,
    calls: Calls,
    http: HttpSetup,
    /// The pages for people, if they are served.
    console: Option<Arc<Console>>,

    live: Arc<Live>,
    closing: CancellationToken,
    _maintenance: Maintenance,
}

impl App {
    /// Opens a server. Needs a Tokio runtime: background tasks remove expired resources
    /// while the value lives.
    ///
    /// # Errors
    /// Names the invalid setting, or says why the store is not available.
    pub async fn open(registry: Registry, config: Config) -> Result<Self, OpenError> {
        Self::open_in(registry, config, None).await
    }

    /// Opens a server over a backend of one's own, in place of that of `store.url`.
    ///
    /// # Errors
    /// The errors of [`App::open`], and `store.url` if it names another place than memory.
    pub async fn open_over(
        registry: Registry,
        config: Config,
        backend: Arc<dyn Backend>,
    ) -> Result<Self, OpenError> {
        Self::open_in(registry, config, Some(backend)).await
    }

    /// Opens a server over the backend that the code gives, or else over that of `store.url`.
    pub(crate) async fn open_in(
        registry: Registry,
        config: Config,
        backend: Option<Arc<dyn Backend>>,
    ) -> Result<Self, OpenError> {
        let base = Base { backend, ..Base::system(config) };
        // Boxes the future, because it is large and becomes part of the caller's future.
        Box::pin(Self::open_base(base, registry)).await
    }

    /// Opens a server with the given clock and source of randomness, for tests.
    ///
    /// # Errors
    /// The errors of [`App::open`].
    pub async fn open_with(
        registry: Registry,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Result<Self, OpenError> {
        Self::open_base(Base { config, clock, random, backend: None }, registry).await
    }

    async fn open_base(base: Base, registry: Registry) -> Result<Self, OpenError> {
        base.check()?;
        let places = Places::open(&base).await?;
        Ok(Self::assemble(base, places, registry)?)
    }

    /// Creates a server that keeps everything in memory, so that nothing has to be connected.
    ///
    /// # Errors
    /// Names the invalid setting: `store.url` if it needs [`App::open`].
    pub fn new(registry: Registry, config: Config) -> Result<Self, ConfigError> {
        Self::with(registry, config, Arc::new(SystemClock), Random::system())
    }

    /// Creates a server with the given clock and source of randomness, for tests.
    ///
    /// # Errors
    /// The errors of [`App::new`].
    pub fn with(
        registry: Registry,
        config: Config,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        if config.store.place()? != StoreUrl::Memory {
            let problem = "the store must be checked first: use App::open";
            return Err(ConfigError::new("store.url", problem));
        }
        if config.sessions_redis()?.is_some() {
            let problem = "Redis must be checked first: use App::open";
            return Err(ConfigError::new("sessions.url", problem));
        }

        let base = Base { config, clock, random, backend: None };
        let places = Places::in_memory(&base)?;
        Self::assemble(base, places, registry)
    }

    /// Checks that a server could be opened, without connecting to any place. Needs a Tokio
    /// runtime.
    ///
    /// # Errors
    /// Names the invalid setting.
    pub(crate) fn check(registry: Registry, config: Config) -> Result<(), ConfigError> {
        config.check()?;
        let base = Base::system(config);
        let places = Places::in_memory(&base)?;
        Self::assemble(base, places, registry).map(drop)
    }

    /// Builds the parts over the places, in the order of their dependence.
    fn assemble(base: Base, places: Places, mut registry: Registry) -> Result<Self, ConfigError> {
        let config = &base.config;
        limit_process(config);
        for warning in registry.warnings() {
            warn!("{warning}");
        }

        // Resources, sessions of legacy clients, and calls that become tasks, each in its place.
        let store = places.resources.store(&base);
        let sessions = places.calls.sessions(&base);
        let tasks = places.calls.tasks(&base);
        debug!(store = store.backend_name(), "opened the stores");

        // Authentication, by the tokens of other authorization servers or of this one.
        let access = Access::open(&base, &places)?;
        debug!(mode = ?config.auth.mode, "set up authentication");

        // The items that are offered: who may use them, and what upstreams and tools need.
        access::set_rules(&mut registry, config)?;
        logins::open(&registry, &base, &places)?;
        content_links::offer(&registry, &base, &places)?;
        if let Some(parts) = places.calls.shared_parts(&base) {
            registry.share_sessions(&parts);
        }
        debug!("set up the registry");

        // Calls, in both protocol eras.
        let dispatcher = calls::dispatcher(registry, &store, &tasks, &base);
        let calls = Calls::new(dispatcher, &sessions, &places, &base);
        debug!(max = %config.server.max_version, "set up calls");

        // HTTP, for clients and for people.
        let http = HttpSetup::new(config, &access.authenticator)?;
        let console = console::open(&base, &places, access.login.as_ref())?;
        debug!(console = console.is_some(), "set up HTTP");

        // Work beside calls: reloads, and the removal of what has expired.
        let live = Live::new(config, &calls.dispatcher, &access.authenticator, &http.live);
        let maintenance = Maintenance::start(&store, &sessions, tasks, &calls, console.as_ref());
        debug!("started maintenance");

        Ok(Self {
            base,
            _places: places,
            store,
            sessions,
            access,
            calls,
            http,
            console,
            live: Arc::new(live),
            closing: CancellationToken::new(),
            _maintenance: maintenance,
        })
    }

    /// The settings at the start.
    pub(crate) fn config(&self) -> &Config {
        &self.base.config
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.base.clock
    }

    /// The authenticator.
    pub fn authenticator(&self) -> &Arc<Authenticator> {
        &self.access.authenticator
    }

    /// The authorization server of `auth.mode = "login"`.
    pub fn login(&self) -> Option<&Arc<LoginServer>> {
        self.access.login.as_ref()
    }

    /// The pages of `[console]`, if they are served.
    pub(crate) fn console(&self) -> Option<&Arc<Console>> {
        self.console.as_ref()
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
    }
}

/// Sets the limits that all servers of the process share: threads for CPU work, and memory for
/// content that is read again.
fn limit_process(config: &Config) {
    compute::configure(config.compute.limits());
    store::set_cache_bytes(config.store.cache_bytes);
}
