//! [`Sealer`]: authenticated encryption with AES-256-GCM-SIV (RFC 8452).

use std::{fmt, sync::Arc};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;

/// Seals values with a key. A value opens only in the context for which it was sealed. Cheap to
/// clone.
#[derive(Clone)]
pub struct Sealer(Arc<RandomizedNonceKey>);

impl Sealer {
    /// A sealer whose key is derived from `secret`.
    ///
    /// # Panics
    /// Never: the derived key has the length that the algorithm needs.
    pub fn new(secret: &[u8]) -> Self {
        let mut derived =
            Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
        derived.update(b"larder: vault");

        let key = derived.finalize().into_bytes();
        let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, &key).expect("the key has 32 bytes");
        Self(Arc::new(key))
    }

    /// Seals a value for a context. Returns the nonce and the sealed value.
    pub(super) fn seal<T: Serialize>(&self, context: &str, value: &T) -> Vec<u8> {
        // Strings, numbers and JSON can always be written.
        let mut sealed = serde_json::to_vec(value).unwrap_or_default();
        let context = Aad::from(context.as_bytes());

        let nonce = self.0.seal_in_place_append_tag(context, &mut sealed);
        let nonce = nonce.expect("fails only beyond 2^36 bytes");
        [nonce.as_ref().as_slice(), &sealed].concat()
    }

    /// Opens a sealed value; `None` if it was not sealed for this context with this key.
    pub(super) fn open<T: DeserializeOwned>(&self, context: &str, sealed: &[u8]) -> Option<T> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();

        let context = Aad::from(context.as_bytes());
        let opened = self.0.open_in_place(nonce, context, &mut sealed).ok()?;
        serde_json::from_slice(opened).ok()
    }

    /// Seals a value for a context, in text for a URL.
    pub fn seal_text<T: Serialize>(&self, context: &str, value: &T) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.seal(context, value))
    }

    /// Opens a text; `None` if it was not sealed for this context with this key.
    pub fn open_text<T: DeserializeOwned>(&self, context: &str, text: &str) -> Option<T> {
        self.open(context, &BASE64_URL_SAFE_NO_PAD.decode(text).ok()?)
    }
}

/// Shows no key.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}
