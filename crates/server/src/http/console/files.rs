//! The files of the page, which `web/` builds. They are the same for everyone, and have no data.

use std::{fmt::Write, sync::LazyLock};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use super::console;
use crate::{
    apps::pdf_script_gzip,
    http::{error::Reply, head::Head, response::empty, route::Incoming},
};

/// Scripts, styles and requests of this server alone, and no text that becomes a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

struct ServedFile {
    media_type: &'static str,
    content: Bytes,
    /// How the content is compressed, if it is.
    encoding: Option<HeaderValue>,
    tag: HeaderValue,
}

impl ServedFile {
    fn new(media_type: &'static str, content: &'static [u8]) -> Self {
        Self::of(media_type, Bytes::from_static(content), None)
    }

    fn of(media_type: &'static str, content: Bytes, encoding: Option<HeaderValue>) -> Self {
        let mut tag = String::from("\"");
        for byte in &Sha256::digest(&content)[..12] {
            // Writing to a string never fails.
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');

        let tag = HeaderValue::try_from(tag).expect("digits are ASCII");
        Self { media_type, content, encoding, tag }
    }

    fn respond(&self, head: &Head) -> Response {
        let is_known = head.first(&header::IF_NONE_MATCH) == Some(&self.tag);
        let mut response = if is_known {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            self.content.clone().into_response()
        };

        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_TYPE, self.media_type),
            (header::CACHE_CONTROL, "no-cache"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::ETAG, self.tag.clone());
        if let Some(encoding) = &self.encoding {
            headers.insert(header::CONTENT_ENCODING, encoding.clone());
        }
        response
    }
}

static PAGE: LazyLock<ServedFile> = LazyLock::new(|| {
    ServedFile::new("text/html; charset=utf-8", include_bytes!("built/index.html"))
});
static SCRIPT: LazyLock<ServedFile> = LazyLock::new(|| {
    ServedFile::new("text/javascript; charset=utf-8", include_bytes!("built/app.js"))
});
static STYLE: LazyLock<ServedFile> =
    LazyLock::new(|| ServedFile::new("text/css; charset=utf-8", include_bytes!("built/app.css")));

/// The script that draws PDF. The page imports it when it shows one. It is compressed already, and every
/// browser that runs the page decompresses it.
static PDF: LazyLock<ServedFile> = LazyLock::new(|| {
    let gzip = HeaderValue::from_static("gzip");
    ServedFile::of("text/javascript; charset=utf-8", pdf_script_gzip(), Some(gzip))
});

pub(in crate::http) async fn page(incoming: Incoming) -> Reply {
    Ok(PAGE.respond(&incoming.head))
}

pub(in crate::http) async fn script(incoming: Incoming) -> Reply {
    Ok(SCRIPT.respond(&incoming.head))
}

pub(in crate::http) async fn style(incoming: Incoming) -> Reply {
    Ok(STYLE.respond(&incoming.head))
}

pub(in crate::http) async fn pdf(incoming: Incoming) -> Reply {
    Ok(PDF.respond(&incoming.head))
}

/// The page's files are relative to its path, which ends with a slash.
pub(in crate::http) async fn redirect(Incoming { endpoint, .. }: Incoming) -> Reply {
    let mut response = empty(StatusCode::SEE_OTHER);
    if let Ok(location) = HeaderValue::try_from(format!("{}/", console(&endpoint).path)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}
