//! [`Challenge`]: what a server says in `WWW-Authenticate` (RFC 6750, 3; RFC 9728, 5.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The most scopes of a challenge that are asked for.
const MAX_SCOPES: usize = 32;
/// The longest URL or scope that is used.
const MAX_BYTES: usize = 1024;

/// A challenge of the scheme Bearer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The URL of the protected resource's metadata.
    pub(super) metadata: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) error: Option<String>,
}

impl Challenge {
    /// The first challenge of the scheme Bearer; empty if there is none.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut texts = values.filter_map(|value| value.to_str().ok());
        texts.find_map(Self::parse).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        const SCHEME: &str = "bearer";

        let lower = text.to_ascii_lowercase();
        let mut starts = lower.match_indices(SCHEME).map(|(at, _)| at);
        let start = starts.find(|at| {
            let before = lower[..*at].trim_end();
            let after = lower[at + SCHEME.len()..].chars().next();
            (before.is_empty() || before.ends_with(',')) && after.is_none_or(|c| c == ' ')
        })?;

        let mut challenge = Self::default();
        for (name, value) in parameters(&text[start + SCHEME.len()..]) {
            match name.as_str() {
                "resource_metadata" if value.len() <= MAX_BYTES => {
                    challenge.metadata = Some(value);
                }
                "scope" => {
                    let scopes = value.split(' ').filter(|s| (1..=MAX_BYTES).contains(&s.len()));
                    challenge.scopes = scopes.take(MAX_SCOPES).map(str::to_owned).collect();
                }
                "error" => challenge.error = Some(value),
                _ => {}
            }
        }

        Some(challenge)
    }
}

/// The parameters up to the next challenge.
fn parameters(mut text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start_matches([' ', ',', '\t']);
        let Some((name, rest)) = text.split_once('=') else { return found };
        let name = name.trim_end();
        if name.is_empty() || name.contains([' ', '"', ',']) {
            return found;
        }

        let rest = rest.trim_start();
        let value;
        (value, text) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let end = rest.find([',', ' ']).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };

        found.push((name.to_ascii_lowercase(), value));
    }
}

/// The value of a quoted string whose first quote was read, and what follows it.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_found_among_others() {
        let parse = |text: &str| Challenge::parse(text).unwrap_or_default();
        let full = "Bearer error=\"insufficient_scope\", scope=\"a  b\", resource_metadata=\"https://x.example/m?a=1,2\"";
        let expected = Challenge {
            metadata: Some("https://x.example/m?a=1,2".into()),
            scopes: vec!["a".into(), "b".into()],
            error: Some("insufficient_scope".into()),
        };

        assert_eq!(parse(full), expected);
        assert_eq!(
            parse(&format!("Basic realm=\"Bearer x\", {}", full.to_ascii_lowercase())),
            expected
        );
        assert_eq!(
            parse(&format!("{full}, Digest realm=\"x\", scope=\"c\"")).error,
            expected.error
        );
        assert_eq!(parse("bearer scope = a, error=\"x\\\"y").error.as_deref(), Some("x\"y"));

        for none in ["Bearer", "", "Basic realm=\"x\"", "Bearerish scope=\"a\"", "Bearer ="] {
            assert_eq!(parse(none), Challenge::default(), "{none}");
        }
        assert_eq!(
            parse(&format!("Bearer scope=\"{}\"", "a ".repeat(99))).scopes.len(),
            MAX_SCOPES
        );
    }
}
