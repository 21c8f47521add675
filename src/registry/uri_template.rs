//! URI templates that are matched rather than expanded (RFC 6570, `{name}`
//! and `{+name}`).

use super::Variables;

/// A parsed template that can tell what its variables stand for in a URI.
///
/// ```
/// use larder::registry::UriTemplate;
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
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// Stands for several segments if written `{+name}`.
    Variable {
        name: String,
        many: bool,
    },
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let Some(open) = rest.find(['{', '}']) else {
                parts.push(Part::Literal(rest.to_owned()));
                break;
            };
            if rest.as_bytes()[open] == b'}' {
                return Err("it has a } without a {".into());
            }
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            }
            let close = rest[open..].find('}').ok_or("it has a { without a }")? + open;
            let expression = &rest[open + 1..close];
            let (name, many) = match expression.strip_prefix('+') {
                Some(name) => (name, true),
                None => (expression, false),
            };
            let is_name =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !is_name {
                return Err(format!(
                    "{{{expression}}} is no variable: a name has letters, digits and underscores"
                ));
            }
            if parts.iter().any(|p| matches!(p, Part::Variable { name: v, .. } if v == name)) {
                return Err(format!("the variable {name} stands in it twice"));
            }
            if matches!(parts.last(), Some(Part::Variable { .. })) {
                return Err(format!("nothing separates {name} from the variable before it"));
            }
            parts.push(Part::Variable { name: name.to_owned(), many });
            rest = &rest[close + 1..];
        }
        match parts.first() {
            Some(Part::Literal(literal)) if literal.contains(':') => {}
            _ => return Err("it must begin with a scheme, such as logs://".into()),
        }
        if !parts.iter().any(|p| matches!(p, Part::Variable { .. })) {
            return Err("it has no variable: register it as a resource".into());
        }
        Ok(Self { parts })
    }

    /// The names of the variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &String> + Clone {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name),
            Part::Literal(_) => None,
        })
    }

    /// What stands before the first variable.
    pub fn literal_prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Literal(literal)) => literal,
            _ => "",
        }
    }

    /// What the variables stand for, if the URI follows the template.
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        let mut variables = Variables::new();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Variable { name, many } => {
                    let stops: &[char] = if *many { &['?', '#'] } else { &['/', '?', '#'] };
                    let longest = rest.find(stops).unwrap_or(rest.len());
                    let end = match &self.parts[at + 1..] {
                        [] => longest,
                        // What comes last of all is looked for from the end.
                        [Part::Literal(last)] if *many => rest.strip_suffix(&**last)?.len(),
                        [Part::Literal(next), ..] => rest.find(next.as_str())?,
                        // Two variables never meet.
                        [Part::Variable { .. }, ..] => return None,
                    };
                    if end > longest {
                        return None;
                    }
                    variables.insert(name.clone(), decode(&rest[..end], *many)?);
                    rest = &rest[end..];
                }
            }
        }
        rest.is_empty().then_some(variables)
    }
}

/// Percent-decodes a segment, or several; nothing for what is empty, no UTF-8,
/// or leads out of where it stands.
fn decode(encoded: &str, many: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    // After decoding, so that an encoded slash hides nothing.
    leads_out(&text, many).is_none().then_some(text)
}

/// Why a value must not stand in a URI, since a handler that takes it for the
/// name of a file, or for a path, would be led elsewhere. An encoded slash in
/// a value of one segment is data: what it leads to lies further down at most.
pub(crate) fn leads_out(value: &str, many: bool) -> Option<&'static str> {
    let mut segments = value.split(['/', '\\']);
    if value.is_empty() {
        Some("is empty")
    } else if value.contains('\0') {
        Some("holds a NUL")
    } else if value.starts_with(['/', '\\']) {
        Some("begins with a slash")
    } else if segments.any(|segment| matches!(segment, "." | "..")) {
        Some("leads out of its place with dots")
    } else if many && value.contains('\\') {
        Some("holds a backslash")
    } else if many && value.split('/').any(str::is_empty) {
        Some("has an empty segment")
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
    fn nothing_leads_out_of_where_it_stands() {
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
