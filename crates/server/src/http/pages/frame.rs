//! The frame of all pages for browsers: no scripts but the server's own, nothing from elsewhere,
//! light and dark, and readable on a phone.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");

/// Allows this style and nothing else. Without `form-action`, which browsers apply to redirects
/// as well.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy(""));

static FORM_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("; form-action 'self'"));

static SANDBOX_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!("sandbox; default-src 'none'; style-src {}", hash(STYLE));
    HeaderValue::try_from(policy).expect("it is ASCII")
});

/// The policy of a page, with directives of its own.
fn policy(own: &str) -> HeaderValue {
    let style = hash(STYLE);
    let policy = format!(
        "default-src 'none'; style-src {style}; frame-ancestors 'none'; base-uri 'none'{own}"
    );
    HeaderValue::try_from(policy).expect("it is ASCII")
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// A script, and the policy that allows it: it may send requests to this server.
pub(in crate::http) struct Script {
    text: &'static str,
    policy: HeaderValue,
}

impl Script {
    pub(in crate::http) fn new(text: &'static str) -> Self {
        let own = format!("; form-action 'none'; connect-src 'self'; script-src {}", hash(text));
        Self { text, policy: policy(&own) }
    }
}

/// A page without scripts, which no other page can frame. The title and the body are HTML.
pub(in crate::http) fn page(status: StatusCode, title: &str, body: &str) -> Response {
    respond(status, title, body, &POLICY)
}

/// A page with a script, which no other page can frame. The title and the body are HTML.
pub(in crate::http) fn scripted_page(title: &str, body: &str, script: &Script) -> Response {
    let body = format!("{body}<script>{}</script>", script.text);
    respond(StatusCode::OK, title, &body, &script.policy)
}

/// A page whose form is sent to this server. The title and the body are HTML.
pub(in crate::http) fn form_page(status: StatusCode, title: &str, body: &str) -> Response {
    respond(status, title, body, &FORM_POLICY)
}

/// A page about a link that others may have made: nothing in it runs, and it has no origin. The
/// title and the body are HTML.
pub(in crate::http) fn sandboxed_page(status: StatusCode, title: &str, body: &str) -> Response {
    respond(status, title, body, &SANDBOX_POLICY)
}

fn respond(status: StatusCode, title: &str, body: &str, policy: &HeaderValue) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} · Larder</title>\
         <style>{STYLE}</style></head>\
         <body><main><p class=\"brand\">Larder</p><h1>{title}</h1>{body}</main></body></html>"
    );

    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // With `no-referrer`, forms would have no origin.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
    response
}

/// Text within HTML.
pub(in crate::http) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_run_no_script_and_their_text_is_no_html() {
        assert_eq!(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");

        let page = page(StatusCode::OK, "Title", "");
        let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap_or_default();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("script"));
        assert_eq!(page.headers()[header::CACHE_CONTROL], "no-store");

        let page = scripted_page("Title", "", &Script::new("alert(1)"));
        let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap_or_default();
        let allowed = "script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
        assert!(policy.contains("default-src 'none'") && policy.ends_with(allowed), "{policy}");
    }
}
