//! The beginning and the end of a session.

use std::{sync::Arc, time::Duration};

use axum::{
    body::to_bytes,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header, request::Parts};
use larder_oauth::{Identity, MAX_TOKEN_BYTES, bearer_token};
use serde_json::json;

use super::{
    Console,
    access::{self, admit, unavailable},
    console,
    operator::is_operator,
    origin::PageOrigin,
    problem,
    session_key::Key,
    sessions::Session,
};
use crate::http::{
    Endpoint,
    checks::instrument::peer,
    error::{HttpError, json_response, set_retry_after},
};

/// The most bytes of a form: a token, each byte of which may be encoded by three.
const FORM_BYTES: usize = 3 * MAX_TOKEN_BYTES + 64;
const FORM_TIME: Duration = Duration::from_secs(10);

/// Who is logged in.
pub(super) async fn session(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();

    let needs_login = endpoint.authenticator.is_required();
    let mut body = json!({ "login": needs_login });
    if let Some(host) = console(&endpoint).login_host() {
        body["oidc"] = host.into();
    }

    match admit(&endpoint, &head).await {
        Ok(caller) => {
            body["operator"] = is_operator(&caller.identity).into();
            body["user"] = caller.identity.principal().to_string().into();
            body["expires"] = caller.session.map(|(_, session)| session.expires.to_string()).into();
        }
        // The page shows a login. If the session has ended, the response removes its cookie.
        Err(response) if response.status() == StatusCode::UNAUTHORIZED => {
            let mut found = json_response(StatusCode::OK, body.to_string().into());
            for cookie in response.headers().get_all(header::SET_COOKIE) {
                found.headers_mut().append(header::SET_COOKIE, cookie.clone());
            }
            return found;
        }
        Err(response) => return *response,
    }

    json_response(StatusCode::OK, body.to_string().into())
}

/// Begins a session with the token of a form.
pub(super) async fn log_in(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let page = match own_page(&endpoint, &head) {
        Ok(page) => page,
        Err(response) => return *response,
    };

    if let Err(text) = console(&endpoint).may_log_in(&page) {
        return problem(StatusCode::FORBIDDEN, &text);
    }
    if !endpoint.authenticator.is_required() {
        return StatusCode::NO_CONTENT.into_response();
    }

    // The slot is held until there is a response.
    let Some(_slot) = endpoint.forms.take(peer(&head.extensions)) else {
        let text = "Too many logins of this address are in progress. Try again shortly.";
        let mut response = problem(StatusCode::TOO_MANY_REQUESTS, text);
        set_retry_after(&mut response, Duration::from_secs(1));
        return response;
    };

    let form = tokio::time::timeout(FORM_TIME, to_bytes(body, FORM_BYTES)).await;
    let Ok(Ok(form)) = form else { return HttpError::Incomplete.into_response() };
    let mut fields = url::form_urlencoded::parse(&form);
    let token = fields.find(|(name, _)| name == "token").map(|(_, token)| token.into_owned());

    match begin(&endpoint, &head, token.unwrap_or_default().trim()).await {
        Ok(response) => response,
        Err(response) => *response,
    }
}

async fn begin(endpoint: &Endpoint, head: &Parts, token: &str) -> Result<Response, Box<Response>> {
    let console = console(endpoint);
    if token.is_empty() {
        return Err(Box::new(problem(StatusCode::UNAUTHORIZED, "Enter a token.")));
    }

    let credentials = format!("Bearer {token}");
    let token = bearer_token([credentials.as_bytes()]).map_err(|error| access::refused(&error))?;
    let identity =
        access::verify(endpoint, head, token).await.map_err(|error| access::refused(&error))?;

    // The permit is held until there is a response.
    let _permit = access::count(endpoint, head, &identity).map_err(access::limited)?;

    let before = console.key(&head.headers);
    let (key, session) = replace(endpoint, before, &identity, token).await?;

    let mut response = StatusCode::NO_CONTENT.into_response();
    let lifetime = console.sessions.lifetime_of(&session);
    console.set_key(response.headers_mut(), &key, lifetime);
    Ok(response)
}

/// Begins a session with the verified token of a caller. Another login in a browser ends the one
/// before.
pub(super) async fn replace(
    endpoint: &Endpoint,
    before: Option<Key>,
    caller: &Identity,
    token: &str,
) -> Result<(Key, Session), Box<Response>> {
    let (sessions, store) = (&console(endpoint).sessions, endpoint.dispatcher.store());
    if let Some(key) = before {
        sessions.end(store, &key).await.map_err(unavailable)?;
    }
    sessions.begin(store, caller, token).await.map_err(unavailable)
}

/// Ends the session on the server, so that a copy of the cookie is worthless.
pub(super) async fn log_out(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    if let Err(response) = own_page(&endpoint, &head) {
        return *response;
    }

    let (console, store) = (console(&endpoint), endpoint.dispatcher.store());
    if let Some(key) = console.key(&head.headers)
        && let Err(error) = console.sessions.end(store, &key).await
    {
        return *unavailable(error);
    }

    let mut response = StatusCode::NO_CONTENT.into_response();
    console.remove_key(response.headers_mut());
    response
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
pub(super) fn own_page(endpoint: &Endpoint, head: &Parts) -> Result<PageOrigin, Box<Response>> {
    console(endpoint).page_origin(head).ok_or_else(|| {
        let text = "This request does not come from the console's own page. If the console is \
                    behind a proxy, set server.public_url.";
        Box::new(problem(StatusCode::FORBIDDEN, text))
    })
}
