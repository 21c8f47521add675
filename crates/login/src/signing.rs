//! [`SigningKeys`]: the keys of access tokens (ES256), sealed in the store that all instances
//! share. A new key is known for a while before it signs, and verifies for a while after.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use larder_runtime::{
    clock::{Clock, Timestamp},
    random::Random,
};
use larder_store::vault::{Vault, VaultError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Problem;

/// How long a key signs.
const PERIOD: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a new key is known before it signs. Instances read the keys several times within it.
const LEAD: Duration = Duration::from_secs(600);
/// How long a key verifies after it has signed: longer than a token is valid.
const OVERLAP: Duration = Duration::from_secs(3600);
/// How long keys are used before they are read again.
const CACHED: Duration = Duration::from_secs(60);

const NAME: &str = "auth/keys";
const ATTEMPTS: usize = 5;

/// A key, as it is kept.
#[derive(Clone, Serialize, Deserialize)]
struct SigningKey {
    id: String,
    /// PKCS#8 and the public point, in base64url.
    private: String,
    x: String,
    y: String,
    /// When it begins to sign.
    from: Timestamp,
}

/// The keys of access tokens.
pub(super) struct SigningKeys {
    vault: Vault,
    clock: Arc<dyn Clock>,
    random: Random,
    cached: Mutex<Option<(Arc<[SigningKey]>, Timestamp)>>,
}

impl SigningKeys {
    pub(super) fn new(vault: Vault, clock: Arc<dyn Clock>, random: Random) -> Self {
        Self { vault, clock, random, cached: Mutex::default() }
    }

    /// Signs the claims of an access token (RFC 9068).
    pub(super) async fn sign(&self, claims: &Value) -> Result<String, Problem> {
        let now = self.clock.now();
        let keys = self.keys().await?;
        let current = keys.iter().filter(|key| key.from <= now).max_by_key(|key| key.from);
        // The clock may have gone back, so that no key has begun to sign.
        let key = current.or(keys.first());
        let failed = |error: &dyn std::fmt::Display| Problem::unavailable("the keys", error);
        let key = key.ok_or_else(|| failed(&"there is no key"))?;

        let private = BASE64_URL_SAFE_NO_PAD.decode(&key.private).map_err(|e| failed(&e))?;
        let mut header = Header::new(Algorithm::ES256);
        header.typ = Some("at+jwt".to_owned());
        header.kid = Some(key.id.clone());
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_ec_der(&private))
            .map_err(|error| failed(&error))
    }

    /// The public keys (RFC 7517).
    pub(super) async fn public(&self) -> Result<Value, VaultError> {
        let keys = self.keys().await?;
        let keys = keys.iter().map(|key| {
            let SigningKey { id, x, y, .. } = key;
            json!({
                "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig",
                "kid": id, "x": x, "y": y,
            })
        });

        Ok(json!({ "keys": keys.collect::<Vec<_>>() }))
    }

    async fn keys(&self) -> Result<Arc<[SigningKey]>, VaultError> {
        let now = self.clock.now();
        let cached = self.cached.lock().clone();
        if let Some((keys, read)) = cached
            && now.since(read) < CACHED
        {
            return Ok(keys);
        }

        for _ in 0..ATTEMPTS {
            let (keys, version) = self.vault.read::<Vec<SigningKey>>(NAME).await?;
            let mut keys = keys.unwrap_or_default();
            if self.rotate(&mut keys, now)?
                // Only the first of several instances stores its keys; the others read them.
                && !self.vault.replace(NAME, version, Some(&keys)).await?
            {
                continue;
            }

            let keys: Arc<[SigningKey]> = keys.into();
            *self.cached.lock() = Some((Arc::clone(&keys), now));
            return Ok(keys);
        }

        Err(VaultError::Unavailable("the keys change all the time".to_owned()))
    }

    /// Makes the next key before it is needed, and drops those that no token has any more.
    /// Returns whether there is a change.
    fn rotate(&self, keys: &mut Vec<SigningKey>, now: Timestamp) -> Result<bool, VaultError> {
        let newest = keys.iter().map(|key| key.from).max();
        let is_due = |from: Timestamp| from.saturating_add(PERIOD) <= now.saturating_add(LEAD);
        if newest.is_some_and(|from| !is_due(from)) {
            return Ok(false);
        }

        // The first key signs at once, because no token has another key; so does a key after a
        // long pause.
        let is_over = |from: Timestamp| from.saturating_add(PERIOD + OVERLAP) <= now;
        let from = match newest {
            Some(from) if !is_over(from) => now.saturating_add(LEAD),
            _ => now,
        };

        keys.retain(|key| !is_over(key.from));
        keys.push(self.generate(from)?);
        Ok(true)
    }

    fn generate(&self, from: Timestamp) -> Result<SigningKey, VaultError> {
        let failed = |_| VaultError::Unavailable("a key cannot be made".to_owned());
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?;
        let private = pair.to_pkcs8v1().map_err(failed)?;

        // The uncompressed point: 4, x, y.
        let point = pair.public_key().as_ref();
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);

        Ok(SigningKey {
            id: self.random.id(),
            private: encode(private.as_ref()),
            x: encode(&point[1..33]),
            y: encode(&point[33..]),
            from,
        })
    }
}

/// Shows no key.
impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKeys")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use larder_runtime::clock::ManualClock;
    use larder_store::vault::{MemorySlots, Sealer};

    #[tokio::test]
    async fn instances_share_keys_that_rotate_with_an_overlap() {
        larder_oauth::install_crypto();
        let clock = ManualClock::new();
        let slots = Arc::new(MemorySlots::new(Arc::new(clock.clone()), 10));
        let [one, two] = [(); 2].map(|()| {
            let vault = Vault::new(slots.clone(), Sealer::new(b"key"));
            SigningKeys::new(vault, Arc::new(clock.clone()), Random::system())
        });

        let ids = async |keys: &SigningKeys| {
            let public = keys.public().await.unwrap();
            let ids = public["keys"].as_array().unwrap().iter();
            ids.map(|key| key["kid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };

        let signer = async |keys: &SigningKeys| {
            let token = keys.sign(&json!({ "sub": "a" })).await.unwrap();
            let header = jsonwebtoken::decode_header(&token).unwrap();
            assert_eq!((header.alg, header.typ.as_deref()), (Algorithm::ES256, Some("at+jwt")));
            header.kid.unwrap()
        };

        let first = signer(&one).await;
        assert_eq!(ids(&two).await, std::slice::from_ref(&first));

        clock.advance(PERIOD.saturating_sub(LEAD));
        let both = ids(&two).await;
        assert_eq!((both.len(), &both[0]), (2, &first));
        // All instances know the new key before it signs.
        assert_eq!((ids(&one).await, signer(&one).await), (both.clone(), first));

        clock.advance(LEAD);
        assert_eq!((signer(&one).await, signer(&two).await), (both[1].clone(), both[1].clone()));
        assert_eq!(ids(&one).await, both);

        clock.advance(PERIOD);
        let next = ids(&one).await;
        assert_eq!((next.len(), &next[0]), (2, &both[1]));

        clock.advance(10 * PERIOD);
        assert_eq!(ids(&two).await, [signer(&one).await]);
    }
}
