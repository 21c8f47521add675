//! The responses for browsers: redirects, the question, and pages that say why a login fails.

use std::time::Duration;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use larder_login::{
    CONSENT_COOKIE, ConsentQuestion, ErrorCode, MAX_PARAMETER_BYTES, NextStep, Parameters, Problem,
};

use super::{
    super::{
        error::{HttpError, Reply},
        error_format::login_title,
        pages::{Cookie, escape, page},
        route::Incoming,
    },
    body, login_server,
};

/// A client begins a login.
pub(in crate::http) async fn authorize(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let login = login_server(&endpoint)?;
    let step = login.authorize(head.query().as_bytes(), head.peer()).await?;
    shown(login.base_url(), step)
}

/// The provider sends the browser back.
pub(in crate::http) async fn callback(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let login = login_server(&endpoint)?;
    let peer = head.peer();
    let query = head.query().to_owned();

    let cookie = move |name: &str| head.cookie(name);
    let step = login.callback(query.as_bytes(), peer, cookie).await?;
    shown(login.base_url(), step)
}

/// Asks the user.
pub(in crate::http) async fn ask(Incoming { endpoint, head, .. }: Incoming) -> Reply {
    let ticket = Parameters::read(head.query().as_bytes())?;
    let ticket = ticket.get("ticket").unwrap_or_default().to_owned();
    let browser = head.cookie(CONSENT_COOKIE);

    let login = login_server(&endpoint)?;
    let question = login.question(&ticket, browser.as_deref()).await?;
    Ok(page(StatusCode::OK, "Allow access?", &form(&question)))
}

/// The user has decided.
pub(in crate::http) async fn decide(incoming: Incoming) -> Reply {
    let Incoming { endpoint, head, body: sent } = incoming;
    let login = login_server(&endpoint)?;

    // A page of another origin must not answer.
    if !head.is_form_of(login.base_url()) {
        let text = "This answer does not come from the page of this server.";
        return Err(Problem::Refused(ErrorCode::AccessDenied, text.to_owned()).into());
    }

    let browser = head.cookie(CONSENT_COOKIE);
    let form = body(&endpoint, &head, sent, MAX_PARAMETER_BYTES).await?;
    let (ticket, allows) = decision(&form)?;

    let step = login.decide(&ticket, browser.as_deref(), allows).await?;
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
fn form(question: &ConsentQuestion) -> String {
    let ConsentQuestion { ticket, client, document, destination, scopes, user } = question;

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

fn shown(base_url: &str, step: NextStep) -> Reply {
    match step {
        NextStep::Redirect(url, cookies) => {
            let location = HeaderValue::try_from(url).map_err(|_| {
                let text = "The URL to go on to is not valid.".to_owned();
                HttpError::from(Problem::Refused(ErrorCode::InvalidRequest, text))
            })?;

            let mut response = page(StatusCode::SEE_OTHER, "Log in", "");
            response.headers_mut().insert(header::LOCATION, location);
            set_cookies(&mut response, base_url, &cookies);
            Ok(response)
        }
        NextStep::Refused { problem, back, destination, cookies } => {
            let body = format!(
                "<p>{}</p><p><a href=\"{}\">Tell the client, at {}</a></p>\
                 <p class=\"note\">The link opens <code>{}</code></p>",
                escape(&problem.to_string()),
                escape(&back),
                escape(&destination.name),
                escape(&destination.uri),
            );

            let status = HttpError::from(problem.clone()).status();
            let mut response = page(status, login_title(&problem), &body);
            set_cookies(&mut response, base_url, &cookies);
            Ok(response)
        }
    }
}

fn set_cookies(response: &mut Response, base_url: &str, cookies: &[larder_login::Cookie]) {
    for larder_login::Cookie { name, value, age } in cookies {
        let cookie = Cookie::below(base_url, "login/", name);
        cookie.set(response.headers_mut(), value, Duration::from_secs(*age));
    }
}
