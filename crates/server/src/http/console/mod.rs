//! The console: pages at which people see, share and delete what they have stored. A login gives a
//! browser a session; the pages then call the same tools as other clients, as the same identity.

mod access;
pub(super) mod calls;
mod cookie;
pub(super) mod events;
pub(super) mod files;
pub(super) mod login;
pub(super) mod oidc;
pub(super) mod operator;
mod origin;
pub(super) mod owners;
mod pending;
mod places;
mod session_key;
mod sessions;
pub(super) mod traffic;

use std::sync::Arc;

use http::StatusCode;
use larder_runtime::{clock::Clock, random::Random};
use larder_store::vault::Slots;
use tokio::sync::Semaphore;

pub use self::oidc::OidcLogin;
pub use self::sessions::SessionOptions;
use self::{cookie::Cookies, sessions::Sessions};
use super::{Endpoint, error::HttpError, problem::Problem};

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

    /// Whether people may log in with a token.
    fn takes_tokens(&self) -> bool {
        self.oidc.as_ref().is_none_or(OidcLogin::takes_tokens)
    }

    /// The path of the pages, without a trailing slash.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path to which the authorization server sends browsers back.
    pub(super) fn callback_path(&self) -> String {
        format!("{}/callback", self.path)
    }
}

/// The console of an endpoint whose routes it has.
fn console(endpoint: &Endpoint) -> &Console {
    endpoint.console.as_ref().expect("its routes exist only with a console")
}

/// A refused request of the page.
fn problem(status: StatusCode, text: impl Into<String>) -> HttpError {
    Problem::new(status, text).into()
}
