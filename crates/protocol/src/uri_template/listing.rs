//! [`ListingPrefix`]: where the URIs of a template are in a sorted listing.

use std::collections::BTreeMap;

use super::{TemplatePart, UriTemplate};

/// The prefix of all URIs of a template in which a variable begins with some text.
#[derive(Debug, PartialEq, Eq)]
pub struct ListingPrefix {
    /// The prefix of these URIs.
    pub prefix: String,
    /// The length of the part before the variable in bytes, if everything before it is known
    /// and the variable is within one segment.
    pub before_variable: Option<usize>,
}

impl UriTemplate {
    /// The longest prefix that all URIs have in which `variable` begins with `typed` and the
    /// `known` variables have their values. It ends before the first character that some URIs
    /// may have percent-encoded.
    pub fn listing_prefix(
        &self,
        variable: &str,
        typed: &str,
        known: &BTreeMap<String, String>,
    ) -> ListingPrefix {
        let mut prefix = String::new();
        for part in &self.parts {
            let (value, multi_segment) = match part {
                TemplatePart::Literal(literal) => {
                    prefix.push_str(literal);
                    continue;
                }
                TemplatePart::Variable { name, multi_segment } if name == variable => {
                    let before_variable = (!multi_segment).then_some(prefix.len());
                    prefix.push_str(plain_start(typed, *multi_segment));
                    return ListingPrefix { prefix, before_variable };
                }
                TemplatePart::Variable { name, multi_segment } => (known.get(name), *multi_segment),
                TemplatePart::BaseUri(_) | TemplatePart::Query(_) => break,
            };

            let Some(value) = value.filter(|value| !value.is_empty()) else { break };
            let plain = plain_start(value, multi_segment);
            prefix.push_str(plain);
            if plain.len() < value.len() {
                break;
            }
        }

        ListingPrefix { prefix, before_variable: None }
    }
}

/// The start of a value that looks the same in every URI: unreserved characters
/// (RFC 3986, 2.3).
fn plain_start(value: &str, multi_segment: bool) -> &str {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c) || (multi_segment && c == '/');
    &value[..value.find(|c| !is_plain(c)).unwrap_or(value.len())]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_prefix_ends_before_the_first_uncertain_character() {
        let template = UriTemplate::parse("logs://{service}/on/{date}{?part}").unwrap();
        let known = BTreeMap::from([("service".to_owned(), "web".to_owned())]);
        let encoded = BTreeMap::from([("service".to_owned(), "web app".to_owned())]);
        let none = BTreeMap::new();
        for (variable, typed, known, prefix, before) in [
            ("service", "we", &none, "logs://we", Some(7)),
            ("service", "web a", &none, "logs://web", Some(7)),
            ("date", "2026", &known, "logs://web/on/2026", Some(14)),
            ("date", "2026", &none, "logs://", None),
            ("date", "2026", &encoded, "logs://web", None),
            ("part", "1", &known, "logs://web/on/", None),
        ] {
            let found = template.listing_prefix(variable, typed, known);
            let expected = ListingPrefix { prefix: prefix.to_owned(), before_variable: before };
            assert_eq!(found, expected, "{variable}={typed}");
        }

        let files = UriTemplate::parse("file:///{+path}").unwrap();
        let expected = ListingPrefix { prefix: "file:///a/b".to_owned(), before_variable: None };
        assert_eq!(files.listing_prefix("path", "a/b", &none), expected);
    }
}
