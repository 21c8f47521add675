//! Requests to a provider's APIs with a user's access token.

use larder_oauth::{FetchError, Fetcher};
use larder_protocol::quote::shortened;
use reqwest::{Method, Request, header::HeaderValue};
use serde_json::Value;
use url::Url;

use crate::ProviderError;

/// An HTTP client for a provider: bounded in size and time, and it follows no redirect to
/// another origin.
#[derive(Debug, Clone)]
pub(super) struct Http(Fetcher);

/// A response of an API, in JSON.
pub(super) struct ApiResponse {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Http {
    pub(super) fn new(fetcher: Fetcher) -> Self {
        Self(fetcher)
    }

    pub(super) fn fetcher(&self) -> &Fetcher {
        &self.0
    }

    /// The response to a GET.
    ///
    /// # Errors
    /// [`ProviderError::Unavailable`], also if the API is overloaded or fails.
    pub(super) async fn get(
        &self,
        url: &Url,
        access_token: &str,
        accept: &'static str,
    ) -> Result<ApiResponse, ProviderError> {
        let mut request = Request::new(Method::GET, url.clone());
        request.headers_mut().insert("accept", HeaderValue::from_static(accept));
        self.send(request, access_token).await
    }

    /// The response to a POST of JSON.
    ///
    /// # Errors
    /// As [`Http::get`].
    pub(super) async fn post(
        &self,
        url: &Url,
        access_token: &str,
        body: &Value,
    ) -> Result<ApiResponse, ProviderError> {
        let mut request = Request::new(Method::POST, url.clone());
        for name in ["accept", "content-type"] {
            request.headers_mut().insert(name, HeaderValue::from_static("application/json"));
        }
        *request.body_mut() = Some(body.to_string().into());
        self.send(request, access_token).await
    }

    async fn send(&self, mut request: Request, access: &str) -> Result<ApiResponse, ProviderError> {
        let url = request.url().clone();
        let mut bearer = HeaderValue::try_from(format!("Bearer {access}"))
            .map_err(|_| ProviderError::Refused("the access token is malformed".to_owned()))?;
        bearer.set_sensitive(true);
        request.headers_mut().insert("authorization", bearer);

        let response = self.0.send(request).await.and_then(|(status, body)| match status {
            429 | 500.. => Err(FetchError::Status(status)),
            _ => Ok((status, body)),
        });
        let (status, body) = response.map_err(|error| {
            ProviderError::Unavailable(format!("{}: {error}", without_query(&url)))
        })?;

        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        // GitHub refuses a request over its rate limit with this status, too.
        let message = body["message"].as_str().unwrap_or_default();
        if status == 403 && message.to_ascii_lowercase().contains("rate limit") {
            let problem = format!("{}: {}", without_query(&url), shortened(message));
            return Err(ProviderError::Unavailable(problem));
        }

        Ok(ApiResponse { status, body })
    }
}

/// A URL for messages.
pub(super) fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.into()
}
