//! The console: pages at which people see, share and delete what they have stored. A login gives a
//! browser a session; the pages then call the same tools as other clients, as the same identity.

mod access;
mod calls;
mod cookie;
mod events;
mod files;
mod login;
mod oidc;
mod operator;
mod origin;
mod owners;
mod pending;
mod places;
mod session_key;
mod sessions;
mod traffic;

use std::sync::Arc;

use axum::{Router, response::Response, routing};
use http::StatusCode;
use larder_runtime::{clock::Clock, random::Random};
use larder_store::vault::Slots;
use serde_json::json;
use tokio::sync::Semaphore;

pub use self::oidc::OidcLogin;
pub use self::sessions::SessionOptions;
use self::{cookie::Cookies, sessions::Sessions};
use super::{Endpoint, error::json_response};

/// The console of a server.
#[derive(Debug)]
pub struct Console {
    /// The path of its pages, without a trailing slash.
    path: String,
    /// The origin of `server.public_url`, if that is set.
    public_origin: Option<String>,
    /// Whether this server itself serves HTTPS.
    is_tls: bool,

    cookies: Cookies,
    sessions: Sessions,
    samples: traffic::Samples,
    /// The turn to delete what an owner has stored.
    purging: Arc<Semaphore>,
    /// The login at an authorization server, if there is one besides that by a token.
    oidc: Option<OidcLogin>,
}

impl Console {
    /// The pages below `path`, for people who log in with a token.
    pub fn new(
        path: &str,
        public_origin: Option<String>,
        is_tls: bool,
        sessions: SessionOptions,
        slots: Arc<dyn Slots>,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Self {
        let samples = traffic::Samples::new(Arc::clone(&clock));
        let sessions = Sessions::new(sessions, slots, clock, random);
        let is_public_https =
            public_origin.as_deref().is_some_and(|origin| origin.starts_with("https:"));

        Self {
            path: path.to_owned(),
            cookies: Cookies::new(path, is_tls || is_public_https),
            public_origin,
            is_tls,
            sessions,
            samples,
            purging: Arc::new(Semaphore::new(1)),
            oidc: None,
        }
    }

    /// Offers the login at an authorization server, too.
    #[must_use]
    pub fn with_oidc(self, oidc: Option<OidcLogin>) -> Self {
        Self { oidc, ..self }
    }

    /// Connects to the authorization server of `[console.oidc]`, for an operator.
    pub async fn check_oidc(&self) -> Option<Result<String, String>> {
        Some(self.oidc.as_ref()?.check().await)
    }

    /// The host of the authorization server at which people log in, if there is one.
    fn login_host(&self) -> Option<String> {
        self.oidc.as_ref().map(OidcLogin::host)
    }

    /// Where browsers come back to from the authorization server.
    fn callback_path(&self) -> String {
        format!("{}/callback", self.path)
    }
}

/// The routes of the console, if there is one.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    let Some(console) = &endpoint.console else { return Router::new() };
    let at = |name: &str| format!("{}/{name}", console.path);

    Router::new()
        .route(&console.path, routing::get(files::redirect))
        .route(&at(""), routing::get(files::page))
        .route(&at("app.js"), routing::get(files::script))
        .route(&at("app.css"), routing::get(files::style))
        .route(&at("session"), routing::get(login::session))
        .route(&at("login"), routing::post(login::log_in))
        .route(&at("logout"), routing::post(login::log_out))
        .route(&at("rpc"), routing::post(calls::call))
        .route(&at("upstreams"), routing::get(operator::upstreams))
        .route(&at("traffic"), routing::get(traffic::traffic))
        .route(&at("owners"), routing::get(owners::list))
        .route(&at("purge"), routing::post(owners::purge))
        .route(&at("events"), routing::get(events::follow))
        .route(&at("oidc"), routing::post(oidc::begin))
        .route(&console.callback_path(), routing::get(oidc::callback))
}

/// The console of an endpoint whose routes it has.
fn console(endpoint: &Endpoint) -> &Console {
    endpoint.console.as_ref().expect("its routes exist only with a console")
}

/// A refused request of a page.
fn problem(status: StatusCode, text: &str) -> Response {
    let body = json!({ "error": { "message": text } });
    json_response(status, body.to_string().into())
}
