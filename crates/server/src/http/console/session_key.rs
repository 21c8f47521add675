//! The secret of a session, which only the cookie of its browser has, and the names of slots.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use larder_oauth::Owner;
use larder_runtime::random::Random;
use sha2::{Digest, Sha256};

/// The name of an owner in cookies and in the names of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account(String);

impl Account {
    /// The length of a hash in base64.
    const LENGTH: usize = 43;

    pub(super) fn of(owner: &Owner) -> Self {
        let hash = Sha256::digest(format!("larder: console account {owner}"));
        Self(BASE64_URL_SAFE_NO_PAD.encode(hash))
    }

    fn parse(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (text.len() == Self::LENGTH && text.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }

    /// The slot that says which sessions there are.
    pub(super) fn places_slot(&self) -> String {
        format!("console-sessions-{}", self.0)
    }

    /// The slot of the session in a place.
    pub(super) fn session_slot(&self, place: u16) -> String {
        format!("console-session-{}-{place}", self.0)
    }
}

/// The key to a session: its place, and the secret with which it is sealed there.
#[derive(Clone)]
pub(super) struct SessionKey {
    pub(super) place: u16,
    pub(super) account: Account,
    secret: String,
}

impl SessionKey {
    /// The length of a secret in hexadecimal.
    const LENGTH: usize = 64;

    /// A new key for the session in that place.
    pub(super) fn new(account: Account, place: u16, random: &Random) -> Self {
        Self { place, account, secret: random.secret() }
    }

    /// None if the text cannot be a key.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let place = parts.next()?.parse().ok()?;
        let account = Account::parse(parts.next()?)?;
        let secret = parts.next()?;

        let is_secret =
            secret.len() == Self::LENGTH && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_secret.then(|| Self { place, account, secret: secret.to_owned() })
    }

    /// The text of the cookie.
    pub(super) fn text(&self) -> String {
        format!("{}.{}.{}", self.place, self.account.0, self.secret)
    }

    pub(super) fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    /// The name of the slot, which does not reveal the secret.
    pub(super) fn slot(&self) -> String {
        self.account.session_slot(self.place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_no_key_is_not_looked_up() {
        let key = SessionKey::new(Account::of(&Owner::new("ann")), 3, &Random::system());
        let text = key.text();
        let read = SessionKey::parse(&text).unwrap();
        assert_eq!((read.text(), read.slot()), (text.clone(), key.slot()));
        assert!(!key.slot().contains(&key.secret));

        for bad in [
            "",
            "abc",
            &"a1".repeat(32),
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}0"),
            &format!("{text}.0"),
            &format!("-{text}"),
            &text.replace("3.", "65536."),
            &text.replacen('.', "/", 1),
        ] {
            assert!(SessionKey::parse(bad).is_none(), "{bad}");
        }
    }
}
