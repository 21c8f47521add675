//! Conditional requests (RFC 9110, 13), by entity tags.

use http::{HeaderName, header};
use larder_store::store::Entry;

use crate::http::head::Head;

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

/// The outcome of a request's preconditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Precondition {
    /// The request is served.
    Holds,
    /// 304: the client has this content.
    NotModified,
    /// 412: the client expects other content.
    Failed,
}

/// The preconditions of a request, `If-Match` and `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
}

impl Conditions {
    pub(in crate::http) fn of(head: &Head) -> Self {
        Self {
            if_match: Tags::of(head, &header::IF_MATCH),
            if_none_match: Tags::of(head, &header::IF_NONE_MATCH),
        }
    }

    /// Whether the request has no preconditions.
    pub(in crate::http) fn is_empty(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none()
    }

    /// Whether the request is for content that exists.
    pub(in crate::http) fn has_match(&self) -> bool {
        self.if_match.is_some()
    }

    /// Checks a request that reads content with that strong tag.
    pub(in crate::http) fn check(&self, tag: &str) -> Precondition {
        if !self.matches(tag) {
            return Precondition::Failed;
        }

        let matches = |given: &str| given.strip_prefix("W/").unwrap_or(given) == tag;
        match &self.if_none_match {
            Some(tags) if tags.any(matches) => Precondition::NotModified,
            _ => Precondition::Holds,
        }
    }

    /// Whether `If-Match` is absent or names the tag, or that of the same content in another
    /// coding.
    pub(in crate::http) fn matches(&self, tag: &str) -> bool {
        let content =
            |tag: &str| tag.strip_suffix(ZSTD_TAG).or(tag.strip_suffix('"')).map(str::to_owned);
        let expected = content(tag);
        self.if_match.as_ref().is_none_or(|tags| tags.any(|given| content(given) == expected))
    }
}

/// Whether `Range` applies: `If-Range` is absent or is the tag. Content has no date, so no date
/// matches.
pub(in crate::http) fn if_range(head: &Head, tag: &str) -> bool {
    head.first(&header::IF_RANGE).is_none_or(|given| given.as_bytes() == tag.as_bytes())
}

/// The entity tags of a list. The tags of this server have no commas.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tags(Vec<String>);

impl Tags {
    fn of(head: &Head, name: &HeaderName) -> Option<Self> {
        head.has(name).then(|| Self(head.list(name).map(str::to_owned).collect()))
    }

    /// Whether `*` or any tag satisfies the predicate.
    fn any(&self, is_match: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|given| given == "*" || is_match(given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"1-ab\"";

    fn check(head: &Head) -> Precondition {
        Conditions::of(head).check(TAG)
    }

    #[test]
    fn reading_depends_on_the_tag() {
        use Precondition::{Failed, Holds, NotModified};
        assert_eq!(check(&Head::of(&[])), Holds);

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
            assert_eq!(check(&Head::of(&[(name.clone(), value)])), expected, "{name}: {value}");
        }
    }

    #[test]
    fn a_range_applies_only_to_the_content_that_the_client_knows() {
        assert!(if_range(&Head::of(&[]), TAG));
        assert!(if_range(&Head::of(&[(header::IF_RANGE, TAG)]), TAG));

        for other in ["\"2-ab\"", "W/\"1-ab\"", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert!(!if_range(&Head::of(&[(header::IF_RANGE, other)]), TAG), "{other}");
        }
    }
}
