//! [`ExchangeServer`]: where the authorization server exchanges tokens.

use larder_oauth::{FetchError, Fetcher, client::ClientIdentity, metadata_urls, safe_url};
use reqwest::Url;
use serde::Deserialize;

use crate::settings::{TokenExchangeSettings, TokenServer};

/// An authorization server that exchanges tokens.
pub(super) struct ExchangeServer {
    /// The token endpoint.
    pub(super) url: Url,
    pub(super) client: ClientIdentity,
}

/// What is read of the metadata of an authorization server (RFC 8414).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    token_endpoint: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl ExchangeServer {
    /// The server of the settings, with the endpoint that they or the issuer's metadata name.
    ///
    /// # Errors
    /// What is wrong or does not respond.
    pub(super) async fn find(
        settings: &TokenExchangeSettings,
        fetcher: &Fetcher,
    ) -> Result<Self, String> {
        let (url, is_secret_in_body) = match &settings.server {
            TokenServer::Endpoint(url) => (safe(url)?, false),
            TokenServer::Issuer(issuer) => {
                let metadata = discover(issuer, fetcher).await?;
                let methods = metadata.token_endpoint_auth_methods_supported;
                // The default of RFC 8414 is `client_secret_basic`.
                let is_secret_in_body =
                    methods.is_some_and(|known| !known.iter().any(|m| m == "client_secret_basic"));
                (safe(&metadata.token_endpoint)?, is_secret_in_body)
            }
        };

        let client = ClientIdentity {
            id: settings.client_id.clone(),
            secret: Some(settings.client_secret.clone()),
            is_secret_in_body,
        };
        Ok(Self { url, client })
    }
}

fn safe(url: &str) -> Result<Url, String> {
    safe_url(url).map_err(|problem| format!("its token endpoint: {problem}"))
}

async fn discover(issuer: &str, fetcher: &Fetcher) -> Result<Metadata, String> {
    let mut problem = "it has no metadata".to_owned();

    for url in metadata_urls(issuer)? {
        match fetcher.get(&url).await {
            Ok(document) => match serde_json::from_slice::<Metadata>(&document) {
                // RFC 8414, section 3.3: with another issuer, one server could impersonate another.
                Ok(metadata) if metadata.issuer == issuer => return Ok(metadata),
                Ok(_) => problem = String::from("its metadata is that of another issuer"),
                Err(_) => problem = String::from("its metadata is not valid"),
            },
            Err(FetchError::Status(400..=499)) => {}
            Err(error) => problem = error.to_string(),
        }
    }

    Err(format!("{problem} (upstreams.exchange.issuer)"))
}
