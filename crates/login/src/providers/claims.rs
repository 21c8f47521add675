//! [`Claims`] about a user, of an ID token or of userinfo.

use larder_protocol::quote::quoted;
use serde_json::{Map, Value};

use crate::ProviderError;

/// The most groups of a user. More are refused, because to drop some would change what the
/// user may do.
pub(super) const MAX_GROUPS: usize = 2_000;
/// The longest subject in OpenID Connect, and the longest email address, in bytes.
const MAX_SUBJECT: usize = 255;
const MAX_EMAIL: usize = 254;
/// The longest name of a user or group, in characters and in bytes.
const MAX_NAME: usize = 200;
const MAX_GROUP: usize = 256;

/// Verified claims.
#[derive(Debug, Clone)]
pub(super) struct Claims(pub(super) Map<String, Value>);

impl Claims {
    /// Adds the claims of userinfo that are missing.
    ///
    /// # Errors
    /// If they are about another user (OpenID Connect Core 1.0, section 5.3.2).
    pub(super) fn complete(&mut self, userinfo: Self) -> Result<(), ProviderError> {
        if userinfo.subject()? != self.subject()? {
            return Err(refused("userinfo is about another user than the ID token"));
        }

        for (name, value) in userinfo.0 {
            self.0.entry(name).or_insert(value);
        }
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Whether a claim is true; some providers write it as text or number.
    pub(super) fn is_true(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) => text == "true" || text == "1",
            Some(Value::Number(number)) => number.as_u64() == Some(1),
            _ => false,
        }
    }

    /// The subject.
    ///
    /// # Errors
    /// If there is none, or it is too long.
    pub(super) fn subject(&self) -> Result<String, ProviderError> {
        match self.text("sub") {
            Some(subject) if subject.len() <= MAX_SUBJECT => Ok(subject.to_owned()),
            _ => Err(refused("the subject (sub) is missing, or longer than 255 bytes")),
        }
    }

    pub(super) fn email(&self, claim: &str) -> Option<String> {
        email(self.text(claim)?)
    }

    pub(super) fn name(&self) -> Option<String> {
        self.text("name").or_else(|| self.text("preferred_username")).map(name)
    }

    /// The groups in a claim: a list, or one name.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn groups(&self, claim: &str) -> Result<Vec<String>, ProviderError> {
        match self.0.get(claim) {
            Some(Value::String(group)) => groups([group.as_str()]),
            Some(Value::Array(list)) => groups(list.iter().filter_map(Value::as_str)),
            _ => Ok(Vec::new()),
        }
    }
}

/// An address that can be one.
pub(super) fn email(text: &str) -> Option<String> {
    (text.len() <= MAX_EMAIL && text.contains('@')).then(|| text.to_owned())
}

/// The name to show.
pub(super) fn name(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
}

/// Groups, within their limits.
///
/// # Errors
/// If there are too many, or the name of one is too long.
pub(super) fn groups<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, ProviderError> {
    let mut groups = Vec::new();
    for name in names {
        if groups.len() == MAX_GROUPS {
            let problem =
                format!("the user has more than {MAX_GROUPS} groups: let the provider send fewer");
            return Err(ProviderError::Refused(problem));
        }
        if name.len() > MAX_GROUP {
            return Err(ProviderError::Refused(format!("the group {} is too long", quoted(name))));
        }

        groups.push(name.to_owned());
    }
    Ok(groups)
}

pub(super) fn refused(problem: &str) -> ProviderError {
    ProviderError::Refused(problem.to_owned())
}

#[cfg(test)]
impl Claims {
    /// The claims of a JSON object.
    #[allow(clippy::unwrap_used)]
    pub(super) fn of(claims: &Value) -> Self {
        Self(claims.as_object().unwrap().clone())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn userinfo_adds_and_never_replaces() {
        let mut token = Claims::of(&json!({ "sub": "a", "email": "a@example.com" }));
        let more = json!({ "sub": "a", "email": "b@example.com", "groups": ["x"] });
        token.complete(Claims::of(&more)).unwrap();

        assert_eq!(token.email("email").unwrap(), "a@example.com");
        assert_eq!(token.groups("groups").unwrap(), ["x"]);

        assert!(token.complete(Claims::of(&json!({ "sub": "b" }))).is_err());
        assert!(token.complete(Claims::of(&json!({}))).is_err());
    }

    #[test]
    fn malformed_claims_give_nothing() {
        let odd =
            Claims::of(&json!({ "sub": 7, "email": ["a@b"], "groups": { "a": 1 }, "name": 1 }));

        assert!(odd.subject().is_err());
        assert_eq!((odd.email("email"), odd.name()), (None, None));
        assert!(odd.groups("groups").unwrap().is_empty());
        for not_true in [json!("yes"), json!(2), json!(null), json!([true])] {
            assert!(!Claims::of(&json!({ "email_verified": not_true })).is_true("email_verified"));
        }
    }

    #[test]
    fn what_a_provider_says_is_bounded() {
        let many: Vec<String> = (0..=MAX_GROUPS).map(|n| n.to_string()).collect();
        assert!(Claims::of(&json!({ "groups": many })).groups("groups").is_err());
        assert_eq!(
            Claims::of(&json!({ "groups": many[1..] })).groups("groups").unwrap().len(),
            MAX_GROUPS
        );

        assert!(Claims::of(&json!({ "groups": "g".repeat(257) })).groups("groups").is_err());
        assert!(Claims::of(&json!({ "sub": "s".repeat(256) })).subject().is_err());

        let long = Claims::of(&json!({ "name": "n".repeat(9_999) }));
        assert_eq!(long.name().unwrap().len(), MAX_NAME);
    }
}
