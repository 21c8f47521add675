//! Opaque tokens, judged by their issuer (RFC 7662).

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use oauth2::{
    AccessToken, AsyncHttpClient, AuthType, Client, ClientId, ClientSecret, ExtraTokenFields,
    HttpRequest, HttpResponse, IntrospectionUrl, RequestTokenError, StandardRevocableToken,
    StandardTokenIntrospectionResponse, TokenIntrospectionResponse,
    basic::{BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenResponse, BasicTokenType},
};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{
    AuthError, Denied,
    fetch::{FetchError, Fetcher},
    jwt::{LEEWAY, Rules},
};
use crate::clock::Timestamp;

/// How many tokens are asked about at once; more wait. Anybody can make up
/// tokens, and each costs the issuer a request.
const MOST_AT_ONCE: usize = 32;
/// When a client may come back if the issuer does not answer.
const RETRY: Duration = Duration::from_secs(5);

/// A word that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Hides a word.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Asks an issuer about tokens.
#[derive(Debug)]
pub(super) struct Introspection {
    fetcher: Fetcher,
    client: String,
    secret: Secret,
    read_ahead: Arc<Semaphore>,
}

/// What an issuer said of an active token, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) subject: Option<String>,
    pub(super) client: Option<String>,
    pub(super) scopes: String,
    pub(super) groups: Vec<String>,
    pub(super) expires: Option<Timestamp>,
}

/// What the crate's own type of response leaves out.
#[derive(Debug, Serialize, Deserialize)]
struct More {
    /// The key that the token is bound to (RFC 7800).
    cnf: Option<Value>,
    /// Whatever else there is, such as groups.
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

impl ExtraTokenFields for More {}

type Response = StandardTokenIntrospectionResponse<More, BasicTokenType>;
type Asking = Client<
    BasicErrorResponse,
    BasicTokenResponse,
    Response,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
>;

/// Why there is no usable answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the request cannot be made")]
    Request,
}

impl Introspection {
    pub(super) fn new(fetcher: Fetcher, client: String, secret: Secret) -> Self {
        Self { fetcher, client, secret, read_ahead: Arc::new(Semaphore::new(MOST_AT_ONCE)) }
    }

    /// Asks about a token.
    ///
    /// # Errors
    /// [`AuthError::Invalid`]; [`AuthError::Unavailable`] when there is no
    /// answer, whether or not it is ours to blame.
    pub(super) async fn ask(
        &self,
        url: &Url,
        token: &str,
        rules: &Rules,
        now: Timestamp,
    ) -> Result<Active, AuthError> {
        let unavailable = |why: &str| {
            let reason = format!("introspection at {url}: {why}");
            tracing::warn!(reason, "a token cannot be judged");
            AuthError::Unavailable { reason, retry_after: RETRY }
        };
        let _permit = self.read_ahead.acquire().await.map_err(|_| unavailable("closed"))?;
        let endpoint = IntrospectionUrl::new(url.to_string());
        let endpoint = endpoint.map_err(|_| unavailable("it is no URL"))?;
        let client = Asking::new(ClientId::new(self.client.clone()))
            .set_client_secret(ClientSecret::new(self.secret.0.clone()))
            .set_auth_type(AuthType::BasicAuth)
            .set_introspection_url(endpoint);
        let token = AccessToken::new(token.to_owned());
        let asked = client.introspect(&token).set_token_type_hint("access_token");
        match asked.request_async(&Status(&self.fetcher)).await {
            Ok(response) => Ok(check(&response, rules, now)?),
            // What the answer says is not repeated: it may have the token in it.
            Err(RequestTokenError::Request(failure)) => Err(unavailable(&failure.to_string())),
            Err(RequestTokenError::ServerResponse(_)) => Err(unavailable("it refuses")),
            Err(_) => Err(unavailable("its answer cannot be read")),
        }
    }
}

/// Sends requests for `oauth2`. Whatever is not 200 is no answer: to that
/// crate, a 503 or a 400 with a body in JSON would be the authorization
/// server's verdict.
struct Status<'a>(&'a Fetcher);

impl<'c> AsyncHttpClient<'c> for Status<'_> {
    type Error = Failure;
    type Future = BoxFuture<'c, Result<HttpResponse, Failure>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        self.send(request).boxed()
    }
}

impl Status<'_> {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Failure> {
        let request = reqwest::Request::try_from(request).map_err(|_| Failure::Request)?;
        let (status, body) = self.0.send(request).await?;
        if status != 200 {
            return Err(FetchError::Status(status).into());
        }
        let mut response = HttpResponse::new(body);
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

/// Active is not enough: it must be an access token, and ours. A refresh
/// token is active, too, but is for nobody but its issuer.
fn check(response: &Response, rules: &Rules, now: Timestamp) -> Result<Active, Denied> {
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
    let time = |at: chrono::DateTime<chrono::Utc>| {
        Timestamp::from_millis(u64::try_from(at.timestamp_millis()).unwrap_or(0))
    };
    let expires = response.exp().map(time);
    if expires.is_some_and(|expires| now >= expires.saturating_add(LEEWAY)) {
        return Err(Denied::Expired);
    }
    let begins = [response.nbf(), response.iat()];
    if begins.into_iter().flatten().any(|at| time(at) > now.saturating_add(LEEWAY)) {
        return Err(Denied::NotYet);
    }
    let scopes = response.scopes().into_iter().flatten().map(|scope| scope.as_str());
    Ok(Active {
        subject: response.sub().filter(|sub| !sub.is_empty()).map(str::to_owned),
        client: response.client_id().map(|client| client.to_string()),
        scopes: scopes.collect::<Vec<_>>().join(" "),
        groups: rules.groups(&response.extra_fields().rest),
        expires,
    })
}
