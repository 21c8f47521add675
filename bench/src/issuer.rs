//! An authorization server with only metadata and keys, and its tokens.

use std::io;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use axum::{Json, Router, routing::get};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Serves metadata and keys until the process ends.
pub struct Issuer {
    pub url: String,
    key: EcdsaKeyPair,
}

impl Issuer {
    /// # Errors
    /// When no port is free.
    pub async fn start() -> io::Result<Self> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
            .map_err(|_| io::Error::other("no key"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let point = key.public_key().as_ref();
        let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
        let keys = json!({ "keys": [
            { "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "1", "use": "sig" },
        ] });
        let metadata = json!({ "issuer": url, "jwks_uri": format!("{url}/jwks") });
        let serve = |document: Value| get(|| std::future::ready(Json(document)));
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", serve(metadata))
            .route("/jwks", serve(keys));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, key })
    }

    /// A token for a resource, valid for an hour.
    ///
    /// # Panics
    /// When the system has no randomness.
    pub fn token(&self, resource: &str) -> String {
        self.token_of("bench", resource)
    }

    /// A token of this subject.
    ///
    /// # Panics
    /// When the system has no randomness.
    pub fn token_of(&self, subject: &str, resource: &str) -> String {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_secs());
        let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": "1" });
        let claims = json!({
            "iss": self.url, "sub": subject, "aud": resource, "client_id": "bench",
            "iat": now, "exp": now + 3600, "jti": "1", "scope": "mcp:read",
        });
        let signed =
            format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature =
            self.key.sign(&SystemRandom::new(), signed.as_bytes()).expect("there is randomness");
        format!("{signed}.{}", BASE64.encode(signature))
    }
}
