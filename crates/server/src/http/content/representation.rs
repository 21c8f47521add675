//! A stored resource as an HTTP response, streamed by blocks.

use std::{io, ops::Range};

use axum::{body::Body, response::Response};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{TryStreamExt, future::Either};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use larder_store::store::{Entry, StoredResource};

use super::{
    disposition::content_disposition,
    media_type::SentType,
    range::{self, Selection},
};
use crate::{
    admission::{LimitReached, Permit},
    content_link::Disposition,
    http::{
        conditions::{self, Conditions, Precondition, entity_tag, zstd_tag},
        error::{HttpError, Reply},
        head::Head,
        problem::Problem,
        response::empty,
    },
};

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// How content is sent.
pub(super) struct Representation<'a> {
    pub(super) found: &'a StoredResource,
    /// The disposition that the link asks for. A browser shows only what is safe to show.
    pub(super) wanted: Disposition,
    pub(super) file_name: &'a str,
}

/// How the content is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Identity,
    Zstd,
}

impl Coding {
    /// The entity tag, which differs between codings (RFC 9110, 8.8.3).
    fn tag(self, entry: &Entry) -> String {
        match self {
            Self::Identity => entity_tag(entry),
            Self::Zstd => zstd_tag(entry),
        }
    }
}

impl Representation<'_> {
    /// The response to a GET or HEAD request. `permit` is acquired if there is content to send,
    /// and held until all of it is sent.
    pub(super) fn response(
        &self,
        head: &Head,
        permit: impl FnOnce() -> Result<Permit, LimitReached>,
    ) -> Reply {
        let entry = &self.found.entry;

        // Ranges select bytes of the content before it is encoded.
        let encoded =
            self.found.zstd_len().filter(|_| !head.has(&header::RANGE) && head.accepts_zstd());
        let coding = if encoded.is_some() { Coding::Zstd } else { Coding::Identity };
        let tag = coding.tag(entry);

        match Conditions::of(head).check(&tag) {
            Precondition::Holds => {}
            Precondition::NotModified => {
                let mut response = empty(StatusCode::NOT_MODIFIED);
                self.add_headers(&mut response, &tag, coding);
                return Ok(response);
            }
            Precondition::Failed => {
                let detail = format!("If-Match names other content; the current tag is {tag}.");
                return Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail).into());
            }
        }

        let is_get = head.method() == Method::GET;
        let selection = if is_get && conditions::if_range(head, &tag) {
            range::selection(head, entry.size)
        } else {
            Selection::Whole
        };

        let (status, range) = match selection {
            Selection::Whole => (StatusCode::OK, 0..entry.size),
            Selection::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
            Selection::Unsatisfiable => return Err(unsatisfiable(entry.size)),
        };

        let body = if is_get { self.body(range.clone(), coding, permit()?) } else { Body::empty() };

        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {}-{}/{}", range.start, range.end - 1, entry.size);
            insert(headers, header::CONTENT_RANGE, range);
        }

        let length = encoded.unwrap_or(range.end - range.start);
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));

        let media_type = SentType::of(entry);
        let disposition = match self.wanted {
            Disposition::Inline if media_type.is_safe_inline() => "inline",
            Disposition::Inline | Disposition::Attachment => "attachment",
        };
        headers.insert(header::CONTENT_TYPE, media_type.header());
        headers
            .insert(header::CONTENT_DISPOSITION, content_disposition(disposition, self.file_name));

        self.add_headers(&mut response, &tag, coding);
        Ok(response)
    }

    /// The headers of every response that describes the content.
    fn add_headers(&self, response: &mut Response, tag: &str, coding: Coding) {
        let headers = response.headers_mut();
        insert(headers, header::ETAG, tag.to_owned());
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));

        match coding {
            // The stored digest is of the content before it is encoded.
            Coding::Zstd => {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("zstd"));
            }
            Coding::Identity => {
                if let Some(digest) = digest(&self.found.entry.sha256) {
                    insert(headers, REPR_DIGEST, format!("sha-256=:{digest}:"));
                }
            }
        }

        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        add_safe_headers(response);
    }

    fn body(&self, range: Range<u64>, coding: Coding, permit: Permit) -> Body {
        let pieces = match coding {
            Coding::Zstd => Either::Left(self.found.stream_zstd()),
            Coding::Identity => Either::Right(self.found.stream_range(range)),
        };

        let pieces = pieces.map_err(|error| {
            // The head is sent, so the client sees a body that ends early.
            error.log_internal();
            io::Error::other(error)
        });

        Body::from_stream(pieces.inspect_ok(move |_| {
            // The stream holds the permit.
            let _ = &permit;
        }))
    }
}

/// Adds headers that keep content from running in a browser, and from caches. A page has its own.
pub(in crate::http) fn add_safe_headers(response: &mut Response) {
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        // A proxy that compressed the content would invalidate ranges and digests.
        (header::CACHE_CONTROL, "private, no-store, no-transform"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
}

fn unsatisfiable(size: u64) -> HttpError {
    let detail = format!("The content has {size} bytes; the range is outside of it.");
    let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, detail);
    problem.header(header::CONTENT_RANGE, format!("bytes */{size}")).into()
}

/// SHA-256 in base64, from hexadecimal.
fn digest(hex: &str) -> Option<String> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    let bytes = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<_>>>()?;
    Some(BASE64_STANDARD.encode(bytes))
}

/// Sets a header, unless the value cannot be one.
fn insert(headers: &mut http::HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_encoded_as_base64() {
        assert_eq!(digest("00ff10").as_deref(), Some("AP8Q"));
        assert_eq!(digest("0g"), None);
    }
}
