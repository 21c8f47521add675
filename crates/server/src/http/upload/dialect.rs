//! The headers of resumable uploads: those of the IETF draft (interop version 8), and of tus 1.0.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_protocol::quote::quoted;
use larder_runtime::clock::Timestamp;
use larder_store::store::PartialUpload;

use super::announced::{bad, text};
use crate::http::{head::Head, problem::Problem};

const UPLOAD_COMPLETE: HeaderName = HeaderName::from_static("upload-complete");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_LIMIT: HeaderName = HeaderName::from_static("upload-limit");
const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const TUS_VERSION: HeaderName = HeaderName::from_static("tus-version");
const TUS_EXTENSION: HeaderName = HeaderName::from_static("tus-extension");
const TUS_MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");

/// The version of tus that the server speaks.
const TUS: &str = "1.0.0";

const EXTENSIONS: &str = "creation,creation-with-upload,expiration,termination";

/// How a client speaks of its upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Ietf,
    Tus,
}

impl Dialect {
    /// The dialect of a request to an upload.
    ///
    /// # Errors
    /// 412 for another version of tus.
    pub(super) fn of(head: &Head) -> Result<Self, Problem> {
        match text(head, &TUS_RESUMABLE)? {
            None => Ok(Self::Ietf),
            Some(TUS) => Ok(Self::Tus),
            Some(other) => {
                let detail = format!("tus {} is not known here; use {TUS}.", quoted(other));
                Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail))
            }
        }
    }

    /// The dialect of a request that begins a resumable upload; `None` if its body is all.
    pub(super) fn of_creation(head: &Head) -> Result<Option<Self>, Problem> {
        let is_resumable = head.has(&TUS_RESUMABLE) || is_complete(head)? == Some(false);
        if is_resumable { Self::of(head).map(Some) } else { Ok(None) }
    }

    /// The media type of a part.
    pub(super) fn part_type(self) -> &'static str {
        match self {
            Self::Ietf => "application/partial-upload",
            Self::Tus => "application/offset+octet-stream",
        }
    }

    /// Whether the body of the request is the last part, if the headers say so. With tus, the
    /// size does.
    pub(super) fn is_last(self, head: &Head) -> Result<bool, Problem> {
        match self {
            Self::Ietf => is_complete(head)?.ok_or_else(|| {
                bad("The header Upload-Complete is missing: ?1 with the last part, else ?0.".into())
            }),
            Self::Tus => Ok(false),
        }
    }

    /// Adds what a response says about an upload.
    pub(super) fn describe(
        self,
        headers: &mut HeaderMap,
        upload: &PartialUpload,
        now: Timestamp,
        max: u64,
    ) {
        headers.insert(UPLOAD_OFFSET, upload.offset().into());
        if let Some(size) = upload.size() {
            headers.insert(UPLOAD_LENGTH, size.into());
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

        match self {
            Self::Ietf => {
                let complete = if upload.is_stored() { "?1" } else { "?0" };
                headers.insert(UPLOAD_COMPLETE, HeaderValue::from_static(complete));
                add_limit(headers, max, Some(upload.expires().since(now)));
            }
            Self::Tus => {
                headers.insert(TUS_RESUMABLE, HeaderValue::from_static(TUS));
                if let Ok(expires) = HeaderValue::try_from(http_date(upload.expires())) {
                    headers.insert(UPLOAD_EXPIRES, expires);
                }
            }
        }
    }
}

/// Adds the response headers of `OPTIONS`: the limits, and both dialects.
pub(super) fn add_options(headers: &mut HeaderMap, max: u64, max_age: Duration) {
    add_limit(headers, max, Some(max_age));
    headers.insert(TUS_RESUMABLE, HeaderValue::from_static(TUS));
    headers.insert(TUS_VERSION, HeaderValue::from_static(TUS));
    headers.insert(TUS_EXTENSION, HeaderValue::from_static(EXTENSIONS));
    headers.insert(TUS_MAX_SIZE, max.into());
}

fn add_limit(headers: &mut HeaderMap, max: u64, age: Option<Duration>) {
    let age = age.map_or_else(String::new, |age| format!(", max-age={}", age.as_secs()));
    if let Ok(limit) = HeaderValue::try_from(format!("max-size={max}{age}")) {
        headers.insert(UPLOAD_LIMIT, limit);
    }
}

fn is_complete(head: &Head) -> Result<Option<bool>, Problem> {
    match text(head, &UPLOAD_COMPLETE)? {
        None => Ok(None),
        Some("?1") => Ok(Some(true)),
        Some("?0") => Ok(Some(false)),
        Some(other) => Err(bad(format!("Upload-Complete is ?0 or ?1, not {}.", quoted(other)))),
    }
}

/// The announced size of the whole upload.
pub(super) fn length(head: &Head) -> Result<Option<u64>, Problem> {
    number(head, &UPLOAD_LENGTH)
}

/// The offset at which a part begins.
pub(super) fn offset(head: &Head) -> Result<u64, Problem> {
    let missing = || bad("The header Upload-Offset is missing: HEAD gives the offset.".into());
    number(head, &UPLOAD_OFFSET)?.ok_or_else(missing)
}

fn number(head: &Head, name: &HeaderName) -> Result<Option<u64>, Problem> {
    let Some(given) = text(head, name)? else { return Ok(None) };
    let number = given.parse().ok().filter(|_| given.bytes().all(|byte| byte.is_ascii_digit()));
    number.map(Some).ok_or_else(|| bad(format!("{name} is no number: {}.", quoted(given))))
}

/// The metadata of tus: keys with values in base64.
pub(super) fn metadata(head: &Head) -> Result<Vec<(String, String)>, Problem> {
    let Some(given) = text(head, &UPLOAD_METADATA)? else { return Ok(Vec::new()) };

    let pairs = given.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once(' ').unwrap_or((pair, ""));
        let value = BASE64_STANDARD.decode(value.trim()).ok();
        let value = value.and_then(|value| String::from_utf8(value).ok());
        let wrong = || bad(format!("Upload-Metadata: {} is not UTF-8 in base64.", quoted(key)));
        Ok((key.to_owned(), value.ok_or_else(wrong)?))
    });
    pairs.collect()
}

/// A date as HTTP writes it (RFC 9110, 5.6.7).
fn http_date(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let date = chrono::DateTime::from_timestamp_millis(millis).unwrap_or_default();
    date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_dialect_is_that_of_the_headers() {
        let begins = |pairs: &[_]| Dialect::of_creation(&Head::of(pairs)).map_err(|p| p.status);

        assert_eq!(begins(&[]), Ok(None));
        assert_eq!(begins(&[(UPLOAD_COMPLETE, "?1")]), Ok(None));
        assert_eq!(begins(&[(UPLOAD_COMPLETE, "?0")]), Ok(Some(Dialect::Ietf)));
        assert_eq!(begins(&[(TUS_RESUMABLE, "1.0.0")]), Ok(Some(Dialect::Tus)));
        assert_eq!(begins(&[(TUS_RESUMABLE, "0.2")]), Err(StatusCode::PRECONDITION_FAILED));
        assert_eq!(begins(&[(UPLOAD_COMPLETE, "yes")]), Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn numbers_and_metadata_are_read() {
        let found = Head::of(&[
            (UPLOAD_OFFSET, "12"),
            (UPLOAD_METADATA, "filename R3LDtsOfZS50eHQ=, is_confidential,filetype dGV4dC9jc3Y="),
        ]);

        assert_eq!(offset(&found), Ok(12));
        let pairs = [("filename", "Größe.txt"), ("is_confidential", ""), ("filetype", "text/csv")];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(metadata(&found).unwrap(), pairs);

        for wrong in ["-1", "+1", "1.5", "", "99999999999999999999"] {
            assert!(offset(&Head::of(&[(UPLOAD_OFFSET, wrong)])).is_err(), "{wrong}");
        }
        assert!(metadata(&Head::of(&[(UPLOAD_METADATA, "filename %%")])).is_err());
    }

    #[test]
    fn dates_are_those_of_http() {
        let time = Timestamp::from_millis(784_111_777_000);
        assert_eq!(http_date(time), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
