//! The pages of a login at an upstream.

use std::{sync::Arc, time::Duration};

use axum::body::to_bytes;
use http::{HeaderValue, StatusCode, header};

use crate::{
    http::{
        error::{ErrorPage, HttpError, Reply},
        head::field,
        pages::{Cookie, escape, page},
        response::json_response,
        route::Incoming,
    },
    registry::{LoginProblem, ProviderLogin},
};

/// How long a browser keeps the cookie of a login.
const COOKIE_AGE: Duration = Duration::from_secs(600);
/// The most bytes of a form, and the longest time for it.
const FORM_BYTES: usize = 16 << 10;
const FORM_TIME: Duration = Duration::from_secs(10);

/// The login that a path names.
fn login(incoming: &Incoming) -> Reply<Arc<dyn ProviderLogin>> {
    let found = incoming.endpoint.dispatcher.registry().login(&incoming.segment_from_end(1));
    found.ok_or_else(|| {
        let text = "There is no login of that name.";
        HttpError::Page(Box::new(ErrorPage {
            status: StatusCode::NOT_FOUND,
            title: "Not found",
            text: text.to_owned(),
            html: text.to_owned(),
            retry_after: None,
        }))
    })
}

/// Asks whether the login is wanted.
pub(in crate::http) async fn confirm(incoming: Incoming) -> Reply {
    let login = login(&incoming)?;
    let ticket = incoming.head.parameter("ticket").unwrap_or_default();
    let request = login.request(&ticket)?;

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

    Ok(page(StatusCode::OK, "Log in", &body))
}

/// Sends the browser to the authorization server.
pub(in crate::http) async fn begin(incoming: Incoming) -> Reply {
    let login = login(&incoming)?;

    // Only the confirmation page may send this form.
    if !incoming.head.is_form_of(login.base_url()) {
        let text = "This page was not opened by its link.";
        return Err(LoginProblem::Refused(text.to_owned()).into());
    }

    let form = tokio::time::timeout(FORM_TIME, to_bytes(incoming.body, FORM_BYTES)).await;
    let Ok(Ok(form)) = form else { return Err(HttpError::Incomplete) };

    let redirect = login.begin(&field(&form, "ticket").unwrap_or_default()).await?;
    let location = HeaderValue::try_from(redirect.url).map_err(|_| {
        let text = "The authorization server's URL is not valid.";
        LoginProblem::Refused(text.to_owned())
    })?;

    let mut response = page(StatusCode::SEE_OTHER, "Log in", "");
    response.headers_mut().insert(header::LOCATION, location);
    cookie(&*login).set(response.headers_mut(), &redirect.cookie, COOKIE_AGE);
    Ok(response)
}

/// The browser comes back from the authorization server.
pub(in crate::http) async fn finish(incoming: Incoming) -> Reply {
    let login = login(&incoming)?;
    let name = incoming.segment_from_end(1);
    let cookie = cookie(&*login);

    let query = incoming.head.query().as_bytes();
    let parameters = url::form_urlencoded::parse(query).into_owned().collect();
    let sent = cookie.read(&incoming.head);

    let mut response = match login.finish(parameters, sent.as_deref()).await {
        Ok(()) => {
            let body = format!(
                "<p>You are logged in to <strong>{}</strong>. You can close this page and go on \
                 where you were.</p>",
                escape(&name)
            );
            page(StatusCode::OK, "Logged in", &body)
        }
        Err(problem) => {
            let error = HttpError::from(problem);
            let body = format!("<p>{}</p>", escape(&error.to_string()));
            page(error.status(), "No login", &body)
        }
    };

    cookie.remove(response.headers_mut());
    Ok(response)
}

pub(in crate::http) async fn client_document(incoming: Incoming) -> Reply {
    let document = login(&incoming)?.client_document().to_string();

    let mut response = json_response(StatusCode::OK, document.into());
    let cached = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(header::CACHE_CONTROL, cached);
    Ok(response)
}

/// The cookie that the authorization server's redirect brings back.
fn cookie(login: &dyn ProviderLogin) -> Cookie {
    let path = format!("upstreams/{}/", login.name());
    Cookie::below(login.base_url(), &path, &format!("larder-login-{}", login.name()))
}
