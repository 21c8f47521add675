//! Conditional requests (RFC 9110, 13), by entity tags.

use http::{HeaderMap, HeaderName, header};
use larder_store::store::Entry;

/// The strong entity tag of a revision.
pub(in crate::http) fn entity_tag(entry: &Entry) -> String {
    format!("\"{}-{}\"", entry.revision, entry.sha256)
}

/// The strong entity tag of a revision in the content coding zstd.
pub(in crate::http) fn zstd_tag(entry: &Entry) -> String {
    format!("\"{}-{}{ZSTD_TAG}", entry.revision, entry.sha256)
}

/// The end of the tags of encoded content.
const ZSTD_TAG: &str = "-zstd\"";

/// What the preconditions of a request demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Precondition {
    /// The request is served.
    Holds,
    /// 304: the client has this content.
    NotModified,
    /// 412: the client expects other content.
    Failed,
}

/// Checks `If-Match` and `If-None-Match` of a request that reads content with that strong tag.
pub(in crate::http) fn check(headers: &HeaderMap, tag: &str) -> Precondition {
    if !if_match(headers, tag) {
        return Precondition::Failed;
    }

    let matches = |given: &str| given.strip_prefix("W/").unwrap_or(given) == tag;
    match any_tag(headers, &header::IF_NONE_MATCH, matches) {
        Some(true) => Precondition::NotModified,
        _ => Precondition::Holds,
    }
}

/// Whether `If-Match` is absent or names the tag, or that of the same content in another coding.
pub(in crate::http) fn if_match(headers: &HeaderMap, tag: &str) -> bool {
    let content =
        |tag: &str| tag.strip_suffix(ZSTD_TAG).or(tag.strip_suffix('"')).map(str::to_owned);
    let expected = content(tag);
    any_tag(headers, &header::IF_MATCH, |given| content(given) == expected).unwrap_or(true)
}

/// Whether `Range` applies: `If-Range` is absent or is the tag. Content has no date, so no date
/// matches.
pub(in crate::http) fn if_range(headers: &HeaderMap, tag: &str) -> bool {
    headers.get(header::IF_RANGE).is_none_or(|given| given.as_bytes() == tag.as_bytes())
}

/// Whether `*` or any tag of a list satisfies the predicate. None without the header. The tags
/// of this server have no commas.
fn any_tag(
    headers: &HeaderMap,
    name: &HeaderName,
    is_match: impl Fn(&str) -> bool,
) -> Option<bool> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    let mut tags = values.filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
    Some(tags.any(|given| given.trim() == "*" || is_match(given.trim())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TAG: &str = "\"1-ab\"";

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn reading_depends_on_the_tag() {
        use Precondition::{Failed, Holds, NotModified};
        assert_eq!(check(&HeaderMap::new(), TAG), Holds);

        for (name, value, expected) in [
            (header::IF_NONE_MATCH, "\"1-ab\"", NotModified),
            (header::IF_NONE_MATCH, "\"0\", W/\"1-ab\"", NotModified),
            (header::IF_NONE_MATCH, "*", NotModified),
            (header::IF_NONE_MATCH, "\"2-ab\"", Holds),
            (header::IF_MATCH, "\"0\", \"1-ab\"", Holds),
            (header::IF_MATCH, "\"1-ab-zstd\"", Holds),
            (header::IF_NONE_MATCH, "\"1-ab-zstd\"", Holds),
            (header::IF_MATCH, "*", Holds),
            (header::IF_MATCH, "W/\"1-ab\"", Failed),
            (header::IF_MATCH, "\"2-ab\"", Failed),
        ] {
            assert_eq!(check(&headers(name.clone(), value), TAG), expected, "{name}: {value}");
        }
    }

    #[test]
    fn a_range_applies_only_to_the_content_that_the_client_knows() {
        assert!(if_range(&HeaderMap::new(), TAG));
        assert!(if_range(&headers(header::IF_RANGE, TAG), TAG));

        for other in ["\"2-ab\"", "W/\"1-ab\"", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert!(!if_range(&headers(header::IF_RANGE, other), TAG), "{other}");
        }
    }
}
