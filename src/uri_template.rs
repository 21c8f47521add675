//! URI templates that are matched rather than expanded (RFC 6570: `{name}`,
//! `{+name}`, and at the end `{?name,other}`).

use std::collections::BTreeMap;

/// What the variables of a template stand for in one URI, percent-decoded.
pub type Variables = BTreeMap<String, String>;

/// A parsed template that can tell what its variables stand for in a URI.
///
/// ```
/// use larder::UriTemplate;
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
/// // Parameters may be left out; whatever stands before them is a URI of its own.
/// let template = UriTemplate::parse("{+uri}{?lines,bytes}").unwrap();
/// let variables = template.matches("a://b?c=d?lines=1-20").unwrap();
/// assert_eq!((&*variables["uri"], &*variables["lines"]), ("a://b?c=d", "1-20"));
/// assert!(template.matches("a://b?c=d").is_none());
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
    /// All that stands before the parameters: a whole URI, as it is.
    Uri(String),
    /// Parameters, each of which may be left out.
    Query(Vec<String>),
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
            rest = &rest[close + 1..];
            if let Some(names) = expression.strip_prefix('?') {
                let names: Vec<_> = names.split(',').map(str::to_owned).collect();
                for (at, name) in names.iter().enumerate() {
                    check_name(expression, name)?;
                    check_new(name, &parts)?;
                    check_new(name, &[Part::Query(names[..at].to_vec())])?;
                }
                if !rest.is_empty() {
                    return Err(format!("nothing may follow {{{expression}}}"));
                }
                parts.push(Part::Query(names));
                break;
            }
            let (name, many) = match expression.strip_prefix('+') {
                Some(name) => (name, true),
                None => (expression, false),
            };
            check_name(expression, name)?;
            check_new(name, &parts)?;
            if parts.is_empty() && many && rest.starts_with("{?") {
                parts.push(Part::Uri(name.to_owned()));
                continue;
            }
            if matches!(parts.last(), Some(Part::Variable { .. })) {
                return Err(format!("nothing separates {name} from the variable before it"));
            }
            parts.push(Part::Variable { name: name.to_owned(), many });
        }
        match parts.first() {
            Some(Part::Uri(_)) => {}
            Some(Part::Literal(literal)) if literal.contains(':') => {}
            _ => return Err("it must begin with a scheme, such as logs://".into()),
        }
        if parts.iter().all(|p| matches!(p, Part::Literal(_))) {
            return Err("it has no variable: register it as a resource".into());
        }
        Ok(Self { parts })
    }

    /// The names of the variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &String> + Clone {
        self.parts.iter().flat_map(Part::names)
    }

    /// The variable that stands for all before the parameters, if one does.
    pub(crate) fn whole_uri(&self) -> Option<&str> {
        match self.parts.first() {
            Some(Part::Uri(name)) => Some(name),
            _ => None,
        }
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
        if let Some(Part::Query(names)) = self.parts.last() {
            rest = take_parameters(rest, names, &mut variables)?;
        }
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Uri(name) => {
                    // Else it would stand for every URI there is.
                    if variables.is_empty() || !rest.contains(':') {
                        return None;
                    }
                    variables.insert(name.clone(), rest.to_owned());
                    rest = "";
                }
                Part::Query(_) => {}
                Part::Variable { name, many } => {
                    let stops: &[char] = if *many { &['?', '#'] } else { &['/', '?', '#'] };
                    let longest = rest.find(stops).unwrap_or(rest.len());
                    let end = match &self.parts[at + 1..] {
                        [] | [Part::Query(_)] => longest,
                        // What comes last of all is looked for from the end.
                        [Part::Literal(last)] | [Part::Literal(last), Part::Query(_)] if *many => {
                            rest.strip_suffix(&**last)?.len()
                        }
                        [Part::Literal(next), ..] => rest.find(next.as_str())?,
                        // Two variables never meet, and the rest stands at the ends.
                        [_, ..] => return None,
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

impl Part {
    fn names(&self) -> &[String] {
        match self {
            Self::Variable { name, .. } | Self::Uri(name) => std::slice::from_ref(name),
            Self::Query(names) => names,
            Self::Literal(_) => &[],
        }
    }
}

fn check_name(expression: &str, name: &str) -> Result<(), String> {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Ok(());
    }
    Err(format!("{{{expression}}} is no variable: a name has letters, digits and underscores"))
}

fn check_new(name: &str, parts: &[Part]) -> Result<(), String> {
    if parts.iter().any(|part| part.names().iter().any(|known| known == name)) {
        return Err(format!("the variable {name} stands in it twice"));
    }
    Ok(())
}

/// Accepts the parameters of those names from the end of a URI, whose own query
/// may stand before them; nothing where one stands there twice, or where what
/// is left has some as well.
fn take_parameters<'a>(
    uri: &'a str,
    names: &[String],
    variables: &mut Variables,
) -> Option<&'a str> {
    let mut rest = uri;
    let mut is_first = false;
    while let Some(at) = rest.rfind(['?', '&']) {
        let Some((name, value)) = rest[at + 1..].split_once('=') else { break };
        if !names.iter().any(|known| known == name) {
            break;
        }
        if is_first || variables.insert(name.to_owned(), decoded(value)?).is_some() {
            return None;
        }
        is_first = rest.as_bytes()[at] == b'?';
        rest = &rest[..at];
    }
    Some(rest)
}

/// Percent-decodes a segment that is no path of its own.
pub(crate) fn decode_segment(encoded: &str) -> Option<String> {
    decode(encoded, false).filter(|text| !text.contains(['/', '\\']))
}

/// Percent-decodes a segment, or several; nothing for what is empty, no UTF-8,
/// or leads out of where it stands.
fn decode(encoded: &str, many: bool) -> Option<String> {
    let text = decoded(encoded)?;
    // After decoding, so that an encoded slash hides nothing.
    leads_out(&text, many).is_none().then_some(text)
}

/// Percent-decodes; nothing for what is no UTF-8 then.
fn decoded(encoded: &str) -> Option<String> {
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
    String::from_utf8(bytes).ok()
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
    fn parameters_stand_at_the_end_and_may_be_left_out() {
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
        // A window of a window is none.
        assert_eq!(uri("x:a?lines=1?lines=2"), None);
        assert_eq!(uri("x:a?lines=1?bytes=2"), None);
        assert_eq!(uri("a?lines=1"), None);
        assert_eq!(uri("x:a"), None);
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
