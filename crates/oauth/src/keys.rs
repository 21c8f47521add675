//! An issuer's keys (RFC 7517). Each is parsed separately, so that an unusable
//! key does not affect the others.

use std::fmt;

use jsonwebtoken::{Algorithm, DecodingKey};
use larder_protocol::quote::parse_error;
use serde::Deserialize;
use serde_json::Value;

use super::Denied;

/// The maximum number of keys in a set.
const MAX_KEYS: usize = 100;

/// A key that verifies signatures.
pub(super) struct Key {
    id: Option<String>,
    /// The algorithms that the key's type and `alg` allow, with their names. A
    /// token's `alg` can only select one of them.
    algorithms: Vec<(&'static str, Algorithm)>,
    verifier: DecodingKey,
}

impl Key {
    /// Whether the signature of the message is valid.
    pub(super) fn verifies(&self, algorithm: Algorithm, message: &str, signature: &str) -> bool {
        let message = message.as_bytes();
        // An error means a malformed signature or key.
        jsonwebtoken::crypto::verify(signature, message, &self.verifier, algorithm).unwrap_or(false)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms: Vec<_> = self.algorithms.iter().map(|(name, _)| name).collect();
        f.debug_struct("Key")
            .field("id", &self.id)
            .field("algorithms", &algorithms)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,

    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Key {
    /// Parses a key.
    ///
    /// # Errors
    /// Why the key is not usable.
    fn read(value: &Value) -> Result<Self, String> {
        let jwk = Jwk::deserialize(value).map_err(|error| error.to_string())?;
        if jwk.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return Err("its use is not sig".into());
        }
        if jwk.key_ops.as_ref().is_some_and(|ops| ops.iter().all(|op| op != "verify")) {
            return Err("its key_ops do not include verify".into());
        }

        let part = |name: &str, part: &Option<String>| {
            part.clone().ok_or_else(|| format!("{name} is missing"))
        };

        let curve = jwk.crv.as_deref();
        let (algorithms, key) = match (jwk.kty.as_str(), curve) {
            ("RSA", _) => (
                vec![
                    ("RS256", Algorithm::RS256),
                    ("RS384", Algorithm::RS384),
                    ("RS512", Algorithm::RS512),
                    ("PS256", Algorithm::PS256),
                    ("PS384", Algorithm::PS384),
                    ("PS512", Algorithm::PS512),
                ],
                DecodingKey::from_rsa_components(&part("n", &jwk.n)?, &part("e", &jwk.e)?),
            ),
            ("EC", Some("P-256")) => (
                vec![("ES256", Algorithm::ES256)],
                DecodingKey::from_ec_components(&part("x", &jwk.x)?, &part("y", &jwk.y)?),
            ),
            ("EC", Some("P-384")) => (
                vec![("ES384", Algorithm::ES384)],
                DecodingKey::from_ec_components(&part("x", &jwk.x)?, &part("y", &jwk.y)?),
            ),
            // RFC 8037 and RFC 9864, which replaces it, name this algorithm differently.
            ("OKP", Some("Ed25519")) => (
                vec![("EdDSA", Algorithm::EdDSA), ("Ed25519", Algorithm::EdDSA)],
                DecodingKey::from_ed_components(&part("x", &jwk.x)?),
            ),
            (kty, _) => return Err(format!("kty {kty:?} with crv {curve:?} is not supported")),
        };

        let algorithms: Vec<_> = match jwk.alg.as_deref() {
            Some(alg @ ("EdDSA" | "Ed25519")) if curve != Some("Ed25519") => {
                return Err(format!("alg {alg:?} does not fit"));
            }
            // A token may use either name.
            Some("EdDSA" | "Ed25519") | None => algorithms,
            Some(alg) => algorithms.into_iter().filter(|(name, _)| *name == alg).collect(),
        };
        if algorithms.is_empty() {
            return Err(format!("alg {:?} does not fit", jwk.alg));
        }

        let key = key.map_err(|error| error.to_string())?;
        Ok(Self { id: jwk.kid, algorithms, verifier: key })
    }
}

/// The usable keys of an issuer.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Key>);

/// The result of the search for a token's key.
#[derive(Debug)]
pub(super) enum Lookup<'a> {
    /// The keys that may have signed the token, and the algorithm.
    Found(Vec<&'a Key>, Algorithm),
    /// The set lacks the key; a newer one may have it.
    Unknown,
    /// The token is not accepted with any set.
    Denied(Denied),
}

impl KeySet {
    /// Parses a JWK set. Skips unusable keys: symmetric keys, encryption keys and
    /// malformed ones.
    ///
    /// # Errors
    /// If the document is not a JWK set.
    pub(super) fn read(document: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }

        let set: Set = serde_json::from_slice(document)
            .map_err(|e| format!("not a JWK set: {}", parse_error(&e.to_string())))?;

        let mut keys = Vec::new();
        for value in &set.keys {
            match Key::read(value) {
                Ok(_) if keys.len() == MAX_KEYS => {
                    tracing::warn!(
                        "the key set has more than {MAX_KEYS} keys; the others are ignored"
                    );
                    break;
                }
                Ok(key) => keys.push(key),
                Err(reason) => tracing::debug!(reason, "a key of the set is ignored"),
            }
        }

        Ok(Self(keys))
    }

    /// The number of usable keys.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Finds the keys that may have signed a token with this header.
    pub(super) fn find(&self, id: Option<&str>, algorithm: &str) -> Lookup<'_> {
        let keys: Vec<_> = match id {
            Some(id) => self.0.iter().filter(|key| key.id.as_deref() == Some(id)).collect(),
            None => self.0.iter().collect(),
        };
        if keys.is_empty() {
            return Lookup::Unknown;
        }

        let mut found = Vec::new();
        let mut matched = None;
        for key in keys {
            if let Some((_, algorithm)) = key.algorithms.iter().find(|(name, _)| *name == algorithm)
            {
                matched = Some(*algorithm);
                found.push(key);
            }
        }

        if id.is_none() && found.len() > 1 {
            return Lookup::Denied(Denied::NoKey);
        }

        match matched {
            Some(algorithm) => Lookup::Found(found, algorithm),
            None => Lookup::Denied(Denied::Algorithm),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn okp(more: &Value) -> Value {
        let mut key = json!({ "kty": "OKP", "crv": "Ed25519", "x": X });
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    fn set(keys: &[Value]) -> KeySet {
        KeySet::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_bad_key_does_not_affect_the_others() {
        let keys = set(&[
            okp(&json!({ "kid": 7 })),
            json!({ "kty": "RSA", "kid": "no modulus", "e": "AQAB" }),
            json!({ "kty": "EC", "crv": "secp256k1", "x": X, "y": X }),
            json!({ "kid": "no type" }),
            json!("no object"),
            okp(&json!({ "kid": "good" })),
        ]);

        assert_eq!(keys.len(), 1);
        assert!(matches!(keys.find(Some("good"), "EdDSA"), Lookup::Found(..)));
    }

    #[test]
    fn symmetric_keys_and_keys_for_encryption_are_dropped() {
        let keys = set(&[
            json!({ "kty": "oct", "k": "c2VjcmV0", "alg": "HS256", "kid": "a" }),
            okp(&json!({ "kid": "b", "use": "enc" })),
            okp(&json!({ "kid": "c", "key_ops": ["encrypt"] })),
            okp(&json!({ "kid": "d", "alg": "HS256" })),
            okp(&json!({ "kid": "e", "alg": "RS256" })),
        ]);

        assert_eq!(keys.len(), 0);
    }

    #[test]
    fn an_algorithm_is_pinned_to_the_key() {
        let rsa = json!({ "kty": "RSA", "kid": "r", "alg": "PS256", "n": X, "e": "AQAB" });
        let keys = set(&[rsa, okp(&json!({ "kid": "o" }))]);

        for (id, algorithm, fits) in [
            ("r", "PS256", true),
            ("r", "RS256", false),
            ("r", "HS256", false),
            ("r", "none", false),
            ("o", "EdDSA", true),
            ("o", "Ed25519", true),
            ("o", "PS256", false),
        ] {
            let found = matches!(keys.find(Some(id), algorithm), Lookup::Found(..));
            assert_eq!(found, fits, "{id} {algorithm}");
        }
    }

    #[test]
    fn a_token_without_a_kid_is_for_the_only_key_of_its_algorithm() {
        let one = set(&[okp(&json!({ "kid": "a" })), okp(&json!({ "kid": "b", "use": "enc" }))]);
        assert!(matches!(one.find(None, "EdDSA"), Lookup::Found(..)));

        let two = set(&[okp(&json!({ "kid": "a" })), okp(&json!({ "kid": "b" }))]);
        assert!(matches!(two.find(None, "EdDSA"), Lookup::Denied(Denied::NoKey)));

        let rsa = json!({ "kty": "RSA", "kid": "c", "n": X, "e": "AQAB" });
        let kinds = set(&[okp(&json!({ "kid": "a" })), rsa]);
        assert!(matches!(kinds.find(None, "EdDSA"), Lookup::Found(..)));
        assert!(matches!(kinds.find(None, "ES256"), Lookup::Denied(Denied::Algorithm)));
    }

    #[test]
    fn a_set_is_capped_in_number() {
        let many: Vec<_> = (0..150).map(|n| okp(&json!({ "kid": n.to_string() }))).collect();
        assert_eq!(set(&many).len(), MAX_KEYS);
    }
}
