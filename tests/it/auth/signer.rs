//! Signs any header and any claims, also those of tokens that no honest issuer would issue.

use std::sync::LazyLock;

use aws_lc_rs::{
    encoding::AsDer,
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RsaKeyPair,
    },
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A key pair, generated once for all tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signer {
    Rsa,
    Ec,
    Ed,
    /// A key that is not among the keys of the issuer.
    Stranger,
}

static RSA: LazyLock<RsaKeyPair> =
    LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
static STRANGER: LazyLock<RsaKeyPair> =
    LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
static EC: LazyLock<EcdsaKeyPair> =
    LazyLock::new(|| EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap());
static ED: LazyLock<Ed25519KeyPair> = LazyLock::new(|| Ed25519KeyPair::generate().unwrap());

pub(crate) fn part(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    pub(crate) fn kid(self) -> &'static str {
        match self {
            Self::Rsa | Self::Stranger => "rsa",
            Self::Ec => "ec",
            Self::Ed => "ed",
        }
    }

    pub(crate) fn alg(self) -> &'static str {
        match self {
            Self::Rsa | Self::Stranger => "RS256",
            Self::Ec => "ES256",
            Self::Ed => "EdDSA",
        }
    }

    /// The public key as a JWK.
    pub(crate) fn jwk(self) -> Value {
        let mut jwk = match self {
            Self::Rsa | Self::Stranger => {
                let key = if self == Self::Rsa { &*RSA } else { &*STRANGER };
                let n = key.public_key().modulus();
                let e = key.public_key().exponent();
                json!({
                    "kty": "RSA",
                    "n": part(n.big_endian_without_leading_zero()),
                    "e": part(e.big_endian_without_leading_zero()),
                })
            }
            Self::Ec => {
                let point = EC.public_key().as_ref();
                json!({
                    "kty": "EC", "crv": "P-256", "x": part(&point[1..33]), "y": part(&point[33..]),
                })
            }
            Self::Ed => json!({ "kty": "OKP", "crv": "Ed25519", "x": part(ED.public_key()) }),
        };
        jwk["kid"] = json!(self.kid());
        jwk["use"] = json!("sig");
        jwk
    }

    pub(crate) fn header(self) -> Value {
        json!({ "alg": self.alg(), "typ": "at+jwt", "kid": self.kid() })
    }

    /// A token with the usual header.
    pub(crate) fn token(self, claims: &Value) -> String {
        self.sign(&self.header(), claims)
    }

    /// A token with this header and these claims.
    pub(crate) fn sign(self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    pub(crate) fn sign_text(self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", part(header), part(claims));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa | Self::Stranger => {
                let key = if self == Self::Rsa { &*RSA } else { &*STRANGER };
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
            Self::Ec => EC.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Self::Ed => ED.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", part(signature))
    }

    /// A token that is signed by HMAC, with the RSA public key as the secret.
    pub(crate) fn confused(header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", part(header.to_string()), part(claims.to_string()));
        let public = RSA.public_key().as_der().unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, public.as_ref());
        let signature = hmac::sign(&key, message.as_bytes());
        format!("{message}.{}", part(signature))
    }
}
