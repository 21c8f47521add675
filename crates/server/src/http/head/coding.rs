//! The content coding of a response (RFC 9110, 8.4): content is stored in frames of zstd, which
//! go to clients that accept them as they are.

use super::weight::weight;

/// Whether an item of `Accept-Encoding` accepts zstd.
pub(super) fn is_zstd(item: &str) -> bool {
    let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
    // A weight that is no number is not trusted to mean more than 0.
    let is_acceptable = weight(parameters).is_none_or(|weight| weight.is_ok_and(|q| q > 0.0));
    coding.trim().eq_ignore_ascii_case("zstd") && is_acceptable
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT_ENCODING;

    use super::super::Head;

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
            assert_eq!(Head::of(&[(ACCEPT_ENCODING, given)]).accepts_zstd(), expected, "{given:?}");
        }

        assert!(!Head::of(&[]).accepts_zstd());
    }
}
