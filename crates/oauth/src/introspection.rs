//! Introspection of opaque tokens by their issuer (RFC 7662).

use std::{net::IpAddr, time::Duration};

use larder_runtime::clock::Timestamp;
use oauth2::{
    AccessToken, AuthType, Client, ClientId, ClientSecret, ExtraTokenFields, IntrospectionUrl,
    RequestTokenError, StandardRevocableToken, StandardTokenIntrospectionResponse,
    TokenIntrospectionResponse,
    basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenResponse, BasicTokenType},
};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AuthError, Denied, IntrospectionOptions, Secret,
    client::Sender,
    fetch::Fetcher,
    introspection_queue::{Busy, Queue},
    jwt::{LEEWAY, Rules},
};

/// The client's delay before a retry if the issuer does not respond.
const RETRY: Duration = Duration::from_secs(5);
/// The client's delay before a retry if too many requests wait.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// A client of an issuer's introspection endpoint.
#[derive(Debug)]
pub(super) struct Introspection {
    fetcher: Fetcher,
    client: String,
    secret: Secret,
    token_prefix: Option<String>,
    queue: Queue,
}

/// The verified response for an active token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) subject: Option<String>,
    pub(super) client: Option<String>,
    pub(super) scopes: String,
    pub(super) groups: Vec<String>,
    pub(super) expires: Option<Timestamp>,
    pub(super) token_id: Option<String>,
}

/// The members of the response that `oauth2` does not have.
#[derive(Debug, Serialize, Deserialize)]
struct ExtraFields {
    /// The key that the token is bound to (RFC 7800).
    cnf: Option<Value>,
    /// All other members, such as groups.
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

impl ExtraTokenFields for ExtraFields {}

type IntrospectionResponse = StandardTokenIntrospectionResponse<ExtraFields, BasicTokenType>;
type IntrospectionClient = Client<
    BasicErrorResponse,
    BasicTokenResponse,
    IntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
>;

impl Introspection {
    pub(super) fn new(fetcher: Fetcher, options: IntrospectionOptions) -> Self {
        let IntrospectionOptions { client_id, client_secret, token_prefix, limits, .. } = options;
        let queue = Queue::new(limits);
        Self { fetcher, client: client_id, secret: client_secret, token_prefix, queue }
    }

    /// Whether a token can be one of the issuer's.
    pub(super) fn has_prefix(&self, token: &str) -> bool {
        self.token_prefix.as_deref().is_none_or(|prefix| token.starts_with(prefix))
    }

    /// Introspects a token that a peer sent. The URL of the endpoint is awaited within the
    /// limits on requests: to discover it may take requests, too.
    ///
    /// # Errors
    /// [`AuthError::Invalid`]; [`AuthError::Unavailable`] without a usable
    /// response, whatever the cause.
    pub(super) async fn introspect(
        &self,
        url: impl Future<Output = Result<Url, String>>,
        token: &str,
        rules: &Rules,
        now: Timestamp,
        peer: Option<IpAddr>,
    ) -> Result<Active, AuthError> {
        let _slot = self.queue.enter(peer, now).await.map_err(|Busy| {
            let reason = "too many tokens are being introspected".to_owned();
            AuthError::Unavailable { reason, retry_after: BUSY_RETRY }
        })?;

        let unavailable = |reason: String| {
            tracing::warn!(reason, "a token cannot be verified");
            AuthError::Unavailable { reason, retry_after: RETRY }
        };
        let url = url.await.map_err(unavailable)?;
        let unavailable = |why: &str| unavailable(format!("introspection at {url}: {why}"));
        let client = IntrospectionClient::new(ClientId::new(self.client.clone()))
            .set_client_secret(ClientSecret::new(self.secret.reveal().to_owned()))
            .set_auth_type(AuthType::BasicAuth)
            .set_introspection_url(IntrospectionUrl::from_url(url.clone()));
        let token = AccessToken::new(token.to_owned());
        let request = client.introspect(&token).set_token_type_hint("access_token");

        // A 503 or a 400 with a JSON body is no verdict on the token.
        let sender = Sender { fetcher: &self.fetcher, url: &url, grant_type: None, refusals: None };
        match request.request_async(&sender).await {
            Ok(response) => {
                let checked = check(&response, rules, now);
                if let (Err(_), Some(peer)) = (&checked, peer) {
                    self.queue.failed(peer, now);
                }
                Ok(checked?)
            }
            // The response is not logged, because it may contain the token.
            Err(RequestTokenError::Request(failure)) => Err(unavailable(&failure.to_string())),
            Err(RequestTokenError::ServerResponse(_)) => Err(unavailable("it refuses the request")),
            Err(_) => Err(unavailable("its response cannot be parsed")),
        }
    }
}

/// Checks that an active token is an access token for this server. A refresh
/// token is active too, but only its issuer may accept it.
fn check(
    response: &IntrospectionResponse,
    rules: &Rules,
    now: Timestamp,
) -> Result<Active, Denied> {
    if !response.active() {
        return Err(Denied::Inactive);
    }
    if let Some(BasicTokenType::Extension(kind)) = response.token_type()
        && !kind.eq_ignore_ascii_case("access_token")
    {
        return Err(Denied::Type);
    }

    if response.extra_fields().cnf.is_some() {
        return Err(Denied::Bound);
    }
    if response.iss().is_some_and(|iss| iss != rules.issuer) {
        return Err(Denied::Issuer);
    }

    let audiences = response.aud().ok_or(Denied::Claim("aud"))?;
    if !audiences.iter().any(|audience| rules.audiences.contains(audience)) {
        return Err(Denied::Audience);
    }

    let timestamp = |time: chrono::DateTime<chrono::Utc>| {
        Timestamp::from_millis(u64::try_from(time.timestamp_millis()).unwrap_or(0))
    };
    let expires = response.exp().map(timestamp);
    if expires.is_some_and(|expires| now >= expires.saturating_add(LEEWAY)) {
        return Err(Denied::Expired);
    }
    let starts = [response.nbf(), response.iat()];
    if starts.into_iter().flatten().any(|start| timestamp(start) > now.saturating_add(LEEWAY)) {
        return Err(Denied::NotYet);
    }

    let scopes = response.scopes().into_iter().flatten().map(|scope| scope.as_str());
    Ok(Active {
        subject: response.sub().filter(|sub| !sub.is_empty()).map(str::to_owned),
        client: response.client_id().map(|client| client.to_string()),
        scopes: scopes.collect::<Vec<_>>().join(" "),
        groups: rules.groups(&response.extra_fields().rest),
        expires,
        token_id: response.jti().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::future::{pending, ready};

    use futures_util::FutureExt;

    use super::*;
    use crate::{IntrospectionLimits, install_crypto};

    #[tokio::test]
    async fn the_endpoint_is_discovered_within_the_limits_on_requests() {
        install_crypto();
        let introspection = Introspection::new(
            Fetcher::new().unwrap(),
            IntrospectionOptions {
                url: None,
                client_id: "larder".into(),
                client_secret: Secret::new("hush"),
                token_prefix: None,
                limits: IntrospectionLimits { concurrent: 1, waiting: 0, failures_per_minute: 1 },
            },
        );

        let rules = Rules {
            issuer: "https://a.example".into(),
            audiences: Vec::new(),
            any_typ: false,
            scope_claim: "scope".into(),
            groups_claim: "groups".into(),
        };

        let now = Timestamp::from_millis(0);
        let mut first = Box::pin(introspection.introspect(pending(), "a", &rules, now, None));
        assert!((&mut first).now_or_never().is_none());

        let second = introspection.introspect(pending(), "b", &rules, now, None);
        let refused = second.now_or_never().expect("it does not wait for the endpoint");
        let is_busy = |error| matches!(error, AuthError::Unavailable { retry_after, .. } if retry_after == BUSY_RETRY);
        assert!(refused.is_err_and(is_busy));

        drop(first);
        let unknown = ready(Err("no metadata".to_owned()));
        let failed = introspection.introspect(unknown, "c", &rules, now, None).await;
        assert!(
            matches!(failed, Err(AuthError::Unavailable { reason, .. }) if reason == "no metadata")
        );
    }
}
