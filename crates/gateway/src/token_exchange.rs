//! [`TokenExchange`]: gets tokens of an upstream in exchange for those that callers present
//! (RFC 8693). The upstream never sees a caller's own token.

mod endpoint;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::FutureExt;
use larder_oauth::{
    Fetcher, Identity, MAX_TOKEN_BYTES, Secret, audit,
    client::{ExchangeGrant, TokenEndpoint, TokenError, Tokens},
};
use larder_protocol::quote::quoted;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use self::endpoint::ExchangeServer;
use super::{error::UpstreamError, settings::TokenExchangeSettings};

/// How long a token is used at most. A caller's token that was revoked is then not exchanged
/// again.
const MAX_AGE: Duration = Duration::from_secs(300);
/// How long before its end a token is exchanged anew.
const MARGIN: Duration = Duration::from_secs(10);
/// How long a refusal holds, so that the authorization server is not asked at each call.
const REFUSED_AGE: Duration = Duration::from_secs(10);
/// How long a failure holds: the callers that wait for the same token do not fail one after another.
const FAILED_AGE: Duration = Duration::from_secs(1);

type TokenDigest = [u8; 32];

/// The exchange of tokens for one upstream.
pub(super) struct TokenExchange {
    name: Arc<str>,
    settings: TokenExchangeSettings,
    server: OnceLock<ExchangeServer>,
    fetcher: Fetcher,
    /// By the digest of the caller's token.
    known: Cache<TokenDigest, Arc<Answer>>,
}

/// The answer of the authorization server.
struct Answer {
    /// The token, or why there is none.
    token: Result<String, Failure>,
    until: Instant,
}

/// Why there is no token.
#[derive(Clone)]
enum Failure {
    /// The authorization server does not exchange it.
    Refused(String),
    /// The authorization server does not respond as it should.
    Unavailable,
}

/// The callers of one connection, who are one principal.
pub(super) struct ExchangeAccount {
    exchange: Arc<TokenExchange>,
    latest: Mutex<Latest>,
}

/// The token that was presented last. Larder's own requests use it.
struct Latest {
    identity: Identity,
    /// Why it was refused: it is not sent again until the next call.
    refused: Option<UpstreamError>,
}

impl TokenExchange {
    /// `None` if no requests can be sent, which is logged.
    pub(super) fn new(name: &str, settings: &TokenExchangeSettings) -> Option<Self> {
        let fetcher = Fetcher::new().inspect_err(|error| {
            tracing::error!(upstream = name, %error, "no requests can be sent");
        });
        Some(Self {
            name: name.into(),
            settings: settings.clone(),
            server: OnceLock::new(),
            fetcher: fetcher.ok()?,
            known: Cache::new(settings.max_tokens),
        })
    }

    /// The token for the upstream. Of all requests with one token, one asks for it.
    async fn token(&self, caller: &Identity) -> Result<String, UpstreamError> {
        let Some(presented) = caller.bearer() else {
            return Err(self.error("there is no token to exchange"));
        };

        let digest = digest(presented.reveal());
        loop {
            match self.known.get_value_or_guard_async(&digest).await {
                Ok(known) if known.until > Instant::now() => {
                    return known.token.clone().map_err(|why| self.failed(&why));
                }
                Ok(stale) => self.forget(&digest, &stale),
                Err(guard) => {
                    let answer = Arc::new(self.ask(presented.reveal(), caller).await);
                    // An error means that the entry was removed meanwhile.
                    let _ = guard.insert(Arc::clone(&answer));
                    return answer.token.clone().map_err(|why| self.failed(&why));
                }
            }
        }
    }

    fn forget(&self, digest: &TokenDigest, answer: &Arc<Answer>) {
        self.known.remove_if(digest, |known| Arc::ptr_eq(known, answer));
    }

    /// Asks the authorization server.
    async fn ask(&self, presented: &str, caller: &Identity) -> Answer {
        self.answer(presented, caller).await.unwrap_or_else(|problem| {
            tracing::warn!(upstream = %self.name, problem, "a token cannot be exchanged");
            Answer { token: Err(Failure::Unavailable), until: Instant::now() + FAILED_AGE }
        })
    }

    /// The answer of the authorization server for a presented token.
    ///
    /// # Errors
    /// Why there is none.
    async fn answer(&self, presented: &str, caller: &Identity) -> Result<Answer, String> {
        // Callers do not wait for each other here: a server that hangs would delay the last caller
        // by the timeouts of all others.
        let server = match self.server.get() {
            Some(server) => server,
            None => {
                let found = ExchangeServer::find(&self.settings, &self.fetcher).await?;
                self.server.get_or_init(|| found)
            }
        };

        let TokenExchangeSettings { audience, resource, scopes, .. } = &self.settings;
        let endpoint = TokenEndpoint {
            fetcher: &self.fetcher,
            url: &server.url,
            client: &server.client,
            resource: resource.as_deref(),
        };
        let grant =
            ExchangeGrant { subject_token: presented, audience: audience.as_deref(), scopes };

        let what = format_args!("exchange of the token for {}", self.name).to_string();
        match endpoint.exchange(&grant).await {
            Ok(tokens) if can_be_sent(&tokens, presented) => {
                audit::allowed(caller, &what);
                let age = tokens.lifetime.unwrap_or(MAX_AGE).min(MAX_AGE);
                let until = Instant::now() + age.saturating_sub(MARGIN).max(MARGIN.min(age));
                Ok(Answer { token: Ok(tokens.access), until })
            }
            Err(TokenError::Refused { code: error, .. }) => {
                let code = quoted(&error);
                audit::refused(caller, &what, &format_args!("{code}: {}", cause(&error)));
                let why = format!("the authorization server does not exchange it ({code})");
                let token = Err(Failure::Refused(why));
                Ok(Answer { token, until: Instant::now() + REFUSED_AGE })
            }
            Ok(_) => Err("the response has no other bearer token".to_owned()),
            Err(TokenError::Unavailable(problem)) => Err(problem),
        }
    }

    fn failed(&self, why: &Failure) -> UpstreamError {
        self.error(match why {
            Failure::Refused(why) => why,
            Failure::Unavailable => {
                "the authorization server that exchanges it does not respond. Try again shortly"
            }
        })
    }

    fn error(&self, problem: &str) -> UpstreamError {
        UpstreamError::TokenExchange { name: Arc::clone(&self.name), problem: problem.to_owned() }
    }
}

/// The setting that an operator may mend.
fn cause(error: &str) -> &'static str {
    match error {
        "invalid_client" => "check upstreams.exchange.client_id and client_secret",
        "unauthorized_client" | "unsupported_grant_type" => {
            "the authorization server does not let this client exchange tokens (upstreams.exchange.client_id)"
        }
        "invalid_target" => "check upstreams.exchange.audience and resource",
        "invalid_scope" => "check upstreams.exchange.scopes",
        _ => "the caller's token is not accepted there",
    }
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}

/// Whether an upstream gets this token. `N_A` is a token that no request can use as it is (RFC
/// 8693, 2.2.1). The caller's own goes to no upstream, even if the authorization server returns it.
fn can_be_sent(tokens: &Tokens, presented: &str) -> bool {
    tokens.is_bearer
        && (1..=MAX_TOKEN_BYTES).contains(&tokens.access.len())
        && tokens.access != presented
}

impl Latest {
    /// Whether it is the token of that identity.
    fn has(&self, identity: &Identity) -> bool {
        let [own, other] = [&self.identity, identity].map(|i| i.bearer().map(Secret::reveal));
        own == other
    }
}

impl ExchangeAccount {
    pub(super) fn new(exchange: &Arc<TokenExchange>, identity: &Identity) -> Self {
        let latest = Latest { identity: identity.clone(), refused: None };
        Self { exchange: Arc::clone(exchange), latest: Mutex::new(latest) }
    }

    /// Larder's own requests use that token from now on. Returns whether it is another one than
    /// before.
    pub(super) fn present(&self, identity: &Identity) -> bool {
        if identity.bearer().is_none() {
            return false;
        }

        let mut latest = self.latest.lock();
        let is_new = !latest.has(identity);
        *latest = Latest { identity: identity.clone(), refused: None };
        is_new
    }

    /// The token for a request of that caller, or for one of Larder's own.
    pub(super) async fn token(&self, caller: Option<&Identity>) -> Result<String, UpstreamError> {
        if let Some(caller) = caller {
            return self.exchange.token(caller).await;
        }

        let identity = {
            let latest = self.latest.lock();
            if let Some(refused) = &latest.refused {
                return Err(refused.clone());
            }
            latest.identity.clone()
        };

        // Without a call, an expired token is not exchanged.
        if identity.invalidated().now_or_never().is_some() {
            return Err(self.exchange.error("it has expired. Call again with a new one"));
        }

        let token = self.exchange.token(&identity).await;
        if let Err(error) = &token
            && self.was_refused(&identity)
        {
            let mut latest = self.latest.lock();
            // Another token may have been presented meanwhile.
            if latest.has(&identity) {
                latest.refused = Some(error.clone());
            }
        }

        token
    }

    /// Whether the authorization server has refused to exchange the token.
    fn was_refused(&self, identity: &Identity) -> bool {
        let known = identity.bearer().and_then(|b| self.exchange.known.get(&digest(b.reveal())));
        known.is_some_and(|answer| matches!(answer.token, Err(Failure::Refused(_))))
    }

    /// The upstream does not accept the token any more.
    pub(super) fn forget(&self, caller: Option<&Identity>, used: Option<&str>) {
        let latest = || self.latest.lock().identity.clone();
        let identity = caller.cloned().unwrap_or_else(latest);
        let Some(presented) = identity.bearer() else { return };

        let digest = digest(presented.reveal());
        if let Some(known) = self.exchange.known.get(&digest)
            && known.token.as_deref().ok() == used
        {
            self.exchange.forget(&digest, &known);
        }
    }

    /// The upstream refuses even a new token.
    pub(super) fn refused_by_upstream(&self) -> UpstreamError {
        self.exchange.error("it refuses the one that was exchanged for it (HTTP 401)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_oauth::{AuthOptions, Authenticator, Hierarchy, Scopes, StaticToken};
    use larder_runtime::clock::{Clock, ManualClock};

    use crate::settings::TokenServer;

    #[test]
    fn only_another_bearer_token_is_sent() {
        let is_sent = |token: &str, is_bearer: bool| {
            let tokens = Tokens {
                access: token.to_owned(),
                is_bearer,
                refresh: None,
                id: None,
                lifetime: None,
                scopes: None,
            };
            can_be_sent(&tokens, "own")
        };

        assert!(is_sent("new", true));

        let long = "x".repeat(MAX_TOKEN_BYTES + 1);
        for (token, is_bearer) in [("own", true), ("new", false), ("", true), (&*long, true)] {
            assert!(!is_sent(token, is_bearer), "{is_bearer}");
        }
    }

    #[tokio::test]
    async fn without_a_call_an_expired_token_is_not_exchanged() {
        let clock = ManualClock::new();
        let minute = Duration::from_secs(60);
        let token = StaticToken {
            name: "alice".into(),
            sha256: digest("first"),
            scopes: Scopes::default(),
            groups: Vec::new(),
            expires: Some(clock.now().saturating_add(minute)),
        };

        let options = AuthOptions::Static { tokens: vec![token], hierarchy: Hierarchy::default() };
        let authenticator = Arc::new(Authenticator::new(options, Arc::new(clock.clone())).unwrap());
        let caller = authenticator.authenticate("first", None).await.unwrap().with_bearer("first");

        let settings = TokenExchangeSettings {
            // Nothing listens at this port.
            server: TokenServer::Endpoint("http://127.0.0.1:1/token".into()),
            client_id: "larder".into(),
            client_secret: "secret".into(),
            audience: None,
            resource: None,
            scopes: Vec::new(),
            max_tokens: 10,
        };

        let exchange = Arc::new(TokenExchange::new("crm", &settings).unwrap());
        let account = ExchangeAccount::new(&exchange, &caller);
        let said = async || account.token(None).await.unwrap_err().to_string();

        assert!(said().await.contains("does not respond"));
        clock.advance(minute);
        assert!(said().await.contains("it has expired. Call again with a new one"));
    }
}
