//! Matches a template against a URI.

use super::{TemplatePart, UriTemplate, Variables, percent, value_problem};

impl UriTemplate {
    /// The values of the variables, or `None` if the URI does not match.
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        let mut variables = Variables::new();
        let mut rest = uri;
        if let Some(TemplatePart::Query(names)) = self.parts.last() {
            rest = take_query(rest, names, &mut variables)?;
        }

        for (index, part) in self.parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                TemplatePart::BaseUri(name) => {
                    // Without a parameter the template would match every URI.
                    if variables.is_empty() || !rest.contains(':') {
                        return None;
                    }
                    variables.insert(name.clone(), rest.to_owned());
                    rest = "";
                }
                TemplatePart::Query(_) => {}
                TemplatePart::Variable { name, multi_segment } => {
                    let end = end_of_value(rest, *multi_segment, &self.parts[index + 1..])?;
                    variables.insert(name.clone(), decode(&rest[..end], *multi_segment)?);
                    rest = &rest[end..];
                }
            }
        }

        rest.is_empty().then_some(variables)
    }
}

/// The length of a variable's value at the start of `rest`, which the following parts of the
/// template limit. `None` if they do not match.
fn end_of_value(rest: &str, multi_segment: bool, following: &[TemplatePart]) -> Option<usize> {
    let stops: &[char] = if multi_segment { &['?', '#'] } else { &['/', '?', '#'] };
    let max = rest.find(stops).unwrap_or(rest.len());

    let end = match following {
        [] | [TemplatePart::Query(_)] => max,
        // The last literal is searched from the end, since the value itself may contain it.
        [TemplatePart::Literal(last)] | [TemplatePart::Literal(last), TemplatePart::Query(_)] => {
            rest.strip_suffix(&**last)?.len()
        }
        [TemplatePart::Literal(next), ..] => rest.find(next.as_str())?,
        // The parser allows nothing else after a variable.
        [_, ..] => return None,
    };

    (end <= max).then_some(end)
}

/// Removes the named parameters from the end of a URI, which may have a query
/// before them. `None` if a parameter occurs twice or if the remaining URI has
/// named parameters of its own.
fn take_query<'a>(uri: &'a str, names: &[String], variables: &mut Variables) -> Option<&'a str> {
    let mut rest = uri;
    let mut is_first = false;
    while let Some(separator) = rest.rfind(['?', '&']) {
        let Some((name, value)) = rest[separator + 1..].split_once('=') else { break };
        if !names.iter().any(|known| known == name) {
            break;
        }

        if is_first || variables.insert(name.to_owned(), percent::decode(value)?).is_some() {
            return None;
        }

        is_first = rest.as_bytes()[separator] == b'?';
        rest = &rest[..separator];
    }
    Some(rest)
}

/// Percent-decodes one path segment. `None` if the result is not a plain file
/// name.
pub fn decode_segment(encoded: &str) -> Option<String> {
    decode(encoded, false).filter(|text| !text.contains(['/', '\\']))
}

/// Percent-decodes the value of a variable. `None` if it is empty, not UTF-8 or
/// could lead out of the template's prefix.
fn decode(encoded: &str, multi_segment: bool) -> Option<String> {
    let text = percent::decode(encoded)?;
    // Checked after decoding, so that an encoded slash cannot hide a segment.
    value_problem(&text, multi_segment).is_none().then_some(text)
}
