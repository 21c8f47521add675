//! Logins at upstreams, below the endpoint's path: pages for browsers, and the state of a
//! caller's login for terminals. Only the latter need a token of this server: a browser has none,
//! and shows a sealed ticket instead.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, RawQuery, Request, State},
    response::{IntoResponse, Response},
    routing,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use larder_oauth::Identity;
use serde_json::json;

use super::{
    Endpoint,
    checks::bearer,
    checks::host_check,
    error::{HttpError, json_response},
    pages::browser,
    pages::page::{escape, page},
};
use crate::{
    admission::RequestPermit,
    registry::{LoginProblem, ProviderLogin},
};

/// How long a browser keeps the cookie of a login, in seconds.
const COOKIE_AGE: u32 = 600;
/// The most bytes of a form, and the longest time for it.
const FORM_BYTES: usize = 16 << 10;
const FORM_TIME: Duration = Duration::from_secs(10);

/// The pages of logins, if there are any.
pub(super) fn routes(endpoint: &Endpoint) -> Router<Arc<Endpoint>> {
    if !endpoint.dispatcher.registry().has_logins() {
        return Router::new();
    }

    let base = format!("{}/upstreams/{{name}}", endpoint.options().path.trim_end_matches('/'));

    Router::new()
        .route(&format!("{base}/login"), routing::get(confirm).post(begin))
        .route(&format!("{base}/callback"), routing::get(finish))
        .route(&format!("{base}/client.json"), routing::get(client_document))
        .route(&format!("{base}/account"), routing::get(show).post(link).delete(log_out))
}

fn parameters(text: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text).into_owned().collect()
}

fn ticket(parameters: Vec<(String, String)>) -> String {
    let ticket = parameters.into_iter().find(|(name, _)| name == "ticket");
    ticket.map(|(_, ticket)| ticket).unwrap_or_default()
}

/// A response that ends a request early.
struct Refused(Box<Response>);

impl From<Box<Response>> for Refused {
    fn from(response: Box<Response>) -> Self {
        Self(response)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}

fn found(endpoint: &Endpoint, name: &str) -> Result<Arc<dyn ProviderLogin>, Refused> {
    endpoint.dispatcher.registry().login(name).ok_or_else(|| {
        let problem = "There is no login of that name.";
        Refused(Box::new(page(StatusCode::NOT_FOUND, "Not found", &escape(problem))))
    })
}

/// Asks whether the login is wanted.
async fn confirm(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let login = match found(&endpoint, &name) {
        Ok(login) => login,
        Err(refused) => return refused.into_response(),
    };

    let ticket = ticket(parameters(query.unwrap_or_default().as_bytes()));
    let request = match login.request(&ticket) {
        Ok(request) => request,
        Err(problem) => return problem_page(&problem),
    };

    let body = format!(
        "<p>Larder asks for access to <strong>{}</strong> ({}) for this user of Larder:</p>\
         <p><strong>{}</strong></p>\
         <p>Go on only if that is you and you have asked for it. Otherwise close this page: \
         the person who sent you the link could use your account.</p>\
         <form method=\"post\"><input type=\"hidden\" name=\"ticket\" value=\"{}\">\
         <button>Log in</button></form>",
        escape(&request.provider),
        escape(&request.server),
        escape(&request.principal),
        escape(&ticket),
    );

    page(StatusCode::OK, "Log in", &body)
}

/// Sends the browser to the authorization server.
async fn begin(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let login = match found(&endpoint, &name) {
        Ok(login) => login,
        Err(refused) => return refused.into_response(),
    };

    // Only the confirmation page may send this form. Browsers name the origin of each form.
    let (head, body) = request.into_parts();
    if !browser::is_same_origin(&head.headers, login.base_url()) {
        return problem_page(&LoginProblem::Refused(
            "This page was not opened by its link.".into(),
        ));
    }

    let form = tokio::time::timeout(FORM_TIME, to_bytes(body, FORM_BYTES)).await;
    let Ok(Ok(form)) = form else { return HttpError::Incomplete.into_response() };

    match login.begin(&ticket(parameters(&form))).await {
        Ok(redirect) => {
            let Ok(location) = HeaderValue::try_from(redirect.url) else {
                let problem = "The authorization server's URL is not valid.";
                return problem_page(&LoginProblem::Refused(problem.to_owned()));
            };

            let mut response = page(StatusCode::SEE_OTHER, "Log in", "");
            response.headers_mut().insert(header::LOCATION, location);
            set_cookie(&*login, &mut response, &redirect.cookie, COOKIE_AGE);
            response
        }
        Err(problem) => problem_page(&problem),
    }
}

/// The browser comes back from the authorization server.
async fn finish(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let login = match found(&endpoint, &name) {
        Ok(login) => login,
        Err(refused) => return refused.into_response(),
    };

    let cookie = browser::cookie(&headers, &cookie_name(&name));
    let parameters = parameters(query.unwrap_or_default().as_bytes());

    let mut response = match login.finish(parameters, cookie.as_deref()).await {
        Ok(()) => {
            let body = format!(
                "<p>You are logged in to <strong>{}</strong>. You can close this page and go on \
                 where you were.</p>",
                escape(&name)
            );
            page(StatusCode::OK, "Logged in", &body)
        }
        Err(problem) => problem_page(&problem),
    };

    set_cookie(&*login, &mut response, "", 0);
    response
}

async fn client_document(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
) -> Response {
    match found(&endpoint, &name) {
        Ok(login) => {
            let document = login.client_document().to_string();
            let mut response = json_response(StatusCode::OK, document.into());
            let cached = HeaderValue::from_static("public, max-age=300");
            response.headers_mut().insert(header::CACHE_CONTROL, cached);
            response
        }
        Err(refused) => refused.into_response(),
    }
}

/// Whether the caller is logged in.
async fn show(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let (login, identity, _permit) = admitted(&endpoint, &name, request).await?;

    Ok(match login.is_logged_in(identity.owner()).await {
        Ok(is_logged_in) => answer(&json!({ "logged_in": is_logged_in })),
        Err(problem) => refusal(&problem),
    })
}

/// The link for a login of the caller.
async fn link(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let (login, identity, _permit) = admitted(&endpoint, &name, request).await?;
    Ok(answer(&json!({ "url": login.link(&identity) })))
}

async fn log_out(
    State(endpoint): State<Arc<Endpoint>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let (login, identity, _permit) = admitted(&endpoint, &name, request).await?;

    Ok(match login.log_out(identity.owner()).await {
        Ok(()) => answer(&json!({ "logged_in": false })),
        Err(problem) => refusal(&problem),
    })
}

type Admitted = (Arc<dyn ProviderLogin>, Identity, RequestPermit);

/// The checks of the endpoint, for a request without an MCP message.
async fn admitted(endpoint: &Endpoint, name: &str, request: Request) -> Result<Admitted, Refused> {
    let (head, _) = request.into_parts();
    host_check::origin(endpoint, &head.headers)
        .map_err(|error| Refused(Box::new(error.into_response())))?;

    let (identity, permit) = bearer::authenticate(endpoint, &head).await?;
    let login = endpoint.dispatcher.registry().login(name);
    let login = login.ok_or_else(|| {
        let path = endpoint.options().path.clone();
        Refused(Box::new(HttpError::Path(path).into_response()))
    })?;

    Ok((login, identity, permit))
}

fn answer(body: &serde_json::Value) -> Response {
    json_response(StatusCode::OK, body.to_string().into())
}

fn refusal(problem: &LoginProblem) -> Response {
    let body = json!({ "error": { "message": problem.to_string() } });
    json_response(status(problem), body.to_string().into())
}

fn status(problem: &LoginProblem) -> StatusCode {
    match problem {
        LoginProblem::Refused(_) => StatusCode::BAD_REQUEST,
        LoginProblem::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn problem_page(problem: &LoginProblem) -> Response {
    let body = format!("<p>{}</p>", escape(&problem.to_string()));
    page(status(problem), "No login", &body)
}

fn cookie_name(name: &str) -> String {
    format!("larder-login-{name}")
}

/// Sets a cookie that the authorization server's redirect brings back.
fn set_cookie(login: &dyn ProviderLogin, response: &mut Response, value: &str, age: u32) {
    let path = format!("upstreams/{}/", login.name());
    browser::set_cookie(
        response.headers_mut(),
        &cookie_name(login.name()),
        value,
        age.into(),
        login.base_url(),
        &path,
    );
}
