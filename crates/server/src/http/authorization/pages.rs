//! What browsers see: redirects, the question, and pages that say why a login fails.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use larder_login::{
    CONSENT_COOKIE, Cookie, ErrorCode, MAX_PARAMETER_BYTES, Parameters, Problem, Question, Step,
};

use super::{
    super::{
        Endpoint,
        checks::instrument::peer,
        pages::browser,
        pages::page::{escape, page},
    },
    Login, add_retry_after, body, status,
};

/// A client begins a login.
pub(super) async fn authorize(
    Login(login): Login,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let query = query.unwrap_or_default();
    let step = login.authorize(query.as_bytes(), peer(request.extensions())).await;
    shown(login.base_url(), step)
}

/// The provider sends the browser back.
pub(super) async fn callback(
    Login(login): Login,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let query = query.unwrap_or_default();
    let peer = peer(request.extensions());
    let headers = request.headers().clone();
    let cookie = move |name: &str| browser::cookie(&headers, name);
    shown(login.base_url(), login.callback(query.as_bytes(), peer, cookie).await)
}

/// Asks the user.
pub(super) async fn ask(
    Login(login): Login,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let ticket = Parameters::read(query.unwrap_or_default().as_bytes());
    let ticket = ticket.map(|query| query.get("ticket").unwrap_or_default().to_owned());
    let browser = browser::cookie(&headers, CONSENT_COOKIE);

    let asked = match ticket {
        Ok(ticket) => login.question(&ticket, browser.as_deref()).await,
        Err(problem) => Err(problem),
    };

    match asked {
        Ok(question) => page(StatusCode::OK, "Allow access?", &form(&question)),
        Err(problem) => problem_page(&problem),
    }
}

/// The user has decided.
pub(super) async fn decide(
    Login(login): Login,
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
) -> Response {
    // Browsers name the origin of each form: a page of another origin must not answer.
    if !browser::is_same_origin(request.headers(), login.base_url()) {
        let text = "This answer does not come from the page of this server.";
        return problem_page(&Problem::Refused(ErrorCode::AccessDenied, text.to_owned()));
    }

    let browser = browser::cookie(request.headers(), CONSENT_COOKIE);
    let form = match body(&endpoint, request, MAX_PARAMETER_BYTES).await {
        Ok(form) => form,
        Err(response) => return *response,
    };

    let step = match decision(&form) {
        Ok((ticket, allows)) => login.decide(&ticket, browser.as_deref(), allows).await,
        Err(problem) => Err(problem),
    };

    shown(login.base_url(), step)
}

fn decision(form: &[u8]) -> Result<(String, bool), Problem> {
    let form = Parameters::read(form)?;
    let allows = match form.required("decision")? {
        "allow" => true,
        "deny" => false,
        _ => {
            let text = "The decision is neither allow nor deny.".to_owned();
            return Err(Problem::Refused(ErrorCode::InvalidRequest, text));
        }
    };

    Ok((form.required("ticket")?.to_owned(), allows))
}

/// The question of the consent page.
fn form(question: &Question) -> String {
    let Question { ticket, client, document, destination, scopes, user } = question;

    let scopes = if scopes.is_empty() {
        "no particular scopes".to_owned()
    } else {
        let scopes = scopes.iter().map(|scope| format!("<code>{}</code>", escape(scope)));
        scopes.collect::<Vec<_>>().join(", ")
    };

    let document = document.as_ref().map_or_else(
        || "The client has chosen this name itself.".to_owned(),
        |url| format!("Its description is at <code>{}</code>.", escape(url)),
    );

    format!(
        "<p><strong>{}</strong> asks to use this server for you.</p>\
         <dl><dt>You are</dt><dd>{}</dd><dt>It may use</dt><dd>{scopes}</dd>\
         <dt>You go on to</dt><dd><strong>{}</strong><br><code>{}</code></dd></dl>\
         <p class=\"note\">{document} Allow it only if you have just begun this in an app that \
         you trust.</p>\
         <form method=\"post\"><input type=\"hidden\" name=\"ticket\" value=\"{}\">\
         <div class=\"actions\"><button name=\"decision\" value=\"allow\">Allow</button>\
         <button class=\"second\" name=\"decision\" value=\"deny\">Deny</button></div></form>",
        escape(client),
        escape(user),
        escape(&destination.name),
        escape(&destination.uri),
        escape(ticket),
    )
}

fn shown(base_url: &str, step: Result<Step, Problem>) -> Response {
    match step {
        Ok(Step::Redirect(url, cookies)) => {
            let Ok(location) = HeaderValue::try_from(url) else {
                let text = "The URL to go on to is not valid.".to_owned();
                return problem_page(&Problem::Refused(ErrorCode::InvalidRequest, text));
            };

            let mut response = page(StatusCode::SEE_OTHER, "Log in", "");
            response.headers_mut().insert(header::LOCATION, location);
            set_cookies(&mut response, base_url, &cookies);
            response
        }
        Ok(Step::Refused { problem, back, destination, cookies }) => {
            let body = format!(
                "<p>{}</p><p><a href=\"{}\">Tell the client, at {}</a></p>\
                 <p class=\"note\">The link opens <code>{}</code></p>",
                escape(&problem.to_string()),
                escape(&back),
                escape(&destination.name),
                escape(&destination.uri),
            );

            let mut response = page(status(&problem), title(&problem), &body);
            set_cookies(&mut response, base_url, &cookies);
            response
        }
        Err(problem) => problem_page(&problem),
    }
}

fn set_cookies(response: &mut Response, base_url: &str, cookies: &[Cookie]) {
    for Cookie { name, value, age } in cookies {
        browser::set_cookie(response.headers_mut(), name, value, *age, base_url, "login/");
    }
}

fn title(problem: &Problem) -> &'static str {
    match problem {
        Problem::Refused(ErrorCode::AccessDenied, _) => "No access",
        Problem::Refused(..) => "No login",
        Problem::Limited(_) | Problem::Busy(..) | Problem::Unavailable(_) => "Not now",
    }
}

fn problem_page(problem: &Problem) -> Response {
    let body = format!("<p>{}</p>", escape(&problem.to_string()));
    let mut response = page(status(problem), title(problem), &body);
    add_retry_after(problem, &mut response);
    response
}
