//! An OpenID provider's metadata (OpenID Connect Discovery 1.0).

use std::sync::Arc;

use futures_util::FutureExt;
use larder_network::is_loopback;
use larder_oauth::{Fetcher, Refreshing, metadata_urls, safe_url};
use larder_protocol::quote::quoted;
use larder_runtime::clock::Clock;
use serde::Deserialize;
use url::Url;

/// The metadata of a provider, with checked URLs.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Metadata {
    issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) userinfo_endpoint: Option<Url>,
    pub(super) jwks_uri: Url,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether each authorization response names the issuer (RFC 9207).
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub(super) names_issuer: bool,
    /// Entra: the host of Microsoft Graph in this cloud.
    pub(super) msgraph_host: Option<String>,
}

/// The metadata of one provider, cached.
pub(super) fn discovery(
    fetcher: Fetcher,
    issuer: &str,
    section: &'static str,
    clock: Arc<dyn Clock>,
) -> Arc<Refreshing<Metadata>> {
    let issuer: Arc<str> = issuer.into();
    let source = move || {
        let (fetcher, issuer) = (fetcher.clone(), Arc::clone(&issuer));
        async move { fetch(&fetcher, &issuer, section).await }.boxed()
    };
    Refreshing::new(Arc::new(source), clock)
}

async fn fetch(fetcher: &Fetcher, issuer: &str, section: &str) -> Result<Metadata, String> {
    // OpenID Connect has the last of the URLs.
    let url = metadata_urls(issuer)?.pop().ok_or("it has no metadata")?;
    let read = match fetcher.get(&url).await {
        Ok(document) => Metadata::read(&document, issuer, section),
        Err(error) => Err(error.to_string()),
    };
    read.map_err(|problem| format!("{url}: {problem}"))
}

impl Metadata {
    fn read(document: &[u8], issuer: &str, section: &str) -> Result<Self, String> {
        let metadata: Self =
            serde_json::from_slice(document).map_err(|e| format!("not valid metadata: {e}"))?;

        // OpenID Connect Discovery 1.0, section 4.3: otherwise one issuer could impersonate
        // another.
        if metadata.issuer != issuer {
            let other = quoted(&metadata.issuer);
            return Err(format!("it is the metadata of the issuer {other} ({section}.issuer)"));
        }

        let is_local = safe_url(issuer).is_ok_and(|url| is_loopback(&url));
        let urls = [
            ("authorization_endpoint", Some(&metadata.authorization_endpoint)),
            ("token_endpoint", Some(&metadata.token_endpoint)),
            ("userinfo_endpoint", metadata.userinfo_endpoint.as_ref()),
            ("jwks_uri", Some(&metadata.jwks_uri)),
        ];
        for (name, url) in urls {
            let Some(url) = url else { continue };
            safe_url(url.as_str()).map_err(|problem| format!("{name}: {problem}"))?;
            if is_loopback(url) && !is_local {
                return Err(format!("{name}: a remote issuer must not name this machine"));
            }
        }

        let challenges = &metadata.code_challenge_methods_supported;
        if challenges.as_ref().is_some_and(|methods| methods.iter().all(|m| m != "S256")) {
            return Err("it does not support PKCE with S256".to_owned());
        }

        if !metadata.supports("client_secret_basic") && !metadata.supports("client_secret_post") {
            let problem = "its token endpoint accepts neither client_secret_basic nor \
                client_secret_post";
            return Err(problem.to_owned());
        }

        Ok(metadata)
    }

    /// Whether the client secret is sent in the body, not in a header.
    pub(super) fn is_secret_in_body(&self) -> bool {
        !self.supports("client_secret_basic")
    }

    fn supports(&self, method: &str) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        // OpenID Connect Discovery 1.0, section 3: `client_secret_basic` is the default.
        methods.map_or(method == "client_secret_basic", |known| known.iter().any(|m| m == method))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://idp.example";

    fn read(change: impl FnOnce(&mut Value)) -> Result<Metadata, String> {
        let mut document = json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://idp.example/authorize",
            "token_endpoint": "https://idp.example/token",
            "jwks_uri": "https://idp.example/keys",
        });

        change(&mut document);
        Metadata::read(document.to_string().as_bytes(), ISSUER, "auth.login")
    }

    #[test]
    fn the_issuer_must_match_exactly() {
        assert!(read(|_| {}).is_ok());
        for other in ["https://idp.example/", "https://IDP.example", "https://b.example", ""] {
            assert!(read(|d| d["issuer"] = json!(other)).is_err(), "{other}");
        }
    }

    #[test]
    fn endpoints_are_encrypted_and_not_on_this_machine() {
        for name in ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"] {
            for bad in ["http://idp.example/x", "http://127.0.0.1/x", "https://[::1]/x", "x", ""] {
                assert!(read(|d| d[name] = json!(bad)).is_err(), "{name} {bad}");
            }
        }
    }

    #[test]
    fn a_provider_must_not_rule_out_pkce() {
        let challenges = |methods: &[&str]| {
            read(|d| d["code_challenge_methods_supported"] = json!(methods)).is_ok()
        };

        assert!(challenges(&["plain", "S256"]));
        assert!(!challenges(&["plain"]) && !challenges(&[]));
    }

    #[test]
    fn the_secret_is_sent_as_the_provider_wants_it() {
        let in_body = |methods: &[&str]| {
            let read = read(|d| d["token_endpoint_auth_methods_supported"] = json!(methods));
            read.map(|metadata| metadata.is_secret_in_body()).ok()
        };

        assert!(!read(|_| {}).unwrap().is_secret_in_body());
        assert_eq!(in_body(&["client_secret_post", "client_secret_basic"]), Some(false));
        assert_eq!(in_body(&["private_key_jwt", "client_secret_post"]), Some(true));
        assert_eq!(in_body(&["private_key_jwt"]), None);
    }
}
