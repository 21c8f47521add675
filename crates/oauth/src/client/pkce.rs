//! Proof Key for Code Exchange with the method S256 (RFC 7636).

use std::fmt;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use larder_runtime::random::Random;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The code verifier of a login, a secret until the code is redeemed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verifier(String);

impl Verifier {
    /// A verifier of 256 random bits, as 64 characters.
    pub fn new(random: &Random) -> Self {
        Self(random.secret())
    }

    /// The challenge that the authorization request has.
    pub fn challenge(&self) -> String {
        challenge(&self.0)
    }

    /// The verifier itself, for the token request.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// The challenge of a verifier (RFC 7636, section 4.2).
pub fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

/// Shows no secret.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn verifiers_are_long_enough_and_differ() {
        let random = Random::system();
        let verifier = Verifier::new(&random);

        // RFC 7636, section 4.1.
        assert!((43..=128).contains(&verifier.reveal().len()));
        assert!(verifier.reveal().bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(verifier.challenge(), challenge(verifier.reveal()));
        assert_ne!(verifier.reveal(), Verifier::new(&random).reveal());
        assert!(!format!("{verifier:?}").contains(verifier.reveal()));
    }
}
