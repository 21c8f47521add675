//! [`DirectLogin`]: the login of a person at a server, whose browser comes back to this machine.

use std::{fmt, sync::Arc};

use larder_oauth::Identity;
use larder_server::registry::{LoginProblem, LoginRedirect, LoginSite, ProviderLogin};
use reqwest::Url;

use crate::{
    login::{Login, LoginAccount},
    settings::OAuth,
};

/// A login at a server that wants one.
pub struct DirectLogin {
    login: Arc<Login>,
    /// The sealed purpose of the login, which the server has put into its link.
    ticket: String,
}

impl DirectLogin {
    /// `link` is the page that begins the login in a browser; its ticket is what is needed here.
    pub(super) fn new(login: &Arc<Login>, link: &str) -> Self {
        let ticket = Url::parse(link).ok().and_then(|url| {
            let mut pairs = url.query_pairs();
            pairs.find(|(name, _)| name == "ticket").map(|(_, value)| value.into_owned())
        });
        Self { login: Arc::clone(login), ticket: ticket.unwrap_or_default() }
    }

    /// Begins the login: the page to open, and what ties the response to this login.
    ///
    /// # Errors
    /// The authorization server cannot be used.
    pub async fn begin(&self) -> Result<LoginRedirect, LoginProblem> {
        self.login.begin(&self.ticket).await
    }

    /// Ends the login with the parameters with which the browser has come back.
    ///
    /// # Errors
    /// The login was refused, or the response is not that of this login.
    pub async fn finish(
        &self,
        parameters: Vec<(String, String)>,
        cookie: &str,
    ) -> Result<(), LoginProblem> {
        self.login.finish(parameters, Some(cookie)).await
    }
}

/// The access token of the person's login at a server, refreshed if necessary; `None` without a
/// login. `name` and `url` are those of its settings.
///
/// # Errors
/// The login cannot be read or refreshed now.
pub async fn access_token(
    name: &str,
    url: &str,
    site: &LoginSite,
) -> Result<Option<String>, LoginProblem> {
    let Some(login) = Login::new(name, url, &OAuth::default()) else { return Ok(None) };
    login.open(site);
    LoginAccount::new(&Arc::new(login), &Identity::local()).token().await
}

/// Forgets the person's login at a server, and revokes its tokens.
///
/// # Errors
/// The login cannot be forgotten, or the tokens not revoked.
pub async fn log_out(name: &str, url: &str, site: &LoginSite) -> Result<(), LoginProblem> {
    let Some(login) = Login::new(name, url, &OAuth::default()) else { return Ok(()) };
    login.open(site);
    login.log_out(Identity::local().owner()).await
}

/// Without the ticket.
impl fmt::Debug for DirectLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectLogin(…)")
    }
}
