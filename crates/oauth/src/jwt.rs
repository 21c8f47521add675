//! The checks of JWT access tokens (RFC 9068).
//!
//! `jsonwebtoken` verifies only the signature. Its `decode` reads the system
//! clock, accepts by default a missing or numeric `aud` and an `iss` that is a
//! list, and ignores `typ`, `crit`, a future `iat` and the use of a key.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use larder_runtime::clock::Timestamp;
use serde_json::{Map, Value};

use super::Denied;

/// The accepted difference between the issuer's clock and this one.
pub(super) const LEEWAY: Duration = Duration::from_secs(30);

type JsonObject = Map<String, Value>;

/// A parsed JWT, not verified.
pub(super) struct Jwt<'a> {
    pub(super) header: JsonObject,
    pub(super) claims: JsonObject,
    /// The signed text.
    pub(super) message: &'a str,
    pub(super) signature: &'a str,
}

/// The rules for the tokens of one issuer.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) issuer: String,
    /// A token must have at least one of these audiences.
    pub(super) audiences: Vec<String>,
    /// Whether to accept the type `JWT`, or no type, too.
    pub(super) any_typ: bool,
    /// The claim with the scopes.
    pub(super) scope_claim: String,
    /// The claim with the groups.
    pub(super) groups_claim: String,
}

impl Rules {
    /// The groups in the claim; none if it is not a list. Malformed groups do not
    /// invalidate a token.
    pub(super) fn groups(&self, claims: &JsonObject) -> Vec<String> {
        let names = claims.get(&self.groups_claim).and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }
}

/// The verified claims of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) subject: String,
    pub(super) client: Option<String>,
    pub(super) scopes: String,
    pub(super) groups: Vec<String>,
    pub(super) expires: Timestamp,
    pub(super) token_id: Option<String>,
}

/// Whether a token looks like a JWT: three parts, or five if it is encrypted.
/// JWTs are never introspected.
pub(super) fn is_jwt(token: &str) -> bool {
    matches!(token.bytes().filter(|b| *b == b'.').count(), 2 | 4)
}

impl<'a> Jwt<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// [`Denied::Malformed`], [`Denied::Encrypted`].
    pub(super) fn read(token: &'a str) -> Result<Self, Denied> {
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(Denied::Malformed);
        };
        if parts.next().is_some() {
            return Err(Denied::Encrypted);
        }

        let message = &token[..header.len() + 1 + claims.len()];
        Ok(Self { header: object(header)?, claims: object(claims)?, message, signature })
    }

    /// The claimed issuer, which selects the rules.
    ///
    /// # Errors
    /// [`Denied::Claim`] if it is not a string.
    pub(super) fn issuer(&self) -> Result<&str, Denied> {
        text(&self.claims, "iss")?.ok_or(Denied::Claim("iss"))
    }

    /// The claimed session, in tokens of this server.
    ///
    /// # Errors
    /// [`Denied::Claim`] if it is not a string.
    pub(super) fn session(&self) -> Result<&str, Denied> {
        text(&self.claims, "sid")?.ok_or(Denied::Claim("sid"))
    }

    /// The claimed key id.
    ///
    /// # Errors
    /// [`Denied::Malformed`] if it is not a string.
    pub(super) fn key(&self) -> Result<Option<&str>, Denied> {
        text(&self.header, "kid").map_err(|_| Denied::Malformed)
    }

    /// The claimed algorithm.
    ///
    /// # Errors
    /// [`Denied::Algorithm`] if it is not a string.
    pub(super) fn algorithm(&self) -> Result<&str, Denied> {
        text(&self.header, "alg").ok().flatten().ok_or(Denied::Algorithm)
    }

    /// Checks everything but the signature. Runs first, because it needs no
    /// request to the issuer.
    ///
    /// # Errors
    /// The first violated rule.
    pub(super) fn check(&self, rules: &Rules, now: Timestamp) -> Result<Claims, Denied> {
        self.check_critical()?;
        self.check_type(rules)?;
        if self.issuer()? != rules.issuer {
            return Err(Denied::Issuer);
        }

        check_audience(self.claims.get("aud"), &rules.audiences)?;
        let expires = self.check_times(now)?;
        if self.claims.contains_key("cnf") {
            return Err(Denied::Bound);
        }

        let subject = text(&self.claims, "sub")?.filter(|sub| !sub.is_empty());
        let client = match text(&self.claims, "client_id")? {
            None => text(&self.claims, "azp")?,
            client => client,
        };

        Ok(Claims {
            subject: subject.ok_or(Denied::Claim("sub"))?.to_owned(),
            client: client.map(str::to_owned),
            scopes: scopes(self.claims.get(&rules.scope_claim))?,
            groups: rules.groups(&self.claims),
            expires,
            // The audit log alone uses the ID, so a malformed ID does not invalidate a token.
            token_id: text(&self.claims, "jti").ok().flatten().map(str::to_owned),
        })
    }

    /// No extension is supported.
    pub(super) fn check_critical(&self) -> Result<(), Denied> {
        if self.header.contains_key("crit") { Err(Denied::Critical) } else { Ok(()) }
    }

    /// Checks `exp`, `nbf` and `iat`. Returns the expiry.
    pub(super) fn check_times(&self, now: Timestamp) -> Result<Timestamp, Denied> {
        let expires = time(&self.claims, "exp")?.ok_or(Denied::Claim("exp"))?;
        if now >= expires.saturating_add(LEEWAY) {
            return Err(Denied::Expired);
        }

        for start in ["nbf", "iat"] {
            if time(&self.claims, start)?.is_some_and(|start| start > now.saturating_add(LEEWAY)) {
                return Err(Denied::NotYet);
            }
        }

        Ok(expires)
    }

    /// RFC 9068, section 4: rejects ID tokens and assertions.
    fn check_type(&self, rules: &Rules) -> Result<(), Denied> {
        let typ = text(&self.header, "typ").map_err(|_| Denied::Type)?;
        let typ = typ.map(str::to_ascii_lowercase);

        match typ.as_deref() {
            Some("at+jwt" | "application/at+jwt") => Ok(()),
            // ID tokens are recognized by the claims that only they have.
            None | Some("jwt" | "application/jwt") if rules.any_typ => {
                let id_token = ["nonce", "at_hash", "c_hash", "s_hash"];
                let is_id_token = id_token.iter().any(|claim| self.claims.contains_key(*claim));
                if is_id_token { Err(Denied::Type) } else { Ok(()) }
            }
            _ => Err(Denied::Type),
        }
    }
}

/// Checks that an audience, a string or a list of strings, is one of ours.
pub(super) fn check_audience(audience: Option<&Value>, ours: &[String]) -> Result<(), Denied> {
    let is_ours = |text: &str| ours.iter().any(|ours| ours == text);
    let found = match audience {
        Some(Value::String(audience)) => is_ours(audience),
        Some(Value::Array(audiences)) => {
            let mut found = false;
            for audience in audiences {
                found |= is_ours(audience.as_str().ok_or(Denied::Claim("aud"))?);
            }
            found
        }
        _ => return Err(Denied::Claim("aud")),
    };

    if found { Ok(()) } else { Err(Denied::Audience) }
}

/// Scopes separated by spaces (RFC 9068, section 2.2.3), or a list, as some
/// issuers write it.
fn scopes(value: Option<&Value>) -> Result<String, Denied> {
    match value {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(names)) => {
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            Ok(names.ok_or(Denied::Claim("scope"))?.join(" "))
        }
        Some(_) => Err(Denied::Claim("scope")),
    }
}

fn object(part: &str) -> Result<JsonObject, Denied> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| Denied::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| Denied::Malformed)
}

pub(super) fn text<'o>(
    object: &'o JsonObject,
    name: &'static str,
) -> Result<Option<&'o str>, Denied> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Denied::Claim(name)),
    }
}

/// RFC 7519, section 2: seconds since the epoch, possibly with a fraction.
fn time(object: &JsonObject, name: &'static str) -> Result<Option<Timestamp>, Denied> {
    let Some(value) = object.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|s| s.is_finite() && *s >= 0.0);
    let seconds = seconds.ok_or(Denied::Claim(name))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    Ok(Some(Timestamp::from_millis((seconds * 1000.0) as u64)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rules() -> Rules {
        Rules {
            issuer: "https://a.example".into(),
            audiences: vec!["https://mcp.example/mcp".into()],
            any_typ: false,
            scope_claim: "scope".into(),
            groups_claim: "groups".into(),
        }
    }

    proptest! {
        #[test]
        fn any_token_is_parsed_or_rejected(token in "[A-Za-z0-9_.-]{0,200}") {
            if let Ok(jwt) = Jwt::read(&token) {
                let _ = jwt.check(&rules(), Timestamp::from_millis(0));
            }
        }

        #[test]
        fn random_headers_and_claims_are_rejected(
            header in prop::collection::hash_map("alg|typ|kid|crit|x", value(), 0..4),
            claims in prop::collection::hash_map(
                "iss|sub|aud|exp|nbf|iat|scope|client_id|azp|cnf", value(), 0..9,
            ),
        ) {
            let part = |of: &Value| BASE64_URL_SAFE_NO_PAD.encode(of.to_string());
            let token = format!("{}.{}.x", part(&json!(header)), part(&json!(claims)));
            let jwt = Jwt::read(&token).expect("two objects");

            let _ = (jwt.key(), jwt.algorithm());
            prop_assert!(jwt.check(&rules(), Timestamp::from_millis(0)).is_err());
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z+/]{0,12}".prop_map(Value::from),
        ];

        leaf.prop_recursive(2, 8, 4, |inner| {
            prop::collection::vec(inner, 0..4).prop_map(Value::from)
        })
    }
}
