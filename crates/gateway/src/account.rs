//! [`Account`]: the access token of a caller, for the requests of one connection.

use std::sync::Arc;

use larder_oauth::Identity;
use reqwest::{StatusCode, header::HeaderMap};
use tokio::sync::watch;

use super::{
    error::UpstreamError,
    login::{LoginAccount, Refused},
    shared::Access,
    token_exchange::ExchangeAccount,
};

/// The access token of a caller.
pub(super) enum Account {
    /// Of the caller's login at the upstream.
    Login(LoginAccount),
    /// Exchanged for the token that the caller presents.
    Exchange(ExchangeAccount),
}

impl Account {
    /// `None` for an upstream to which no caller's token is sent.
    pub(super) fn of(access: &Access, identity: &Identity) -> Option<Self> {
        match access {
            Access::Open => None,
            Access::Login(login) => Some(Self::Login(LoginAccount::new(login, identity))),
            Access::Exchange(exchange) => {
                Some(Self::Exchange(ExchangeAccount::new(exchange, identity)))
            }
        }
    }

    /// A caller of the connection, with its credentials of now. Returns whether they are others
    /// than before.
    pub(super) fn present(&self, identity: &Identity) -> bool {
        match self {
            Self::Login(_) => false,
            Self::Exchange(account) => account.present(identity),
        }
    }

    /// Sees each login and logout on this instance.
    pub(super) fn logins(&self) -> Option<watch::Receiver<u64>> {
        match self {
            Self::Login(account) => Some(account.changes()),
            Self::Exchange(_) => None,
        }
    }

    /// The access token for a request. `caller` is whose request it is; `None` for one of Larder's
    /// own. Without a login there is none.
    pub(super) async fn token(
        &self,
        caller: Option<&Identity>,
    ) -> Result<Option<String>, UpstreamError> {
        match self {
            Self::Login(account) => {
                account.token().await.map_err(|problem| no_token(account, &problem))
            }
            Self::Exchange(account) => account.token(caller).await.map(Some),
        }
    }

    /// The step after a response with status 401 or 403 to a request with this token.
    /// `is_first`: the request was not sent again yet.
    pub(super) async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        used: Option<&str>,
        caller: Option<&Identity>,
        is_first: bool,
    ) -> Result<Refused, UpstreamError> {
        match self {
            Self::Login(account) => {
                let refused = account.refused(status, headers, used, is_first).await;
                refused.map_err(|problem| no_token(account, &problem))
            }
            Self::Exchange(_) if status != StatusCode::UNAUTHORIZED => Ok(Refused::Other),
            Self::Exchange(account) if is_first => {
                account.forget(caller, used);
                Ok(Refused::Retry)
            }
            Self::Exchange(account) => Err(account.refused_by_upstream()),
        }
    }
}

/// The token cannot be read or refreshed now.
fn no_token(
    account: &LoginAccount,
    problem: &larder_server::registry::LoginProblem,
) -> UpstreamError {
    UpstreamError::StoredLogin { name: Arc::clone(account.name()), problem: problem.to_string() }
}
