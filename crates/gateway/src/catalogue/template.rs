//! Matches URIs against the URI templates of upstreams (RFC 6570, all operators).

/// A part of a template.
enum TemplatePart<'a> {
    Literal(&'a [u8]),
    /// An expression: its operator, or a space without one, and its variables.
    Expression(u8, &'a str),
}

/// Whether a template can expand to this URI.
pub(super) fn is_expansion(template: &str, uri: &str) -> bool {
    let Some(parts) = parse(template) else { return false };
    let uri = uri.as_bytes();

    // The offsets to which the parts so far can reach.
    let mut reached = vec![false; uri.len() + 1];
    reached[0] = true;
    for part in &parts {
        match part {
            TemplatePart::Literal(text) => reached = after_literal(&reached, uri, text),
            TemplatePart::Expression(operator, _) => reach_on(&mut reached, uri, *operator),
        }
    }

    reached[uri.len()]
}

/// Whether a template names this query parameter.
pub(super) fn names_parameter(template: &str, parameter: &str) -> bool {
    parse(template).unwrap_or_default().into_iter().any(|part| match part {
        TemplatePart::Expression(b'?' | b'&', variables) => {
            variables.split(',').any(|variable| base_name(variable) == parameter)
        }
        TemplatePart::Expression(..) => false,
        TemplatePart::Literal(text) => {
            let pairs = text.split(|byte| matches!(byte, b'?' | b'&'));
            pairs.skip(1).any(|pair| {
                pair.strip_prefix(parameter.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
            })
        }
    })
}

/// A variable's name without its modifiers: `*`, and `:` with a length.
fn base_name(variable: &str) -> &str {
    variable.split(['*', ':']).next().unwrap_or_default().trim()
}

/// The parts of a template. `None` if a brace has no counterpart.
fn parse(template: &str) -> Option<Vec<TemplatePart<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let (expression, after) = after.split_once('}')?;
        let operator = *expression.as_bytes().first()?;
        let has_operator = b"+#./;?&".contains(&operator);
        let variables = if has_operator { &expression[1..] } else { expression };

        parts.push(TemplatePart::Literal(literal.as_bytes()));
        let operator = if has_operator { operator } else { b' ' };
        parts.push(TemplatePart::Expression(operator, variables));
        rest = after;
    }

    parts.push(TemplatePart::Literal(rest.as_bytes()));
    Some(parts)
}

fn after_literal(reached: &[bool], uri: &[u8], text: &[u8]) -> Vec<bool> {
    let mut after = vec![false; reached.len()];
    for (from, _) in reached.iter().enumerate().filter(|(_, is_reached)| **is_reached) {
        if uri[from..].starts_with(text) {
            after[from + text.len()] = true;
        }
    }
    after
}

/// Adds the offsets to which an expression of this operator reaches. Undefined variables expand
/// to nothing, so each offset stays.
fn reach_on(reached: &mut [bool], uri: &[u8], operator: u8) {
    let mut is_within = false;
    for (index, byte) in uri.iter().enumerate() {
        let begins = reached[index];
        is_within = match operator {
            // Only these expand to reserved characters.
            b'+' => is_within || begins,
            b'#' => is_within || (begins && *byte == b'#'),
            b'?' | b'&' => (is_within && *byte != b'#') || (begins && *byte == operator),
            b'.' | b'/' | b';' => {
                (is_within && !b"?#".contains(byte) && (operator == b'/' || *byte != b'/'))
                    || (begins && *byte == operator)
            }
            _ => (is_within || begins) && !b"/?#".contains(byte),
        };

        if is_within {
            reached[index + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_expands_to_its_uris_alone() {
        for (template, uri, is_one) in [
            ("logs://{name}{?lines}", "logs://db?lines=50", true),
            ("logs://{name}{?lines}", "logs://db", true),
            ("logs://{name}{?lines}", "logs://a/b?lines=50", false),
            ("logs://{+name}{?lines}", "logs://a/b?lines=50", true),
            ("logs://{/path*}{?lines,bytes}", "logs:///a/b?bytes=1&lines=2", true),
            ("logs://app?x=1{&lines}", "logs://app?x=1&lines=9", true),
            ("logs://app?x=1{&lines}", "logs://app?lines=9", false),
            ("logs://{name}.log{?lines}", "logs://a.log.log?lines=1", true),
            ("logs://{name", "logs://{name", false),
            ("{}", "", false),
            ("plain:x", "plain:x", true),
            ("plain:x", "plain:xy", false),
            ("d://{a}{.ext}{#part}", "d://f.txt#2", true),
            ("d://ü/{a}", "d://ü/é", true),
        ] {
            assert_eq!(is_expansion(template, uri), is_one, "{template} {uri}");
        }

        // Many variables take no more time than few.
        let hostile = "{+a}".repeat(2_000) + "!";
        assert!(!is_expansion(&hostile, &"a".repeat(2_000)));
    }

    #[test]
    fn query_parameters_are_named_by_variables_and_by_text() {
        for template in ["a:b{?x,lines*}", "a:b?x=1{&lines:3}", "a:b?lines={n}", "a:b?x=1&lines=2"]
        {
            assert!(names_parameter(template, "lines"), "{template}");
            assert!(!names_parameter(template, "bytes"), "{template}");
        }
        for template in ["a:{lines}", "a:b{?liness}", "a:b?xlines={n}", "lines="] {
            assert!(!names_parameter(template, "lines"), "{template}");
        }
    }
}
