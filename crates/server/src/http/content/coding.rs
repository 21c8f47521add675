//! The content coding of a response (RFC 9110, 8.4): content is stored in frames of zstd, which
//! go to clients that accept them as they are.

use http::{HeaderMap, header};

use crate::http::weight::weight;

/// Whether the client accepts zstd (RFC 8878).
pub(super) fn accepts_zstd(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(',')).any(|item| {
        let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
        // A weight that is no number is not trusted to mean more than 0.
        let is_acceptable = weight(parameters).is_none_or(|weight| weight.is_ok_and(|q| q > 0.0));
        coding.trim().eq_ignore_ascii_case("zstd") && is_acceptable
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn zstd_has_to_be_named_and_may_be_refused() {
        for (given, expected) in [
            ("zstd", true),
            ("gzip, deflate, br, ZSTD", true),
            ("gzip;q=1.0, zstd ; q=0.5", true),
            ("*", false),
            ("gzip", false),
            ("zstd;q=0", false),
            ("zstd;q=0.000, gzip", false),
            ("zstd;q=x", false),
            ("xzstd", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, given.parse().unwrap())]);
            assert_eq!(accepts_zstd(&headers), expected, "{given:?}");
        }

        assert!(!accepts_zstd(&HeaderMap::new()));
    }
}
