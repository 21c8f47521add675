//! URI templates (RFC 6570), matched against URIs: `{name}`, `{+name}` and, at
//! the end, `{?name,other}`. Workflows share the parser of braces, the
//! expansion of values and the percent-encoding.

pub mod expand;
mod listing;
mod matching;
pub mod parse;
pub mod percent;

use std::collections::BTreeMap;

pub use listing::ListingPrefix;
pub use matching::decode_segment;

/// The values of a template's variables in one URI, percent-decoded.
pub type Variables = BTreeMap<String, String>;

/// A parsed template that extracts the values of its variables from a URI.
///
/// ```
/// use larder_protocol::uri_template::UriTemplate;
///
/// let template = UriTemplate::parse("logs://{service}/{date}").unwrap();
/// let variables = template.matches("logs://web%20app/2026-01-01").unwrap();
/// assert_eq!(variables["service"], "web app");
/// assert!(template.matches("logs://web/2026/01").is_none());
/// assert_eq!(template.matches("logs://a%2Fb/2026-01-01").unwrap()["service"], "a/b");
/// assert!(template.matches("logs://..%2fetc/passwd").is_none());
/// assert!(UriTemplate::parse("logs://{a}{b}").is_err());
///
/// let template = UriTemplate::parse("file:///{+path}").unwrap();
/// assert_eq!(template.matches("file:///a/b.txt").unwrap()["path"], "a/b.txt");
/// assert!(template.matches("file:///a/../b.txt").is_none());
///
/// // Query parameters are optional, and the URI before them may have a query.
/// let template = UriTemplate::parse("{+uri}{?lines,bytes}").unwrap();
/// let variables = template.matches("a://b?c=d?lines=1-20").unwrap();
/// assert_eq!((&*variables["uri"], &*variables["lines"]), ("a://b?c=d", "1-20"));
/// assert!(template.matches("a://b?c=d").is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Variable {
        name: String,
        /// Written `{+name}`: the value may span several path segments.
        multi_segment: bool,
    },
    /// A leading `{+name}` before query parameters: a complete URI, not decoded.
    BaseUri(String),
    /// The names of optional query parameters.
    Query(Vec<String>),
}

impl UriTemplate {
    /// The names of the variables, in the order of the template.
    pub fn variables(&self) -> impl Iterator<Item = &String> + Clone {
        self.parts.iter().flat_map(TemplatePart::names)
    }

    /// The variable whose value is the complete URI before the query
    /// parameters, if the template has one.
    pub fn base_uri_variable(&self) -> Option<&str> {
        match self.parts.first() {
            Some(TemplatePart::BaseUri(name)) => Some(name),
            _ => None,
        }
    }
}

impl TemplatePart {
    fn names(&self) -> &[String] {
        match self {
            Self::Variable { name, .. } | Self::BaseUri(name) => std::slice::from_ref(name),
            Self::Query(names) => names,
            Self::Literal(_) => &[],
        }
    }
}

/// The reason why a value is not safe in a URI: a handler that uses it as a file name or
/// a path would leave the template's prefix. A slash in a value of one segment
/// is data, because it can only lead further down.
fn value_problem(value: &str, multi_segment: bool) -> Option<&'static str> {
    let mut segments = value.split(['/', '\\']);
    if value.is_empty() {
        Some("is empty")
    } else if value.contains('\0') {
        Some("contains a NUL")
    } else if value.starts_with(['/', '\\']) {
        Some("starts with a slash")
    } else if segments.any(|segment| matches!(segment, "." | "..")) {
        Some("contains a . or .. segment")
    } else if multi_segment && value.contains('\\') {
        Some("contains a backslash")
    } else if multi_segment && value.split('/').any(str::is_empty) {
        Some("contains an empty segment")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::UriTemplate;

    #[test]
    fn several_segments_are_matched_only_where_asked_for() {
        let many = UriTemplate::parse("docs://{+path}/raw").unwrap();
        assert_eq!(many.matches("docs://a/raw/b/raw").unwrap()["path"], "a/raw/b");
        assert!(many.matches("docs://a?x/raw").is_none());

        let both = UriTemplate::parse("x://{a}/in/{+rest}").unwrap();
        let variables = both.matches("x://one/in/two/three").unwrap();
        assert_eq!((&*variables["a"], &*variables["rest"]), ("one", "two/three"));
        assert!(both.matches("x://one/two/in/three").is_none());
    }

    #[test]
    fn a_value_may_contain_the_text_after_it() {
        let files = UriTemplate::parse("logs://{name}.log").unwrap();
        assert_eq!(files.matches("logs://a.log.log").unwrap()["name"], "a.log");

        let below = UriTemplate::parse("logs://{name}/raw{?part}").unwrap();
        assert_eq!(below.matches("logs://raw/raw?part=1").unwrap()["name"], "raw");
        assert!(below.matches("logs://a/raw/b/raw").is_none());
    }

    #[test]
    fn query_parameters_are_optional_and_come_last() {
        let logs = UriTemplate::parse("logs://{service}{?from,to}").unwrap();
        let seen = |uri: &str| logs.matches(uri).map(|v| v.into_iter().collect::<Vec<_>>());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());

        assert_eq!(seen("logs://web"), Some(vec![pair("service", "web")]));
        assert_eq!(
            seen("logs://web?to=a%2Fb&from="),
            Some(vec![pair("from", ""), pair("service", "web"), pair("to", "a/b")])
        );

        for other in [
            "logs://web?to=1&to=2",
            "logs://web?other=1",
            "logs://web?to=1?from=2",
            "logs://web?to",
        ] {
            assert_eq!(seen(other), None, "{other}");
        }

        for bad in [
            "x://{a}{?a}",
            "x://{a}{?b,b}",
            "x://{?}",
            "x://a{?b}/c",
            "{+uri}",
            "{+a}/b{?c}",
            "{a}{?b}",
        ] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_whole_uri_may_have_a_query_of_its_own() {
        let windows = UriTemplate::parse("{+uri}{?lines,bytes}").unwrap();
        let uri = |window: &str| windows.matches(window).map(|v| v["uri"].clone());

        assert_eq!(uri("x:a?lines=1").as_deref(), Some("x:a"));
        assert_eq!(uri("x://a?b=c&lines=1").as_deref(), Some("x://a?b=c"));
        assert_eq!(uri("x://a?b=c?lines=1&bytes=2").as_deref(), Some("x://a?b=c"));

        // A window has no window of its own.
        assert_eq!(uri("x:a?lines=1?lines=2"), None);
        assert_eq!(uri("x:a?lines=1?bytes=2"), None);
        assert_eq!(uri("a?lines=1"), None);
        assert_eq!(uri("x:a"), None);
    }

    #[test]
    fn no_value_leaves_the_folder_before_it() {
        let many = UriTemplate::parse("file:///{+path}").unwrap();
        for path in [
            "../a",
            "a/../../b",
            "%2e%2e/a",
            "a%2f..%2fb",
            "/etc/passwd",
            "%2fetc",
            "a//b",
            "a%00",
            "a%5c..",
            "",
            "a/",
            "a/./b",
        ] {
            assert!(many.matches(&format!("file:///{path}")).is_none(), "{path}");
        }
        assert_eq!(many.matches("file:///a%2fb").unwrap()["path"], "a/b");
    }
}
