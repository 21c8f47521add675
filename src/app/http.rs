//! The HTTP side of a server: the endpoint, its options, and what of them reloads.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use larder_oauth::{Authenticator, audit::UnknownCallers};
use larder_server::{
    content_link::BaseUrl,
    http::{
        self, AllowedHosts, BodyLimits, Certificate, CertificateError, Dependencies, Endpoint,
        FormSlots, HttpOptions, ProtectedResource, RequestDurations, ServeLimits, StopStages,
    },
};
use parking_lot::Mutex;
use tokio::{net::TcpListener, runtime::Handle};
use tokio_util::sync::CancellationToken;

use super::{App, STOP_MARGIN};
use crate::config::{AuthMode, Config, ConfigError, PublicUrl};

/// The parts that only the HTTP transport needs.
pub(super) struct HttpSetup {
    options: HttpOptions,
    /// The metadata that tells clients where to get tokens, if there is an authorization
    /// server.
    protected: Option<ProtectedResource>,
    pub(super) live: Arc<LiveHttp>,
}

/// The HTTP settings that can change while the server runs.
pub(super) struct LiveHttp {
    options: Arc<ArcSwap<HttpOptions>>,
    /// The settings that were reloaded last. Locked while `options` change.
    reloaded: Mutex<Option<ReloadableOptions>>,
    connections: Arc<AtomicUsize>,
    connections_per_address: Arc<AtomicUsize>,
    certificate: Option<Arc<Certificate>>,
}

impl HttpSetup {
    pub(super) fn new(config: &Config, authenticator: &Authenticator) -> Result<Self, ConfigError> {
        let auth = &config.auth;
        let public_url = config.public_url()?;
        let protected = match (auth.mode, &public_url) {
            (AuthMode::OAuth | AuthMode::Login, Some(url)) => ProtectedResource::new(
                url.as_str(),
                &config.server.path,
                authenticator.issuers(),
                &auth.required_scopes()?,
                auth.resource_name.as_deref(),
            ),
            _ => None,
        };

        let certificate = config.server.tls.as_ref();
        let certificate = certificate.map(|tls| Certificate::open(&tls.cert, &tls.key));

        let live = LiveHttp {
            options: Arc::default(),
            reloaded: Mutex::default(),
            connections: Arc::new(AtomicUsize::new(config.limits.connections)),
            connections_per_address: Arc::new(AtomicUsize::new(
                config.limits.connections_per_address,
            )),
            certificate: certificate.transpose()?,
        };

        let options = http_options(config, public_url.as_ref())?;
        Ok(Self { options, protected, live: Arc::new(live) })
    }
}

impl LiveHttp {
    /// The options of the endpoint, shared with the code that reloads them. What was reloaded
    /// before overrides the given ones.
    fn set(&self, options: &HttpOptions) -> Arc<ArcSwap<HttpOptions>> {
        let mut options = options.clone();
        let reloaded = self.reloaded.lock();
        if let Some(reloaded) = &*reloaded {
            reloaded.apply_to(&mut options);
        }

        self.options.store(Arc::new(options));
        Arc::clone(&self.options)
    }

    /// The files of the certificate.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let files = self.certificate.iter().flat_map(|certificate| certificate.files());
        files.map(ToOwned::to_owned).collect()
    }

    /// Reads the certificate again: the only step that can fail.
    pub(super) fn reload_certificate(&self) -> Result<(), ConfigError> {
        Ok(self.certificate.as_ref().map_or(Ok(()), |certificate| certificate.reload())?)
    }

    /// Takes over the settings that can change.
    pub(super) fn apply(&self, config: &Config, public_url: Option<&PublicUrl>) {
        self.connections.store(config.limits.connections, Ordering::Relaxed);
        let limits = &config.limits;
        self.connections_per_address.store(limits.connections_per_address, Ordering::Relaxed);

        let reloadable = ReloadableOptions::new(config, public_url);
        let mut reloaded = self.reloaded.lock();

        let mut options = HttpOptions::clone(&self.options.load());
        reloadable.apply_to(&mut options);
        self.options.store(Arc::new(options));
        *reloaded = Some(reloadable);
    }
}

/// The settings of the endpoint that can change while the server runs.
struct ReloadableOptions {
    body: BodyLimits,
    hosts: AllowedHosts,
}

impl ReloadableOptions {
    fn new(config: &Config, public_url: Option<&PublicUrl>) -> Self {
        Self { body: config.limits.body(), hosts: allowed_hosts(config, public_url) }
    }

    /// Sets the options that a reload changes: this is their only list.
    fn apply_to(&self, options: &mut HttpOptions) {
        options.hosts = self.hosts.clone();
        options.body = self.body;
    }
}

impl App {
    /// The options of the endpoint. Change them before the endpoint is used.
    pub fn http(&mut self) -> &mut HttpOptions {
        &mut self.http.options
    }

    /// The endpoint as a router, to be mounted in another one.
    pub fn router(&self) -> axum::Router {
        // The program that serves the router stops accepting connections itself.
        let closing = self.closing.clone();
        http::router(&self.endpoint(StopStages { draining: closing.clone(), closing }))
    }

    /// The endpoint as a router that owns the server. When the last copy of the router is
    /// dropped, the server ends and `at_end` runs.
    pub(crate) fn into_router(self, at_end: BoxFuture<'static, ()>) -> axum::Router {
        let router = self.router();
        let owner = Arc::new(Owner { _app: self, at_end: Mutex::new(Some(at_end)) });
        http::owned(router, owner)
    }

    /// The parts that the server depends on, for metrics.
    pub fn dependencies(&self) -> Dependencies {
        Dependencies::new(
            self.store.clone(),
            Arc::clone(&self.sessions),
            Arc::clone(&self.access.authenticator),
            Arc::clone(&self.calls.dispatcher),
        )
    }

    fn endpoint(&self, stages: StopStages) -> Arc<Endpoint> {
        Arc::new(Endpoint {
            options: self.http.live.set(&self.http.options),
            dispatcher: Arc::clone(&self.calls.dispatcher),
            legacy: Arc::clone(&self.calls.legacy),
            modern: self.calls.modern.clone(),
            authenticator: Arc::clone(&self.access.authenticator),
            protected: self.http.protected.clone(),
            login: self.access.login.clone(),
            console: self.console.clone(),
            stages,
            dependencies: self.dependencies(),
            forms: FormSlots::default(),
            unknown_callers: UnknownCallers::new(self.base.clock()),
            random: self.base.random(),
            durations: RequestDurations::default(),
        })
    }

    fn serve_limits(&self) -> ServeLimits {
        let limits = &self.base.config.limits;
        ServeLimits {
            head_timeout: Duration::from_secs(limits.head_timeout),
            idle_timeout: Duration::from_secs(limits.idle_timeout),
            write_timeout: Duration::from_secs(limits.write_timeout),
            shutdown_delay: self.base.config.shutdown_delay(),
            grace: self.base.config.grace() + STOP_MARGIN,
            connections: Arc::clone(&self.http.live.connections),
            connections_per_address: Arc::clone(&self.http.live.connections_per_address),
        }
    }

    /// Serves on a bound listener until `stop` resolves, then stops gracefully, first for proxies
    /// and then for clients (`server.shutdown_delay`). Calls that
    /// still run after the grace period end with an error that asks to send them again;
    /// their clients have a moment to receive it. Returns whether all calls ended by
    /// themselves.
    ///
    /// # Errors
    /// The TLS configuration is invalid.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<bool> {
        let limits = self.serve_limits();
        let grace = self.base.config.grace();
        let stages =
            StopStages { draining: CancellationToken::new(), closing: self.closing.clone() };
        let certificate = self.http.live.certificate.clone();
        let address = listener.local_addr()?;

        if let Some(links) = self.calls.dispatcher.registry().content_links()
            && !address.ip().is_unspecified()
        {
            let scheme = if certificate.is_some() { "https" } else { "http" };
            links.reachable_at(BaseUrl::of_endpoint(&format!("{scheme}://{address}"), ""));
        }

        let service = http::service(self.endpoint(stages.clone()));
        let ended = async {
            let finished =
                http::serve_in_stages(listener, certificate, service, &limits, &stages, stop)
                    .await?;
            // Calls may continue without a connection.
            self.calls.drain().await;
            Ok(finished)
        };

        let mut ended = std::pin::pin!(ended);
        let grace_over = async {
            stages.closing.cancelled().await;
            tokio::time::sleep(grace).await;
        };

        let ended = tokio::select! {
            biased;
            ended = &mut ended => ended,
            () = grace_over => {
                self.calls.dispatcher.stop();
                // Clients of the stopped calls, here or on other instances, receive the
                // error.
                match tokio::time::timeout(2 * STOP_MARGIN, ended).await {
                    Ok(ended) => ended.map(|_| false),
                    Err(_) => Ok(false),
                }
            }
        };

        self.calls.dispatcher.registry().close().await;
        ended
    }
}

/// A server that belongs to a router.
struct Owner {
    _app: App,
    at_end: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Nothing can run without a runtime.
        if let (Some(at_end), Ok(runtime)) = (self.at_end.lock().take(), Handle::try_current()) {
            runtime.spawn(at_end);
        }
    }
}

impl From<CertificateError> for ConfigError {
    fn from(error: CertificateError) -> Self {
        let CertificateError { setting, file, problem } = error;
        Self::new(&format!("server.tls.{setting}"), format!("{}: {problem}", file.display()))
    }
}

fn allowed_hosts(config: &Config, public_url: Option<&PublicUrl>) -> AllowedHosts {
    let server = &config.server;
    let mut hosts = AllowedHosts::default();

    if !server.listen.ip().is_unspecified() {
        hosts = hosts.host(&server.listen.to_string());
    }

    hosts = public_url.iter().fold(hosts, |hosts, url| hosts.host(url.authority()));
    hosts = server.allowed_hosts.iter().fold(hosts, |hosts, host| hosts.host(host));
    server.allowed_origins.iter().fold(hosts, |hosts, origin| hosts.origin(origin))
}

fn http_options(
    config: &Config,
    public_url: Option<&PublicUrl>,
) -> Result<HttpOptions, ConfigError> {
    let mut options = HttpOptions {
        path: config.server.path.clone(),
        json_response: config.server.json_response,
        content: config.content.enabled,
        upload_bytes: config.content.upload_bytes,
        upload_ttl: Duration::from_secs(config.content.upload_ttl),
        proxies: config.server.trusted_proxies()?,
        public_url: public_url.map(|url| url.as_str().to_owned()),
        is_tls: config.server.tls.is_some(),
        ..HttpOptions::default()
    };

    ReloadableOptions::new(config, public_url).apply_to(&mut options);
    Ok(options)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use larder_server::registry::Registry;

    use super::*;

    #[tokio::test]
    async fn reloaded_options_stay_when_an_endpoint_is_made() {
        let registry = Registry::builder("test").build().unwrap();
        let mut app = App::new(registry, Config::default()).unwrap();
        app.http().promote_after = Duration::ZERO;

        let mut config = Config::default();
        config.limits.body_bytes = 1_000;
        app.live().apply(&config).unwrap();

        // The reload precedes the first endpoint and a later endpoint.
        for _ in 0..2 {
            let options = app.endpoint(StopStages::default()).options.load_full();
            assert_eq!((options.body.bytes, options.promote_after), (1_000, Duration::ZERO));
        }
    }
}
