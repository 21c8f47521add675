//! Signs the claims of links and checks them.

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use larder_runtime::{
    clock::{Clock, Timestamp},
    key_ring::KeyRing,
};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;

/// The maximum length of a token. A longer one is rejected before it is decoded.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// Separates the keys of links from other uses of the key ring.
const KEY_LABEL: &[u8] = b"larder content links 1";

/// The size of a tag in bytes.
const TAG_BYTES: usize = 32;

/// The permission that a link carries.
pub trait Claims: Serialize + DeserializeOwned {
    /// The purpose of the link and its methods, such as `download GET`. A token of one
    /// purpose is invalid for any other.
    const PURPOSE: &'static str;

    /// When the link expires.
    fn expires(&self) -> Timestamp;
}

/// Signs and checks tokens: base64url of an HMAC-SHA256 and the claims as JSON. Cheap to
/// clone.
#[derive(Clone)]
pub struct LinkSigner {
    keys: KeyRing,
    clock: Arc<dyn Clock>,
}

impl LinkSigner {
    /// All instances behind one URL need the same keys.
    pub(crate) fn new(keys: KeyRing, clock: Arc<dyn Clock>) -> Self {
        Self { keys, clock }
    }

    /// The time by which links expire.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The token of these claims. It is valid only together with `bound`, the other parts of
    /// the URL.
    pub(crate) fn sign<C: Claims>(&self, claims: &C, bound: &[&str]) -> String {
        // Serialization never fails for strings, numbers and lists.
        let payload = serde_json::to_vec(claims).unwrap_or_default();
        let tag = mac::<C>(&self.keys.current(), bound, &payload).finalize().into_bytes();

        let mut token = Vec::with_capacity(TAG_BYTES + payload.len());
        token.extend_from_slice(&tag);
        token.extend_from_slice(&payload);
        BASE64_URL_SAFE_NO_PAD.encode(token)
    }

    /// The claims of a token. None if this server did not sign it for this purpose and this
    /// URL, or it has expired.
    pub(crate) fn open<C: Claims>(&self, token: &str, bound: &[&str]) -> Option<C> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }

        let token = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (tag, payload) = token.split_at_checked(TAG_BYTES)?;

        // `verify_slice` compares in constant time.
        let is_ours = |key: &[u8]| mac::<C>(key, bound, payload).verify_slice(tag).is_ok();
        if !self.keys.any(is_ours) {
            return None;
        }

        let claims: C = serde_json::from_slice(payload).ok()?;
        (claims.expires() > self.now()).then_some(claims)
    }
}

impl fmt::Debug for LinkSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSigner")
    }
}

fn mac<C: Claims>(key: &[u8], bound: &[&str], payload: &[u8]) -> Hmac<Sha256> {
    let new = |key: &[u8]| Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes any key");
    let mut derived = new(key);
    derived.update(KEY_LABEL);
    let mut mac = new(&derived.finalize().into_bytes());

    let bound = bound.iter().map(|part| part.as_bytes());
    // Lengths keep the end of one part from passing for the beginning of the next.
    for part in [C::PURPOSE.as_bytes()].into_iter().chain(bound).chain([payload]) {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }

    mac
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use larder_runtime::clock::ManualClock;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Read(Timestamp);

    impl Claims for Read {
        const PURPOSE: &'static str = "read";

        fn expires(&self) -> Timestamp {
            self.0
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Write(Timestamp);

    impl Claims for Write {
        const PURPOSE: &'static str = "write";

        fn expires(&self) -> Timestamp {
            self.0
        }
    }

    fn signer(keys: &KeyRing, clock: &ManualClock) -> LinkSigner {
        LinkSigner::new(keys.clone(), Arc::new(clock.clone()))
    }

    #[test]
    fn a_token_opens_for_its_purpose_and_url_until_it_expires() {
        let (clock, keys) = (ManualClock::new(), KeyRing::new(*b"key"));
        let signer = signer(&keys, &clock);
        let claims = Read(signer.now().saturating_add(Duration::from_secs(60)));
        let token = signer.sign(&claims, &["https://a.example", "x"]);

        assert_eq!(signer.open(&token, &["https://a.example", "x"]), Some(claims));
        assert_eq!(signer.open::<Write>(&token, &["https://a.example", "x"]), None);
        for bound in [&["https://a.example", "y"][..], &["https://a.examplex", ""], &[]] {
            assert_eq!(signer.open::<Read>(&token, bound), None, "{bound:?}");
        }

        clock.advance(Duration::from_secs(60));
        assert_eq!(signer.open::<Read>(&token, &["https://a.example", "x"]), None);
    }

    #[test]
    fn each_changed_byte_and_another_key_make_a_token_invalid() {
        let (clock, keys) = (ManualClock::new(), KeyRing::new(*b"key"));
        let signer = signer(&keys, &clock);
        let token = signer.sign(&Read(Timestamp::from_millis(u64::MAX)), &[]);

        for index in 0..token.len() {
            for byte in (b'!'..=b'~').filter(|byte| *byte != token.as_bytes()[index]) {
                let mut changed = token.clone().into_bytes();
                changed[index] = byte;
                let changed = String::from_utf8(changed).unwrap();
                assert_eq!(signer.open::<Read>(&changed, &[]), None, "{changed}");
            }
            assert_eq!(signer.open::<Read>(&token[..index], &[]), None);
        }

        assert_eq!(signer.open::<Read>(&format!("{token}A"), &[]), None);
        assert_eq!(signer.open::<Read>(&format!("{token}="), &[]), None);

        let other = LinkSigner::new(KeyRing::new(*b"other"), Arc::new(clock.clone()));
        assert_eq!(other.open::<Read>(&token, &[]), None);

        // A key that no longer seals still opens.
        keys.rotate(Arc::from(*b"next"), vec![Arc::from(*b"key")]);
        assert!(signer.open::<Read>(&token, &[]).is_some());
        keys.rotate(Arc::from(*b"next"), Vec::new());
        assert_eq!(signer.open::<Read>(&token, &[]), None);
    }

    proptest! {
        #[test]
        fn any_text_is_no_token(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let signer = signer(&KeyRing::new(*b"key"), &ManualClock::new());
            prop_assert_eq!(signer.open::<Read>(&text, &[]), None);

            let encoded = BASE64_URL_SAFE_NO_PAD.encode(bytes);
            prop_assert_eq!(signer.open::<Read>(&encoded, &[]), None);
        }
    }
}
