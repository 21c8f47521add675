//! Logins at upstreams over HTTP: each principal has tokens of its own (2026-07-28,
//! authorization). They are sealed in the vault and sent to nobody but the upstream and its
//! authorization server.

mod challenge;
mod client;
mod discovery;
mod flow;
mod login_account;
mod record;
mod tokens;

use std::sync::{Arc, OnceLock};

use larder_oauth::{Fetcher, safe_url};
use larder_server::registry::{LoginProblem, LoginSite};
use reqwest::Url;
use tokio::sync::watch;

pub(super) use self::{
    flow::provided,
    login_account::{LoginAccount, LoginNeeded, Refused},
};
use super::settings::OAuth;

/// The HTTP clients, by where a URL comes from.
struct Fetchers {
    /// For the configured authorization server, and what its metadata names.
    configured: Fetcher,
    /// For what the upstream names.
    named: Fetcher,
}

/// The logins at one upstream.
pub(super) struct Login {
    name: Arc<str>,
    /// The URL of the upstream.
    url: Url,
    settings: OAuth,
    fetchers: Fetchers,

    /// Set once, before the first call.
    site: OnceLock<LoginSite>,
    /// Counts logins and logouts on this instance.
    changed: watch::Sender<u64>,
}

impl Fetchers {
    fn new(upstream: &Url) -> Result<Self, reqwest::Error> {
        let configured = Fetcher::new()?;
        let named = configured.named_by(upstream.clone())?;
        Ok(Self { configured, named })
    }
}

impl Login {
    /// `None` if no requests can be sent, which is logged.
    pub(super) fn new(name: &str, url: &str, settings: &OAuth) -> Option<Self> {
        let opened = safe_url(url)
            .map_err(|problem| format!("the upstream's URL: {problem}"))
            .and_then(|url| Ok((Fetchers::new(&url).map_err(|error| error.to_string())?, url)));
        let opened = opened.inspect_err(|problem| {
            tracing::error!(upstream = name, problem, "no requests can be sent");
        });
        let (fetchers, url) = opened.ok()?;

        Some(Self {
            name: name.into(),
            url,
            settings: settings.clone(),
            fetchers,
            site: OnceLock::new(),
            changed: watch::Sender::new(0),
        })
    }

    /// The HTTP client for an authorization server.
    fn fetcher(&self, issuer: &str) -> &Fetcher {
        let is_configured = self.settings.issuer.configured() == Some(issuer);
        if is_configured { &self.fetchers.configured } else { &self.fetchers.named }
    }

    /// Gives it what logins need.
    pub(super) fn open(&self, site: &LoginSite) {
        let _ = self.site.set(site.clone());
    }

    fn site(&self) -> Result<&LoginSite, LoginProblem> {
        self.site.get().ok_or_else(|| {
            let problem = "this server has no URL for logins (server.public_url)";
            LoginProblem::Unavailable(problem.to_owned())
        })
    }
}
