//! The checks of ID tokens (OpenID Connect Core 1.0, section 3.1.3.7).

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use larder_runtime::clock::{Clock, Timestamp};
use reqwest::Url;
use serde_json::{Map, Value};

use super::{
    AuthError, Denied,
    fetch::Fetcher,
    jwks::{Jwks, Source},
    jwt::{Jwt, check_audience, text},
    keys::{Key, KeySet},
};

/// Verifies the ID tokens that one issuer gives to one client.
#[derive(Debug)]
pub struct IdTokens {
    issuer: String,
    client: String,
    keys: Arc<Jwks>,
    clock: Arc<dyn Clock>,
}

impl IdTokens {
    /// For the keys at the URL that `keys_url` gives.
    pub fn new(
        issuer: &str,
        client: &str,
        fetcher: Fetcher,
        keys_url: impl Fn() -> BoxFuture<'static, Result<Url, String>> + Send + Sync + 'static,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let source: Source = Arc::new(move || {
            let fetcher = fetcher.clone();
            let url = keys_url();
            async move {
                let url = url.await?;
                let read = match fetcher.get(&url).await {
                    Ok(document) => KeySet::read(&document),
                    Err(error) => Err(error.to_string()),
                };
                read.map_err(|problem| format!("{url}: {problem}"))
            }
            .boxed()
        });

        let keys = Jwks::new(source, Arc::clone(&clock));
        Self { issuer: issuer.to_owned(), client: client.to_owned(), keys, clock }
    }

    /// The claims of an ID token. `nonce` is that of the login; a token of a refresh need not
    /// have one (section 12.2).
    ///
    /// # Errors
    /// [`AuthError::Invalid`]; [`AuthError::Unavailable`] if the keys cannot be fetched.
    pub async fn verify(
        &self,
        token: &str,
        nonce: Option<&str>,
    ) -> Result<Map<String, Value>, AuthError> {
        let jwt = Jwt::read(token)?;
        let id = jwt.key()?;
        let algorithm = jwt.algorithm()?;
        jwt.check_id_token(&self.issuer, &self.client, nonce, self.clock.now())?;
        let verifies = |key: &Key, by| key.verifies(by, jwt.message, jwt.signature);
        self.keys.verify(id, algorithm, verifies).await?;
        Ok(jwt.claims)
    }

    /// The number of usable keys.
    ///
    /// # Errors
    /// [`AuthError::Unavailable`].
    pub async fn usable_keys(&self) -> Result<usize, AuthError> {
        Ok(self.keys.keys().await?.0.len())
    }
}

impl Jwt<'_> {
    /// Checks everything but the signature.
    fn check_id_token(
        &self,
        issuer: &str,
        client: &str,
        nonce: Option<&str>,
        now: Timestamp,
    ) -> Result<(), Denied> {
        self.check_critical()?;
        // An access token can have this audience, too, so the type decides.
        let typ = text(&self.header, "typ").map_err(|_| Denied::IdTokenType)?;
        if !typ.is_none_or(|typ| typ.eq_ignore_ascii_case("jwt")) {
            return Err(Denied::IdTokenType);
        }

        if self.issuer()? != issuer {
            return Err(Denied::Issuer);
        }

        check_audience(self.claims.get("aud"), &[client.to_owned()])?;
        let authorized = text(&self.claims, "azp")?;
        let is_for_several = self.claims["aud"].as_array().is_some_and(|list| list.len() > 1);
        if authorized.map_or(is_for_several, |party| party != client) {
            return Err(Denied::AuthorizedParty);
        }

        self.check_times(now)?;
        if !self.claims.contains_key("iat") {
            return Err(Denied::Claim("iat"));
        }
        if text(&self.claims, "sub")?.is_none_or(str::is_empty) {
            return Err(Denied::Claim("sub"));
        }

        let theirs = text(&self.claims, "nonce")?;
        if nonce.is_some_and(|ours| theirs != Some(ours)) {
            return Err(Denied::Nonce);
        }

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn check(header: &Value, change: impl FnOnce(&mut Value)) -> Result<(), Denied> {
        let mut claims = json!({
            "iss": "https://idp.example", "aud": "larder", "sub": "alice", "nonce": "n",
            "iat": NOW, "exp": NOW + 300,
        });
        change(&mut claims);

        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let token = format!("{}.{}.x", part(header), part(&claims));
        let now = Timestamp::from_millis(NOW * 1000);
        Jwt::read(&token).unwrap().check_id_token("https://idp.example", "larder", Some("n"), now)
    }

    fn claim(name: &str, value: Value) -> Result<(), Denied> {
        check(&json!({ "alg": "RS256" }), |claims| claims[name] = value)
    }

    #[test]
    fn each_claim_is_checked() {
        assert_eq!(claim("other", json!(1)), Ok(()));
        assert_eq!(claim("iss", json!("https://idp.example/")), Err(Denied::Issuer));
        assert_eq!(claim("aud", json!("other")), Err(Denied::Audience));
        assert_eq!(claim("aud", json!(7)), Err(Denied::Claim("aud")));
        assert_eq!(claim("aud", json!(["larder"])), Ok(()));
        assert_eq!(claim("aud", json!(["larder", "other"])), Err(Denied::AuthorizedParty));
        assert_eq!(claim("azp", json!("larder")), Ok(()));
        assert_eq!(claim("azp", json!("other")), Err(Denied::AuthorizedParty));
        assert_eq!(claim("exp", json!(NOW - 30)), Err(Denied::Expired));
        assert_eq!(claim("exp", Value::Null), Err(Denied::Claim("exp")));
        assert_eq!(claim("iat", json!(NOW + 31)), Err(Denied::NotYet));
        assert_eq!(claim("nonce", json!("m")), Err(Denied::Nonce));
        assert_eq!(claim("sub", json!("")), Err(Denied::Claim("sub")));

        for name in ["iss", "aud", "exp", "iat", "sub", "nonce"] {
            let missing = check(&json!({ "alg": "RS256" }), |claims| {
                claims.as_object_mut().unwrap().remove(name);
            });
            assert!(missing.is_err(), "{name}");
        }
    }

    #[test]
    fn several_audiences_need_the_authorized_party() {
        let both = |azp: &str| {
            check(&json!({ "alg": "RS256" }), |claims| {
                claims["aud"] = json!(["other", "larder"]);
                claims["azp"] = json!(azp);
            })
        };

        assert_eq!(both("larder"), Ok(()));
        assert_eq!(both("other"), Err(Denied::AuthorizedParty));
    }

    #[test]
    fn an_access_token_is_no_id_token() {
        for (typ, is_accepted) in [("JWT", true), ("at+jwt", false), ("logout+jwt", false)] {
            let header = json!({ "alg": "RS256", "typ": typ });
            assert_eq!(check(&header, |_| {}).is_ok(), is_accepted, "{typ}");
        }

        let critical = json!({ "alg": "RS256", "crit": ["b64"] });
        assert_eq!(check(&critical, |_| {}), Err(Denied::Critical));
    }
}
