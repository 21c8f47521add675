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

use tokio::sync::watch;

pub(super) use self::{
    client::ClientIdentity,
    flow::provided,
    login_account::{LoginAccount, LoginNeeded, Refused},
};
use super::settings::OAuth;
use crate::{
    auth::Fetcher,
    registry::{LoginProblem, LoginSite},
};

/// The logins at one upstream.
pub(super) struct Login {
    name: Arc<str>,
    /// The URL of the upstream.
    url: String,
    settings: OAuth,
    fetcher: Fetcher,
    /// Set once, before the first call.
    site: OnceLock<LoginSite>,
    /// Counts logins and logouts on this instance.
    changed: watch::Sender<u64>,
}

impl Login {
    /// `None` if no requests can be sent, which is logged.
    pub(super) fn new(name: &str, url: &str, settings: &OAuth) -> Option<Self> {
        let fetcher = Fetcher::new().inspect_err(|error| {
            tracing::error!(upstream = name, %error, "no requests can be sent");
        });
        Some(Self {
            name: name.into(),
            url: url.to_owned(),
            settings: settings.clone(),
            fetcher: fetcher.ok()?,
            site: OnceLock::new(),
            changed: watch::Sender::new(0),
        })
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
