//! The beginning and the end of a session.

use std::time::Duration;

use axum::body::to_bytes;
use http::StatusCode;
use larder_oauth::{Identity, MAX_TOKEN_BYTES, bearer_token};
use serde_json::json;

use super::{
    Console,
    access::{self, admit, unavailable},
    console,
    operator::is_operator,
    origin::PageOrigin,
    problem,
    session_key::SessionKey,
    sessions::ConsoleSession,
};
use crate::http::{
    Endpoint,
    error::{HttpError, Reply},
    head::{Head, field},
    problem::Problem,
    response::{empty, value_response},
    route::Incoming,
};

/// The most bytes of a form: a token, each byte of which may be encoded by three.
const FORM_BYTES: usize = 3 * MAX_TOKEN_BYTES + 64;
const FORM_TIME: Duration = Duration::from_secs(10);

/// Answers with the person who is logged in.
pub(in crate::http) async fn session(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let console = console(&endpoint);
    let mut body = json!({ "login": endpoint.authenticator.is_required() });
    if let Some(host) = console.login_host() {
        body["oidc"] = host.into();
        if !console.takes_tokens() {
            body["tokens"] = false.into();
        }
    }

    match admit(&endpoint, &head).await {
        Ok(caller) => {
            body["operator"] = is_operator(&caller.identity).into();
            body["user"] = caller.identity.principal().to_string().into();
            body["expires"] = caller.session.map(|(_, session)| session.expires.to_string()).into();
            Ok(value_response(StatusCode::OK, &body))
        }
        // The page shows a login, and the browser forgets a session that has ended.
        Err(error) if error.status() == StatusCode::UNAUTHORIZED => {
            let mut response = value_response(StatusCode::OK, &body);
            console.remove_key(response.headers_mut());
            Ok(response)
        }
        Err(error) => Err(error),
    }
}

/// Begins a session with the token of a form.
pub(in crate::http) async fn log_in(Incoming { endpoint, head, body }: Incoming) -> Reply {
    let page = own_page(&endpoint, &head)?;
    console(&endpoint).may_log_in(&page).map_err(|text| problem(StatusCode::FORBIDDEN, text))?;
    if !endpoint.authenticator.is_required() {
        return Ok(empty(StatusCode::NO_CONTENT));
    }

    // The slot is held until there is a response.
    let _slot = endpoint.forms.take(head.peer()).ok_or_else(|| {
        let text = "Too many logins of this address are in progress. Try again shortly.";
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, text);
        problem.retry_after(Duration::from_secs(1))
    })?;

    let form = tokio::time::timeout(FORM_TIME, to_bytes(body, FORM_BYTES)).await;
    let Ok(Ok(form)) = form else { return Err(HttpError::Incomplete) };

    let token = field(&form, "token").unwrap_or_default();
    begin(&endpoint, &head, token.trim()).await
}

async fn begin(endpoint: &Endpoint, head: &Head, token: &str) -> Reply {
    let console = console(endpoint);
    if token.is_empty() {
        return Err(problem(StatusCode::UNAUTHORIZED, "Enter a token."));
    }

    let credentials = format!("Bearer {token}");
    let token = bearer_token([credentials.as_bytes()]).map_err(|error| access::refused(&error))?;
    let identity =
        access::verify(endpoint, head, token).await.map_err(|error| access::refused(&error))?;

    // The permit is held until there is a response.
    let _permit = access::count(endpoint, head, &identity)?;

    let before = console.key(head);
    let (key, session) = replace(endpoint, before, &identity, token).await?;

    let mut response = empty(StatusCode::NO_CONTENT);
    let lifetime = console.sessions.lifetime_of(&session);
    console.set_key(response.headers_mut(), &key, lifetime);
    Ok(response)
}

/// Begins a session with the verified token of a caller. Another login in a browser ends the one
/// before.
pub(super) async fn replace(
    endpoint: &Endpoint,
    before: Option<SessionKey>,
    caller: &Identity,
    token: &str,
) -> Reply<(SessionKey, ConsoleSession)> {
    if let Some(key) = before {
        end(endpoint, &key).await?;
    }
    let sessions = &console(endpoint).sessions;
    let store = endpoint.dispatcher.store();
    sessions.begin(store, caller, token).await.map_err(unavailable)
}

/// Ends the session on the server, so that a copy of the cookie is worthless.
pub(in crate::http) async fn log_out(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    own_page(&endpoint, &head)?;

    let console = console(&endpoint);
    if let Some(key) = console.key(&head) {
        end(&endpoint, &key).await?;
    }

    let mut response = empty(StatusCode::NO_CONTENT);
    console.remove_key(response.headers_mut());
    Ok(response)
}

/// Ends a session, and the login at this server that only the session had.
async fn end(endpoint: &Endpoint, key: &SessionKey) -> Reply<()> {
    let console = console(endpoint);
    let store = endpoint.dispatcher.store();
    let ended = console.sessions.end(store, key).await.map_err(unavailable)?;

    if let (Some(session), Some(oidc)) = (ended, &console.oidc) {
        oidc.session_ended(&session.token).await;
    }
    Ok(())
}

impl Console {
    /// Whether a page may send credentials, and get the cookie of a session.
    ///
    /// # Errors
    /// The next step, for the person at the page.
    fn may_log_in(&self, page: &PageOrigin) -> Result<(), String> {
        match &self.public_origin {
            _ if page.is_https => Ok(()),
            Some(origin) if self.cookies.are_secure() => {
                Err(format!("A login needs HTTPS: open the console at {origin}{}/.", self.path))
            }
            _ if page.is_loopback => Ok(()),
            _ => {
                let text = "A login needs HTTPS: set server.public_url to the https:// URL of this \
                            server, or server.tls.";
                Err(text.to_owned())
            }
        }
    }
}

/// The console's own page, if that sent the request.
pub(super) fn own_page(endpoint: &Endpoint, head: &Head) -> Reply<PageOrigin> {
    console(endpoint).page_origin(head).ok_or_else(|| {
        let text = "This request does not come from the console's own page. If the console is \
                    behind a proxy, set server.public_url.";
        problem(StatusCode::FORBIDDEN, text)
    })
}
