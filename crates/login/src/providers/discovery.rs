//! The metadata of an OpenID provider.

use std::sync::Arc;

use futures_util::FutureExt;
use larder_oauth::{
    Fetcher, Refreshing,
    client::{
        DiscoveryError, Endpoint, Metadata, MetadataError, WellKnown, discover, url_named_by,
    },
    safe_url,
};
use larder_runtime::clock::Clock;
use url::Url;

/// The metadata of a provider, with the endpoints that each provider needs.
#[derive(Debug, Clone)]
pub(super) struct ProviderMetadata {
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) userinfo_endpoint: Option<Url>,
    pub(super) jwks_uri: Url,
    pub(super) document: Metadata,
}

/// The metadata of one provider, cached.
pub(super) fn discovery(
    fetcher: Fetcher,
    issuer: &str,
    section: &'static str,
    clock: Arc<dyn Clock>,
) -> Arc<Refreshing<ProviderMetadata>> {
    let issuer: Arc<str> = issuer.into();
    let source = move || {
        let fetcher = fetcher.clone();
        let issuer = Arc::clone(&issuer);
        let fetched = async move {
            let read = ProviderMetadata::read;
            let found = discover(&fetcher, &issuer, WellKnown::OpenId, read).await;
            found.map_err(|error| problem(&error, section))
        };
        fetched.boxed()
    };
    Refreshing::new(Arc::new(source), clock)
}

/// The problem, with the setting that may be wrong.
fn problem(error: &DiscoveryError, section: &str) -> String {
    let DiscoveryError::Documents(problems) = error else { return error.to_string() };
    let is_other = |problem: &MetadataError| matches!(problem, MetadataError::OtherIssuer(_));
    if problems.iter().any(|(_, problem)| is_other(problem)) {
        return format!("{error} ({section}.issuer)");
    }
    error.to_string()
}

impl ProviderMetadata {
    fn read(document: Metadata) -> Result<Self, String> {
        let issuer = safe_url(&document.issuer)?;
        let url = |text: &str| url_named_by(&issuer, text).map_err(str::to_owned);
        let authorization_endpoint = document.required(Endpoint::Authorization, url)?;
        let token_endpoint = document.required(Endpoint::Token, url)?;
        let userinfo_endpoint = document.optional(Endpoint::Userinfo, url)?;
        let jwks_uri = document.required(Endpoint::Keys, url)?;

        // Many providers support PKCE without saying so.
        if document.supports_pkce() == Some(false) {
            return Err("it does not support PKCE with S256".to_owned());
        }

        let methods = ["client_secret_basic", "client_secret_post"];
        if !methods.iter().any(|method| document.accepts_client_by(method)) {
            let problem = "its token endpoint accepts neither client_secret_basic nor \
                client_secret_post";
            return Err(problem.to_owned());
        }

        Ok(Self { authorization_endpoint, token_endpoint, userinfo_endpoint, jwks_uri, document })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://idp.example";

    fn read(change: impl FnOnce(&mut Value)) -> Result<ProviderMetadata, String> {
        let mut document = json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://idp.example/authorize",
            "token_endpoint": "https://idp.example/token",
            "jwks_uri": "https://idp.example/keys",
        });

        change(&mut document);
        ProviderMetadata::read(Metadata::read(document.to_string().as_bytes(), ISSUER).unwrap())
    }

    #[test]
    fn endpoints_are_encrypted_and_not_on_this_machine() {
        assert!(read(|_| {}).is_ok());
        for name in ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"] {
            for bad in ["http://idp.example/x", "http://127.0.0.1/x", "https://[::1]/x", "x", ""] {
                assert!(read(|d| d[name] = json!(bad)).is_err(), "{name} {bad}");
            }

            let without = read(|document| document[name] = json!(null));
            assert_eq!(without.is_ok(), name == "userinfo_endpoint", "{name}");
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
    fn a_provider_must_accept_the_secret() {
        let accepts = |methods: &[&str]| {
            read(|d| d["token_endpoint_auth_methods_supported"] = json!(methods)).is_ok()
        };

        assert!(accepts(&["private_key_jwt", "client_secret_post"]));
        assert!(!accepts(&["private_key_jwt"]) && !accepts(&[]));
    }
}
