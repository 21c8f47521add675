//! [`LoginAccount`]: the access token of one principal, by its login.

use std::{fmt, sync::Arc, time::Duration};

use larder_oauth::{Identity, client::RefreshLease};
use larder_server::registry::{LoginProblem, LoginSite};
use parking_lot::Mutex;
use reqwest::{StatusCode, header::HeaderMap};
use tokio::{sync::watch, time::Instant};

use super::{
    Login,
    challenge::Challenge,
    record::{LoginRecord, LoginSlot},
    tokens::{TokenError, TokenSource, Tokens},
};

/// How long before its end a token is refreshed.
const MARGIN: Duration = Duration::from_secs(30);
/// How long a token is used before it is read again: until then a logout on another instance
/// has no effect here.
const CACHED: Duration = Duration::from_secs(10);
/// How long one instance may take to refresh, before another one tries.
const LEASE: Duration = Duration::from_secs(15);
/// The interval at which a change by others is looked for.
const POLL: Duration = Duration::from_millis(100);
/// How long a call waits for a login that its user has agreed to.
const LOGIN_WAIT: Duration = Duration::from_secs(45);

/// The access token of one principal.
pub(crate) struct LoginAccount {
    login: Arc<Login>,
    identity: Identity,
    cached: Mutex<Option<Cached>>,
}

#[derive(Clone)]
struct Cached {
    tokens: Arc<Tokens>,
    read: Instant,
    /// Tokens may have changed since.
    generation: u64,
}

/// A login is necessary, or one with more scopes.
pub(crate) struct LoginNeeded {
    name: Arc<str>,
    /// The page that begins the login.
    pub(crate) url: String,
    /// The scopes that the tokens lack.
    scopes: Vec<String>,
    /// The access token that was refused.
    refused: Option<String>,

    slot: LoginSlot,
    changes: watch::Receiver<u64>,
}

/// The step after a refused request.
pub(crate) enum Refused {
    /// Send it again: there is another token.
    Retry,
    Login(Arc<LoginNeeded>),
    /// The refusal has another reason.
    Other,
}

impl LoginAccount {
    pub(crate) fn new(login: &Arc<Login>, identity: &Identity) -> Self {
        Self { login: Arc::clone(login), identity: identity.clone(), cached: Mutex::default() }
    }

    /// The upstream's name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.login.name
    }

    /// Sees each login and logout on this instance.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.login.changed.subscribe()
    }

    fn site(&self) -> Result<&LoginSite, LoginProblem> {
        self.login.site()
    }

    fn slot(&self) -> Result<LoginSlot, LoginProblem> {
        Ok(LoginSlot::new(self.site()?, &self.login.name, self.identity.owner()))
    }

    /// The access token, refreshed if necessary; `None` without a login.
    pub(crate) async fn token(&self) -> Result<Option<String>, LoginProblem> {
        let generation = *self.login.changed.borrow();
        let now = self.site()?.clock.now().saturating_add(MARGIN);
        let is_current = |tokens: &Tokens| tokens.expires.is_none_or(|expires| expires > now);

        let cached = self.cached.lock().clone();
        if let Some(cached) = cached
            && cached.generation == generation
            && cached.read.elapsed() < CACHED
            && is_current(&cached.tokens)
        {
            return Ok(Some(cached.tokens.access.clone()));
        }

        let tokens = match self.slot()?.read().await?.0.tokens {
            Some(tokens) if is_current(&tokens) || tokens.refresh.is_none() => Some(tokens),
            Some(tokens) => self.refresh(&tokens.access).await?,
            None => None,
        };

        let access = tokens.as_ref().map(|tokens| tokens.access.clone());
        *self.cached.lock() = tokens.map(|tokens| Cached {
            tokens: Arc::new(tokens),
            read: Instant::now(),
            generation,
        });
        Ok(access)
    }

    /// New tokens in place of the stale ones. Of all callers on all instances, one asks for them.
    async fn refresh(&self, stale: &str) -> Result<Option<Tokens>, LoginProblem> {
        let slot = self.slot()?;
        let deadline = Instant::now() + LEASE;

        loop {
            let (mut record, version) = slot.read().await?;
            let Some(tokens) = record.tokens.clone().filter(|tokens| tokens.access == stale) else {
                return Ok(record.tokens);
            };
            if tokens.refresh.is_none() {
                return Ok(None);
            }

            let is_free = record.refreshing_until.take(slot.now(), LEASE);
            if is_free && slot.replace(version, &record).await? {
                return self.refresh_leased(&slot, tokens).await;
            }

            if Instant::now() >= deadline {
                let problem = "another instance does not finish to refresh its token";
                return Err(LoginProblem::Unavailable(problem.to_owned()));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn refresh_leased(
        &self,
        slot: &LoginSlot,
        stale: Tokens,
    ) -> Result<Option<Tokens>, LoginProblem> {
        let fetcher = self.login.fetcher(&stale.source.issuer);
        let refreshed = stale.refreshed(fetcher, slot.now()).await;
        let (tokens, problem) = match refreshed {
            Ok(tokens) => (Some(tokens), None),
            Err(TokenError::Refused(problem)) => {
                tracing::info!(upstream = %self.login.name, problem, "a login has ended");
                (None, None)
            }
            Err(TokenError::UnknownClient) => {
                let TokenSource { issuer, client, .. } = &stale.source;
                self.login.forget_client(self.site()?, issuer, client).await;
                (None, None)
            }
            Err(TokenError::Unavailable(problem)) => {
                tracing::warn!(upstream = %self.login.name, problem, "a token cannot be refreshed");
                (Some(stale.clone()), Some(problem))
            }
        };

        let is_ours = |record: &LoginRecord| {
            record.tokens.as_ref().is_some_and(|tokens| tokens.access == stale.access)
        };
        let before = slot.change(|record| {
            let is_ours = is_ours(&record);
            let refreshing_until = RefreshLease::default();
            is_ours.then(|| LoginRecord { tokens: tokens.clone(), refreshing_until, ..record })
        });
        let before = before.await?;

        match problem {
            Some(problem) => Err(LoginProblem::Unavailable(problem)),
            None if is_ours(&before) => Ok(tokens),
            // A logout or another login came first.
            None => {
                if let Some(tokens) = tokens {
                    let _ = tokens.revoke(fetcher).await;
                }
                Ok(before.tokens)
            }
        }
    }

    /// The step after a response with status 401 or 403 to a request with this token.
    /// `may_refresh`: the request was not sent again yet.
    pub(crate) async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        used: Option<&str>,
        may_refresh: bool,
    ) -> Result<Refused, LoginProblem> {
        let challenge = Challenge::of(headers);
        let is_step_up = status == StatusCode::FORBIDDEN
            && challenge.error.as_deref() == Some("insufficient_scope");
        if status != StatusCode::UNAUTHORIZED && !is_step_up {
            return Ok(Refused::Other);
        }

        let slot = self.slot()?;
        let granted = match (used, is_step_up) {
            (Some(used), false) if may_refresh => {
                let refreshed = self.refresh(used).await?;
                *self.cached.lock() = None;
                if refreshed.is_some_and(|tokens| tokens.access != used) {
                    return Ok(Refused::Retry);
                }
                Vec::new()
            }
            (_, true) => slot.read().await?.0.tokens.map(|t| t.scopes).unwrap_or_default(),
            (_, false) => Vec::new(),
        };

        if is_step_up && challenge.scopes.iter().all(|scope| granted.contains(scope)) {
            return Ok(Refused::Other);
        }

        let lacking: Vec<String> = if is_step_up { challenge.scopes.clone() } else { Vec::new() };
        let mut scopes = granted;
        scopes.extend(challenge.scopes);
        let url = self.login.link_with(self.site()?, &self.identity, scopes, challenge.metadata);

        Ok(Refused::Login(Arc::new(LoginNeeded {
            name: Arc::clone(&self.login.name),
            url,
            scopes: lacking,
            refused: used.map(str::to_owned),
            slot,
            changes: self.changes(),
        })))
    }
}

impl LoginNeeded {
    /// Waits until there are other tokens, but not for long. Returns whether there are.
    pub(crate) async fn wait(&self) -> bool {
        let mut changes = self.changes.clone();
        let deadline = Instant::now() + LOGIN_WAIT;

        loop {
            changes.borrow_and_update();
            let tokens = self.slot.read().await.ok().and_then(|(record, _)| record.tokens);
            if tokens.is_some_and(|tokens| Some(&tokens.access) != self.refused.as_ref()) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            // Polls, because the callback may reach another instance.
            let _ = tokio::time::timeout(10 * POLL, changes.changed()).await;
        }
    }
}

impl LoginNeeded {
    /// The key of the question to the user, the same whenever the call runs again.
    pub(crate) fn key(&self) -> String {
        format!("login_{}", self.name)
    }

    /// The reason, without the link.
    pub(crate) fn message(&self) -> String {
        let Self { name, scopes, .. } = self;
        match scopes.as_slice() {
            [] => format!("{name} needs a login"),
            scopes => format!("{name} needs a login with the scopes {}", scopes.join(" ")),
        }
    }
}

impl fmt::Display for LoginNeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message(), self.url)
    }
}

/// Without the URL, by which others could begin the login.
impl fmt::Debug for LoginNeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginNeeded").field("name", &self.name).finish_non_exhaustive()
    }
}
