//! URIs with variables: `docs://{page_id}` (RFC 6570, level 1) and
//! `files:///{+path}` (level 2, for a path of several segments, which keeps the
//! reserved characters that a path may contain).
//!
//! Values are percent-encoded and never parsed again. They cannot change the
//! literal text before them, as `..` would.

use std::{collections::BTreeMap, fmt};

use larder_protocol::uri_template::{
    expand::expand,
    parse::{TemplatePiece, is_name, pieces},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A URI with variables.
///
/// ```
/// use larder_server::workflow::UriPattern;
///
/// let pattern = UriPattern::parse("docs://{page}").unwrap();
/// let uri = pattern.expand(|_| Ok::<_, ()>("a/b?c#d".into())).unwrap();
/// assert_eq!(uri, "docs://a%2Fb%3Fc%23d");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriPattern {
    parts: Vec<UriPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum UriPart {
    Literal(String),
    Variable { name: String, keeps_slashes: bool },
}

/// Why text is not a pattern, or a value cannot be inserted into one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is not a pattern.
    #[error("{0}")]
    Malformed(String),
    /// The value is not safe in a URI.
    #[error("the value {value:?} of {{{name}}} {problem}")]
    Value {
        /// The variable.
        name: String,
        /// The beginning of the value.
        value: String,
        /// The problem of the pattern.
        problem: &'static str,
    },
}

/// Why a pattern was not expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpansionError<E> {
    /// A variable has no value, for this reason.
    NoValue(E),
    /// A value cannot be inserted: [`PatternError::Value`].
    Pattern(PatternError),
}

impl UriPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`PatternError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let malformed = |message: String| Err(PatternError::Malformed(message));

        if let Some(start) = text.find("${") {
            let inner = text[start + 2..].split('}').next().unwrap_or_default();
            let variable = inner.rsplit('.').next().unwrap_or(inner);
            let (step, path) = inner.split_once('.').unwrap_or((inner, ""));
            return malformed(format!(
                "${{{inner}}} is not the syntax of variables: write {{{variable}}} and .with_template_binding({variable:?}, field({step:?}, {path:?}))"
            ));
        }

        let mut parts = Vec::new();
        for piece in pieces(text) {
            let expression = match piece {
                Err(error) => return malformed(error.to_string()),
                Ok(TemplatePiece::Text(text)) => {
                    parts.push(UriPart::Literal(text.to_owned()));
                    continue;
                }
                Ok(TemplatePiece::Expression(expression)) => expression,
            };

            let multi_segment =
                expression.strip_prefix('+').or_else(|| expression.strip_suffix('*'));
            let name = multi_segment.unwrap_or(expression);
            if !is_name(name, "_-") {
                return malformed(format!("{{{expression}}} is not a variable"));
            }

            let name = name.to_owned();
            parts.push(UriPart::Variable { name, keeps_slashes: multi_segment.is_some() });
        }

        let has_scheme = matches!(parts.first(), Some(UriPart::Literal(l)) if l.contains(':'));
        if !has_scheme {
            return malformed("it must begin with a scheme, such as docs://".into());
        }
        Ok(Self { parts })
    }

    /// The names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            UriPart::Variable { name, .. } => Some(name.as_str()),
            UriPart::Literal(_) => None,
        })
    }

    /// The URI, if it has no variables.
    pub fn literal(&self) -> Option<&str> {
        match &self.parts[..] {
            [UriPart::Literal(literal)] => Some(literal),
            _ => None,
        }
    }

    /// Inserts values, each percent-encoded.
    ///
    /// # Errors
    /// The error of `value`, or a value that is not safe in a URI.
    pub fn expand<E>(
        &self,
        mut value: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<String, ExpansionError<E>> {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                UriPart::Literal(literal) => uri.push_str(literal),
                UriPart::Variable { name, keeps_slashes } => {
                    let value = value(name).map_err(ExpansionError::NoValue)?;

                    match expand(&value, *keeps_slashes) {
                        Ok(encoded) => uri.push_str(&encoded),
                        Err(problem) => {
                            let value = value.chars().take(80).collect();
                            let name = name.clone();
                            let unsafe_value = PatternError::Value { name, value, problem };
                            return Err(ExpansionError::Pattern(unsafe_value));
                        }
                    }
                }
            }
        }
        Ok(uri)
    }

    /// Inserts values from a map. A variable without a value counts as empty.
    ///
    /// # Errors
    /// [`PatternError::Value`].
    pub fn fill(&self, values: &BTreeMap<String, String>) -> Result<String, PatternError> {
        let value = |name: &str| {
            Ok::<_, std::convert::Infallible>(values.get(name).cloned().unwrap_or_default())
        };

        self.expand(value).map_err(|error| match error {
            ExpansionError::Pattern(error) => error,
            ExpansionError::NoValue(never) => match never {},
        })
    }
}

impl fmt::Display for UriPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                UriPart::Literal(literal) => f.write_str(literal)?,
                UriPart::Variable { name, keeps_slashes: false } => write!(f, "{{{name}}}")?,
                UriPart::Variable { name, keeps_slashes: true } => write!(f, "{{+{name}}}")?,
            }
        }
        Ok(())
    }
}

/// A URI in a definition, parsed when the definition is made. The check of the
/// workflow reports its errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
pub struct UncheckedUri {
    text: String,
    pattern: Result<UriPattern, PatternError>,
}

impl UncheckedUri {
    /// The text of the URI.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parsed pattern.
    ///
    /// # Errors
    /// [`PatternError::Malformed`].
    pub fn pattern(&self) -> Result<&UriPattern, &PatternError> {
        self.pattern.as_ref()
    }
}

impl From<String> for UncheckedUri {
    fn from(text: String) -> Self {
        Self { pattern: UriPattern::parse(&text), text }
    }
}

impl From<UncheckedUri> for String {
    fn from(uri: UncheckedUri) -> Self {
        uri.text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use larder_protocol::uri_template::UriTemplate;

    fn filled(pattern: &str, value: &str) -> Result<String, PatternError> {
        let values = BTreeMap::from([("v".to_owned(), value.to_owned())]);
        UriPattern::parse(pattern).unwrap().fill(&values)
    }

    #[test]
    fn values_are_encoded_and_cannot_leave_their_segment() {
        assert_eq!(filled("d://{v}", "a/b?c#d").unwrap(), "d://a%2Fb%3Fc%23d");
        assert_eq!(filled("d://x/{v}", "x://evil").unwrap(), "d://x/x%3A%2F%2Fevil");
        assert_eq!(filled("d://{v}", "{v}").unwrap(), "d://%7Bv%7D");
        assert_eq!(filled("d:///{+v}", "a b/ü").unwrap(), "d:///a%20b/%C3%BC");
        assert_eq!(filled("d:///{v*}", "a/b").unwrap(), "d:///a/b");
        assert_eq!(filled("d:///{+v}", "ana@x.com/a:b,c").unwrap(), "d:///ana@x.com/a:b,c");
        assert_eq!(filled("d:///{+v}", "a?b#c[d]%2F").unwrap(), "d:///a%3Fb%23c%5Bd%5D%252F");

        for (pattern, value) in [
            ("d://{v}", ".."),
            ("d://{v}", "."),
            ("d://{v}", ""),
            ("d://{v}", "../../secret"),
            ("d://{v}", "a\\..\\b"),
            ("d://{v}", "/etc"),
            ("d://{v}", "a\0"),
            ("d:///{+v}", "../x"),
            ("d:///{+v}", "a/../x"),
            ("d:///{+v}", "/etc"),
            ("d:///{+v}", "a\\..\\b"),
        ] {
            assert!(filled(pattern, value).is_err(), "{pattern} {value}");
        }
    }

    #[test]
    fn a_value_is_never_expanded_again() {
        let pattern = UriPattern::parse("d://{a}/{b}").unwrap();
        let values = BTreeMap::from([("a".into(), "{b}".into()), ("b".into(), "X".into())]);

        for _ in 0..100 {
            assert_eq!(pattern.fill(&values).unwrap(), "d://%7Bb%7D/X");
        }
    }

    #[test]
    fn errors_say_what_is_wrong_with_a_pattern() {
        for text in ["d://{", "d://}", "d://{}", "d://{a b}", "{a}", "no-scheme/{a}"] {
            assert!(UriPattern::parse(text).is_err(), "{text}");
        }

        let advice = UriPattern::parse("if://${progress.game_id}").unwrap_err().to_string();
        assert!(advice.contains("{game_id}"), "{advice}");
        assert!(advice.contains(r#"field("progress", "game_id")"#), "{advice}");
    }

    proptest! {
        #[test]
        fn a_template_reads_back_what_was_inserted(value in "\\PC{1,40}") {
            prop_assume!(expand(&value, false).is_ok());
            let uri = filled("d://x/{v}/y", &value).unwrap();

            prop_assert_eq!(&uri, &filled("d://x/{v}/y", &value).unwrap());
            prop_assert!(uri.starts_with("d://x/") && uri.ends_with("/y"));
            prop_assert!(larder_store::store::ResourceUri::parse(&uri).is_ok());

            let template = UriTemplate::parse("d://x/{v}/y").unwrap();
            prop_assert_eq!(&template.matches(&uri).unwrap()["v"], &value);
        }

        #[test]
        fn no_value_leaves_the_literal_prefix(value in any::<String>()) {
            for pattern in ["d://x/{v}", "d://x/{+v}"] {
                if let Ok(uri) = filled(pattern, &value) {
                    prop_assert!(uri.starts_with("d://x/"));
                    let rest = &uri["d://x/".len()..];
                    prop_assert!(!rest.split('/').any(|s| s == ".." || s == "."));
                    prop_assert!(!rest.contains(['?', '#']));
                }
            }
        }
    }
}
