//! The parser of expressions in braces, and of URI templates.

use super::{TemplatePart, UriTemplate};

/// A piece of a text with expressions in braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePiece<'a> {
    /// The text outside of braces.
    Text(&'a str),
    /// The text between the braces.
    Expression(&'a str),
}

/// A brace without its counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnbalancedBrace {
    /// A closing brace.
    #[error("it has a }} without a {{")]
    Close,
    /// An opening brace.
    #[error("it has a {{ without a }}")]
    Open,
}

/// Splits a text at its braces; ends after the first error.
pub fn pieces(text: &str) -> impl Iterator<Item = Result<TemplatePiece<'_>, UnbalancedBrace>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = match rest.find(['{', '}']) {
            None if rest.is_empty() => return None,
            None => (Ok(TemplatePiece::Text(rest)), ""),
            Some(0) if rest.starts_with('}') => (Err(UnbalancedBrace::Close), ""),
            Some(0) => match expression(rest) {
                Some((expression, after)) => (Ok(TemplatePiece::Expression(expression)), after),
                None => (Err(UnbalancedBrace::Open), ""),
            },
            Some(brace) => (Ok(TemplatePiece::Text(&rest[..brace])), &rest[brace..]),
        };

        rest = after;
        Some(piece)
    })
}

/// Splits a prose text at its `{variables}`. Braces around anything but a
/// variable's name are text, because prose may contain code or JSON.
pub fn prose_pieces(text: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut from = 0;

    while let Some(open) = text[from..].find('{').map(|offset| from + offset) {
        match expression(&text[open..]) {
            Some((name, after)) if is_name(name, "_-") => {
                pieces.push(TemplatePiece::Text(&text[start..open]));
                pieces.push(TemplatePiece::Expression(name));
                start = text.len() - after.len();
                from = start;
            }
            _ => from = open + 1,
        }
    }

    pieces.push(TemplatePiece::Text(&text[start..]));
    pieces
}

/// The expression at the start of a text, and the text after its closing brace.
fn expression(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('{')?.split_once('}')
}

/// Whether a text is a name: ASCII letters, digits and `punctuation`.
pub fn is_name(text: &str, punctuation: &str) -> bool {
    let in_name = |c: char| c.is_ascii_alphanumeric() || punctuation.contains(c);
    !text.is_empty() && text.chars().all(in_name)
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// The fault of the template.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<TemplatePart> = Vec::new();
        let mut pieces = pieces(text).peekable();
        while let Some(piece) = pieces.next() {
            let expression = match piece.map_err(|error| error.to_string())? {
                TemplatePiece::Text(text) => {
                    parts.push(TemplatePart::Literal(text.to_owned()));
                    continue;
                }
                TemplatePiece::Expression(expression) => expression,
            };

            if let Some(names) = expression.strip_prefix('?') {
                let names: Vec<_> = names.split(',').map(str::to_owned).collect();
                for (index, name) in names.iter().enumerate() {
                    check_name(expression, name)?;
                    check_new(name, &parts)?;
                    check_new(name, &[TemplatePart::Query(names[..index].to_vec())])?;
                }

                if pieces.peek().is_some() {
                    return Err(format!("nothing may follow {{{expression}}}"));
                }
                parts.push(TemplatePart::Query(names));
                break;
            }

            let (name, multi_segment) = match expression.strip_prefix('+') {
                Some(name) => (name, true),
                None => (expression, false),
            };

            check_name(expression, name)?;
            check_new(name, &parts)?;

            let before_query = matches!(pieces.peek(), Some(Ok(TemplatePiece::Expression(next))) if next.starts_with('?'));
            if parts.is_empty() && multi_segment && before_query {
                parts.push(TemplatePart::BaseUri(name.to_owned()));
                continue;
            }

            if matches!(parts.last(), Some(TemplatePart::Variable { .. })) {
                return Err(format!("no text separates {name} from the variable before it"));
            }
            parts.push(TemplatePart::Variable { name: name.to_owned(), multi_segment });
        }

        match parts.first() {
            Some(TemplatePart::BaseUri(_)) => {}
            Some(TemplatePart::Literal(literal)) if literal.contains(':') => {}
            _ => return Err("it must begin with a scheme, such as logs://".into()),
        }

        if parts.iter().all(|part| matches!(part, TemplatePart::Literal(_))) {
            return Err("it has no variable: register it as a resource".into());
        }
        Ok(Self { parts })
    }
}

fn check_name(expression: &str, name: &str) -> Result<(), String> {
    if is_name(name, "_") {
        return Ok(());
    }
    Err(format!("{{{expression}}} is not a variable: a name has letters, digits and underscores"))
}

fn check_new(name: &str, parts: &[TemplatePart]) -> Result<(), String> {
    if parts.iter().any(|part| part.names().iter().any(|known| known == name)) {
        return Err(format!("it has the variable {name} twice"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_in_prose_are_text_unless_they_hold_a_name() {
        let text = TemplatePiece::Text;
        let name = TemplatePiece::Expression;

        for (prose, pieces) in [
            ("", vec![text("")]),
            ("a {b} c", vec![text("a "), name("b"), text(" c")]),
            ("{a-b}{c_1}", vec![text(""), name("a-b"), text(""), name("c_1"), text("")]),
            ("{ {a} } {} {", vec![text("{ "), name("a"), text(" } {} {")]),
            ("{+a} é}", vec![text("{+a} é}")]),
        ] {
            assert_eq!(prose_pieces(prose), pieces, "{prose}");
        }
    }

    #[test]
    fn a_template_has_no_brace_without_its_counterpart() {
        let read = |text| pieces(text).collect::<Result<Vec<_>, _>>();
        assert_eq!(
            read("a{b}"),
            Ok(vec![TemplatePiece::Text("a"), TemplatePiece::Expression("b")])
        );
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read("a}b{c}"), Err(UnbalancedBrace::Close));
        assert_eq!(read("{a}b{c"), Err(UnbalancedBrace::Open));
    }
}
