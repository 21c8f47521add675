//! [`ExchangeServer`]: where the authorization server exchanges tokens.

use larder_oauth::{
    Fetcher,
    client::{ClientIdentity, Endpoint, Metadata, WellKnown, discover},
    safe_url,
};
use reqwest::Url;

use crate::settings::{TokenExchangeSettings, TokenServer};

/// An authorization server that exchanges tokens.
pub(super) struct ExchangeServer {
    /// The token endpoint.
    pub(super) url: Url,
    pub(super) client: ClientIdentity,
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
        let url = |text: &str| safe_url(text).map_err(str::to_owned);
        let (url, is_secret_in_body) = match &settings.server {
            TokenServer::Endpoint(text) => {
                let url = url(text).map_err(|problem| format!("its token endpoint: {problem}"))?;
                (url, false)
            }
            TokenServer::Issuer(issuer) => {
                let read = |metadata: Metadata| {
                    let url = metadata.required(Endpoint::Token, url)?;
                    Ok((url, metadata.is_secret_in_body()))
                };
                let found = discover(fetcher, issuer, WellKnown::Any, read).await;
                found
                    .map_err(|error| format!("{} (upstreams.exchange.issuer)", error.decisive()))?
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
