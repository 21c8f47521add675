//! The login at an authorization server: authorization code with PKCE. The access token becomes
//! that of the session, as if the person had entered it.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use larder_login::{
    AccessClient, ErrorCode, LoginServer, Parameters, Problem, RateLimit, Redemption,
    ResponseIssuer,
};
use larder_oauth::{
    AuthError,
    client::{AuthorizationRequest, AuthorizationResponse, LoginState, ResponseError, Verifier},
};
use larder_protocol::quote::{quoted, shortened};
use larder_runtime::{clock::Clock, random::Random};
use larder_store::vault::Slots;
use serde_json::json;

use super::{
    Console, access, console,
    login::{self, own_page},
    pending::{PendingKey, PendingLogin, PendingLogins, TTL},
    problem,
    session_key::SessionKey,
};
use crate::http::{
    Endpoint,
    error::{ErrorPage, HttpError, Reply},
    head::Head,
    pages::{escape, page},
    response::value_response,
    route::Incoming,
};

/// Begun and finished logins of one address in a minute.
const PER_MINUTE: u32 = 120;

/// The authorization server at which people log in.
#[derive(Debug)]
enum AuthorizationServer {
    /// That of `[console.oidc]`.
    Elsewhere(Box<AccessClient>),
    /// This server itself (`auth.mode = "login"`), in front of its provider.
    Here(Arc<LoginServer>),
}

impl AuthorizationServer {
    async fn check(&self) -> Result<String, String> {
        match self {
            Self::Elsewhere(client) => client.check().await,
            Self::Here(server) => server.check_provider().await,
        }
    }

    /// The host of the server, or the name of the provider, for people.
    fn name(&self) -> String {
        match self {
            Self::Elsewhere(client) => client.host(),
            Self::Here(server) => server.console_provider().unwrap_or_default().to_owned(),
        }
    }

    /// The page at which the person logs in.
    async fn url(&self, request: &AuthorizationRequest<'_>) -> Result<String, Problem> {
        Ok(match self {
            Self::Elsewhere(client) => client.authorization_url(request).await?.into(),
            Self::Here(server) => server.console_url(request)?.into(),
        })
    }

    /// The issuer that the response must name.
    async fn issuer(&self) -> Result<ResponseIssuer, Problem> {
        Ok(match self {
            Self::Elsewhere(client) => client.issuer().await?,
            Self::Here(server) => {
                ResponseIssuer { issuer: Some(server.base_url().to_owned()), is_required: true }
            }
        })
    }

    /// The access token for a code.
    async fn redeem(
        &self,
        redemption: &Redemption<'_>,
        peer: Option<IpAddr>,
    ) -> Result<String, Problem> {
        let Redemption { code, code_verifier, redirect_uri, .. } = *redemption;
        match self {
            Self::Elsewhere(client) => Ok(client.redeem(redemption).await?),
            Self::Here(server) => {
                server.console_token(code, code_verifier, redirect_uri, peer).await
            }
        }
    }
}

/// Logins at an authorization server.
#[derive(Debug)]
pub struct OidcLogin {
    server: AuthorizationServer,
    /// The origin of `server.public_url`, to which browsers return.
    origin: String,
    pending: PendingLogins,
    limit: RateLimit,
    random: Random,
}

impl OidcLogin {
    /// A login at the authorization server of `client`, which returns to the console at `origin`.
    pub fn new(
        client: AccessClient,
        origin: String,
        slots: Arc<dyn Slots>,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Self {
        Self::at(AuthorizationServer::Elsewhere(Box::new(client)), origin, slots, clock, random)
    }

    /// A login at this server's own authorization server, which returns to the console at `origin`.
    pub fn here(
        server: Arc<LoginServer>,
        origin: String,
        slots: Arc<dyn Slots>,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Self {
        Self::at(AuthorizationServer::Here(server), origin, slots, clock, random)
    }

    fn at(
        server: AuthorizationServer,
        origin: String,
        slots: Arc<dyn Slots>,
        clock: Arc<dyn Clock>,
        random: Random,
    ) -> Self {
        let pending = PendingLogins::new(slots, random.clone());
        Self { server, origin, pending, limit: RateLimit::new(PER_MINUTE, clock), random }
    }

    /// Whether people may have a token of their own to log in with.
    pub(super) fn takes_tokens(&self) -> bool {
        matches!(self.server, AuthorizationServer::Elsewhere(_))
    }

    /// Connects to the authorization server, for an operator. Says what was found.
    ///
    /// # Errors
    /// What does not work.
    pub(super) async fn check(&self) -> Result<String, String> {
        self.server.check().await
    }

    /// The place of the login: the host of the authorization server, or the name of the provider.
    pub(super) fn host(&self) -> String {
        self.server.name()
    }

    /// Ends the login of a session that has ended, if it is a login at this server: nobody has its
    /// tokens any more.
    pub(super) async fn session_ended(&self, token: &str) {
        let AuthorizationServer::Here(server) = &self.server else { return };
        if let Err(problem) = server.end_console_login(token).await {
            tracing::warn!(
                ?problem,
                "the login of an ended session of the console is kept until it expires"
            );
        }
    }

    fn redirect_uri(&self, console: &Console) -> String {
        format!("{}{}", self.origin, console.callback_path())
    }

    /// Stores a login. Returns the page at which it goes on, and what its browser keeps.
    async fn begin(
        &self,
        console: &Console,
        before: Option<SessionKey>,
        peer: Option<IpAddr>,
    ) -> Result<(String, PendingKey), Problem> {
        self.limit.check(peer)?;

        let login = PendingLogin {
            state: LoginState::new(&self.random),
            nonce: self.random.secret(),
            verifier: Verifier::new(&self.random),
            before: before.map(|key| key.text()),
        };

        let request = AuthorizationRequest {
            redirect_uri: &self.redirect_uri(console),
            state: login.state.as_str(),
            nonce: Some(&login.nonce),
            code_challenge: &login.verifier.challenge(),
        };

        let url = self.server.url(&request).await?;
        let Some(key) = self.pending.create(&login).await? else {
            tracing::warn!("a login at the console is refused: too many have not ended");
            return Err(Problem::Limited(TTL / 10));
        };

        Ok((url, key))
    }

    /// The login that a browser comes back from, and its access token.
    async fn finish(
        &self,
        console: &Console,
        query: &[u8],
        key: Option<PendingKey>,
        peer: Option<IpAddr>,
    ) -> Result<(PendingLogin, String), Problem> {
        self.limit.check(peer)?;

        let parameters = Parameters::read(query)?;
        let state = parameters.get("state").unwrap_or_default();

        let pending = match key {
            Some(key) => self.pending.take(&key, state).await?,
            None => None,
        };
        let pending = pending.ok_or_else(|| {
            let text = "This login was not begun in this browser, is over, or took too long. Begin \
                        again at the console.";
            Problem::Refused(ErrorCode::InvalidRequest, text.to_owned())
        })?;

        let response = AuthorizationResponse::read(|name| parameters.get(name));
        let code = response.code(&self.server.issuer().await?).map_err(refused)?;

        let redemption = Redemption {
            code,
            code_verifier: pending.verifier.reveal(),
            nonce: &pending.nonce,
            redirect_uri: &self.redirect_uri(console),
        };

        let token = self.server.redeem(&redemption, peer).await?;
        Ok((pending, token))
    }
}

/// The problem of a response without a code, for the person at the browser.
fn refused(error: ResponseError<'_>) -> Problem {
    let ResponseError::Refused { error, description } = error else {
        return Problem::Refused(ErrorCode::InvalidRequest, error.to_string());
    };

    // Both texts come from the browser and may be long.
    let shown = &*shortened(error);
    let description = &*shortened(description.unwrap_or_default());
    tracing::warn!(error = shown, description, "a login at the console is refused (console.oidc)");

    let text = format!(
        "The authorization server refuses the login: {}. Log in again, or ask the operator of \
         this server.",
        quoted(error)
    );
    Problem::Refused(ErrorCode::AccessDenied, text)
}

/// Begins a login. The page then goes to the URL in the response.
pub(in crate::http) async fn begin(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let page = own_page(&endpoint, &head)?;
    let console = console(&endpoint);
    let oidc = console.oidc.as_ref().ok_or_else(not_configured)?;

    // The cookie of the login is for this origin, so the browser has to come back to it.
    if !page.is_public {
        let text = format!("Open the console at {}{}/ to log in.", oidc.origin, console.path);
        return Err(problem(StatusCode::FORBIDDEN, text));
    }

    let (url, key) = oidc.begin(console, console.key(&head), head.peer()).await?;
    let mut response = value_response(StatusCode::OK, &json!({ "url": url }));
    console.set_pending(response.headers_mut(), &key.text(), TTL);
    Ok(response)
}

/// The authorization server sends the browser back.
pub(in crate::http) async fn callback(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let console = console(&endpoint);
    let oidc = console.oidc.as_ref().ok_or_else(not_configured)?;

    let key = console.pending(&head);
    let finished = oidc.finish(console, head.query().as_bytes(), key, head.peer()).await;
    let (pending, token) = finished.map_err(|error| problem_page(console, &error))?;
    log_in(&endpoint, &head, pending, &token).await
}

/// Begins the session. Its cookie would not be sent after a redirect, because another site's page
/// began that navigation; it is after one that a page of this server begins.
async fn log_in(endpoint: &Endpoint, head: &Head, pending: PendingLogin, token: &str) -> Reply {
    let console = console(endpoint);
    let verified = access::verify(endpoint, head, token).await;
    let identity = verified.map_err(|error| not_accepted(console, &error))?;

    // The permit is held until there is a response.
    let _permit = access::count(endpoint, head, &identity)
        .map_err(|limited| problem_page(console, &Problem::Limited(limited.retry_after)))?;

    let before = pending.before.as_deref().and_then(SessionKey::parse);
    let (key, session) = login::replace(endpoint, before, &identity, token).await?;

    let path = format!("{}/", console.path);
    let body = format!("<p>Go on to <a href=\"{}\">the console</a>.</p>", escape(&path));
    let mut response = page(StatusCode::OK, "You are logged in", &body);

    let headers: &mut HeaderMap = response.headers_mut();
    if let Ok(refresh) = HeaderValue::try_from(format!("0; url={path}")) {
        headers.insert(header::REFRESH, refresh);
    }
    console.remove_pending(headers);
    console.set_key(headers, &key, console.sessions.lifetime_of(&session));
    Ok(response)
}

fn not_accepted(console: &Console, error: &AuthError) -> HttpError {
    match error {
        AuthError::Unavailable { retry_after, .. } => {
            problem_page(console, &Problem::Unavailable(*retry_after))
        }
        error => {
            let text = format!(
                "This server does not accept the access token of the authorization server: \
                 {error}. The operator of this server can find out why: it must be for \
                 server.public_url, and of an issuer in auth.issuers."
            );
            problem_page(console, &Problem::Refused(ErrorCode::AccessDenied, text))
        }
    }
}

fn not_configured() -> HttpError {
    problem(StatusCode::NOT_FOUND, "This console has no login but by a token.")
}

/// A page with the way back to the console.
fn problem_page(console: &Console, error: &Problem) -> HttpError {
    let title = match error {
        Problem::Refused(..) => "No login",
        Problem::Limited(_) | Problem::Busy(..) | Problem::Unavailable(_) => "Not now",
    };
    let path = escape(&format!("{}/", console.path));
    let text = error.to_string();
    let html = format!("<p>{}</p><p><a href=\"{path}\">Back to the console</a></p>", escape(&text));

    let error = HttpError::from(error.clone());
    HttpError::Page(Box::new(ErrorPage {
        status: error.status(),
        title,
        text,
        html,
        retry_after: error.retry_after(),
    }))
}
