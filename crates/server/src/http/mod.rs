//! Streamable HTTP: the state and the options of the endpoint. `routes` is the table of all routes,
//! `surface` fixes the checks of each, and `checks` shows their order. Only this module uses axum.

mod authorization;
mod checks;
mod conditions;
mod connection;
mod console;
mod content;
mod error;
mod error_format;
mod head;
mod mcp;
mod monitoring;
mod owned;
mod pages;
mod problem;
mod response;
mod route;
mod routes;
mod surface;
mod upload;
mod upstream_login;
mod welcome;
mod well_known;

use std::{sync::Arc, time::Duration};

use arc_swap::{ArcSwap, Guard};
pub use axum::Router;
use larder_login::LoginServer;
use larder_oauth::{Authenticator, audit::UnknownCallers};
use larder_runtime::random::Random;

pub use self::{
    checks::{AllowedHosts, FormSlots, RequestDurations, TrustedProxies},
    connection::{Certificate, CertificateError, ServeLimits, StopStages, serve, serve_in_stages},
    console::{Console, OidcLogin, SessionOptions},
    monitoring::{Dependencies, PROBE_PATHS, json_router, metrics_router},
    owned::owned,
    routes::{FastPath, router, service},
    well_known::ProtectedResource,
};
use crate::{
    dispatch::Dispatcher,
    era::{Legacy, Modern},
};

/// The path at which callers with a bearer token read, store and delete resources.
pub const RESOURCES_PATH: &str = "/resources";

/// The path of the uploads of these callers that can be resumed.
pub(crate) const UPLOADS_PATH: &str = "/resources/uploads";

/// The limits of request bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// The maximum size of a message, in bytes.
    pub bytes: usize,
    /// The maximum number of JSON values in a message, at all depths.
    pub values: usize,
    /// How long a client may take to send the next part of a body: the bytes that
    /// `rate` asks for in this time.
    pub timeout: Duration,
    /// The minimum rate of a body, in bytes per second.
    pub rate: u32,
}

impl BodyLimits {
    /// The bytes that have to arrive within the timeout.
    fn step(&self) -> u64 {
        let step = self.timeout.as_millis() * u128::from(self.rate) / 1000;
        u64::try_from(step).unwrap_or(u64::MAX)
    }
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { bytes: 32 << 20, values: 200_000, timeout: Duration::from_secs(30), rate: 16 << 10 }
    }
}

/// Options of the endpoint.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The path of the MCP endpoint.
    pub path: String,

    /// The limits of request bodies.
    pub body: BodyLimits,

    /// How long a call may run before its response becomes a stream.
    pub promote_after: Duration,
    /// Whether responses are always one JSON message, never a stream. Then the messages of
    /// a call are not sent, and it cannot ask its client within a session. Streams that a
    /// client opens to listen stay streams.
    pub json_response: bool,
    /// How long a stream may be silent before a comment is sent to keep the connection
    /// open.
    pub keep_alive: Duration,
    /// How long a client waits before it reconnects (`retry` of SSE).
    pub retry: Duration,

    /// Whether stored content can be read and deleted at `/resources`.
    pub content: bool,
    /// The maximum size of content that is received over HTTP, in bytes.
    pub upload_bytes: u64,
    /// How long an upload that can be resumed may take.
    pub upload_ttl: Duration,

    /// The URL of the endpoint as `server.public_url` has it.
    pub public_url: Option<String>,
    /// Whether this server itself serves HTTPS.
    pub is_tls: bool,

    /// The allowed values of the Host and Origin headers.
    pub hosts: AllowedHosts,
    /// The proxies whose `X-Forwarded-For` is believed.
    pub proxies: TrustedProxies,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),

            body: BodyLimits::default(),

            promote_after: Duration::from_millis(200),
            json_response: false,
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),

            content: true,
            upload_bytes: 5 << 30,
            upload_ttl: Duration::from_secs(3600),

            public_url: None,
            is_tls: false,

            hosts: AllowedHosts::default(),
            proxies: TrustedProxies::default(),
        }
    }
}

/// The state of the endpoint.
pub struct Endpoint {
    /// Replaced when the configuration is reloaded.
    pub options: Arc<ArcSwap<HttpOptions>>,
    /// Answers calls.
    pub dispatcher: Arc<Dispatcher>,
    /// The eras with sessions.
    pub legacy: Arc<Legacy>,
    /// The era without sessions.
    pub modern: Modern,

    /// Authenticates callers.
    pub authenticator: Arc<Authenticator>,
    /// The metadata that tells clients where to get a token, if there is an authorization
    /// server.
    pub protected: Option<ProtectedResource>,
    /// The authorization server, if this server is its own.
    pub login: Option<Arc<LoginServer>>,
    /// The pages for people, if they are served.
    pub console: Option<Arc<Console>>,

    /// The stages of a stop. The second ends the streams that do not end by themselves.
    pub stages: StopStages,
    /// The parts that the server depends on.
    pub dependencies: Dependencies,

    /// The forms of nobody known that are read.
    pub forms: FormSlots,
    /// Logs refused requests without valid credentials.
    pub unknown_callers: UnknownCallers,
    /// Generates request IDs.
    pub random: Random,
    /// Measures requests.
    pub durations: RequestDurations,
}

impl Endpoint {
    fn options(&self) -> Guard<Arc<HttpOptions>> {
        self.options.load()
    }
}
