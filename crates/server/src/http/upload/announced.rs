//! The facts that the headers of an upload announce about its content.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderName, StatusCode, header};
use larder_protocol::quote::quoted;
use larder_runtime::hex::hex;
use larder_store::store::Expected;

use crate::{
    http::{
        head::{Head, Repeated},
        problem::Problem,
    },
    sources::is_text,
};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// The type that `curl -d` sends unless it is told otherwise, so it says nothing about the content.
const FORM: &str = "application/x-www-form-urlencoded";

/// The facts that a sender announces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) expected: Expected,
    /// The media type, if there is one.
    pub(super) mime_type: Option<String>,
}

impl Announced {
    /// # Errors
    /// 400 and 415 for headers that cannot be used.
    pub(super) fn of(head: &Head) -> Result<Self, Problem> {
        let encoding = text(head, &header::CONTENT_ENCODING)?;
        if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            let detail = "Send the content without Content-Encoding: it is stored as it comes.";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }

        let size = text(head, &header::CONTENT_LENGTH)?.and_then(|size| size.parse().ok());

        let mut sha256 = None;
        for name in [CONTENT_DIGEST, REPR_DIGEST] {
            let Some(found) = digest(head, &name)? else { continue };
            if sha256.replace(found.clone()).is_some_and(|other| other != found) {
                return Err(bad("Content-Digest and Repr-Digest differ.".into()));
            }
        }

        let mime_type = media_type(head)?;
        Ok(Self { expected: Expected { size, sha256 }, mime_type })
    }

    /// Whether content of that media type is text if it is UTF-8.
    pub(super) fn may_be_text(&self) -> bool {
        self.mime_type.as_deref().is_none_or(is_text)
    }
}

/// Checks that the body is not announced as a range of the content, which would be stored as all
/// of it (RFC 9110, section 14.5). The dialects of uploads in parts have headers of their own.
///
/// # Errors
/// 400 for a request with `Content-Range`.
pub(super) fn check_no_range(head: &Head) -> Result<(), Problem> {
    if !head.has(&header::CONTENT_RANGE) {
        return Ok(());
    }

    let detail = "The body is stored as the whole content, so Content-Range is refused and nothing \
                  was stored. Send all of the content without it, or begin an upload in parts by \
                  POST with Upload-Complete: ?0.";
    Err(bad(detail.into()))
}

fn media_type(head: &Head) -> Result<Option<String>, Problem> {
    let Some(given) = text(head, &header::CONTENT_TYPE)? else { return Ok(None) };
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.to_ascii_lowercase().starts_with("multipart/") {
        let detail = "Send the content itself as the body, not as a form: curl -T FILE.";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }

    if essence.eq_ignore_ascii_case(FORM) {
        return Ok(None);
    }

    match essence.split_once('/') {
        Some((kind, subtype)) if !kind.is_empty() && !subtype.is_empty() => {
            Ok(Some(given.to_owned()))
        }
        _ => Err(bad(format!("Content-Type {} is no media type.", quoted(given)))),
    }
}

/// The SHA-256 of a digest header (RFC 9530), in hexadecimal. Other algorithms are ignored.
fn digest(head: &Head, name: &HeaderName) -> Result<Option<String>, Problem> {
    let Some(given) = text(head, name)? else { return Ok(None) };
    let Some(value) = given.split(',').find_map(|item| item.trim().strip_prefix("sha-256=")) else {
        return Ok(None);
    };

    let encoded = value.strip_prefix(':').and_then(|value| value.strip_suffix(':'));
    let bytes = encoded.and_then(|encoded| BASE64_STANDARD.decode(encoded).ok());

    match bytes.filter(|bytes| bytes.len() == 32) {
        Some(bytes) => Ok(Some(hex(&bytes))),
        None => Err(bad(format!("{name} must look like sha-256=:BASE64:, not {}.", quoted(given)))),
    }
}

/// The only value of a header.
pub(super) fn text<'a>(head: &'a Head, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let value = head.only(name);
    let value =
        value.map_err(|Repeated| bad(format!("The request has several {name} headers.")))?;

    let text = value.map(|value| value.to_str().map(str::trim)).transpose();
    text.map_err(|_| bad(format!("The header {name} is not ASCII.")))
}

pub(super) fn bad(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The SHA-256 of nothing.
    const EMPTY: &str = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";

    fn announced(headers: &[(HeaderName, &str)]) -> Result<Announced, Problem> {
        Announced::of(&Head::of(headers))
    }

    #[test]
    fn digests_and_types_are_read() {
        let digests = format!("sha-512=:AA==:, {EMPTY}");
        let found = announced(&[
            (CONTENT_DIGEST, &digests),
            (REPR_DIGEST, EMPTY),
            (header::CONTENT_LENGTH, "12"),
            (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        ]);

        let found = found.unwrap();
        assert_eq!(found.mime_type.as_deref(), Some("text/csv; charset=utf-8"));
        assert_eq!(found.expected.size, Some(12));
        assert!(found.expected.sha256.unwrap().starts_with("e3b0c44298fc1c14"));

        assert_eq!(announced(&[(header::CONTENT_TYPE, FORM)]).unwrap().mime_type, None);
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for (status, name, value) in [
            (400, CONTENT_DIGEST, "sha-256=abc"),
            (400, CONTENT_DIGEST, "sha-256=:AA==:"),
            (400, header::CONTENT_TYPE, "csv"),
            (415, header::CONTENT_TYPE, "multipart/form-data; boundary=x"),
            (415, header::CONTENT_ENCODING, "gzip"),
        ] {
            let problem = announced(&[(name.clone(), value)]).unwrap_err();
            assert_eq!(problem.status.as_u16(), status, "{name}: {value}: {}", problem.detail);
        }
    }
}
