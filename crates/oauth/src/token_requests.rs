//! Requests to token endpoints, for `oauth2`.

use futures_util::{FutureExt, future::BoxFuture};
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use serde_json::Value;

use super::fetch::{FetchError, Fetcher};

/// Sends requests for `oauth2`, which would take any error with a JSON body for a verdict.
pub struct TokenRequests<'a>(pub &'a Fetcher);

/// Why a token endpoint gives no verdict.
#[derive(Debug, thiserror::Error)]
pub enum TokenRequestError {
    /// The endpoint could not be asked.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// What was given makes no HTTP request.
    #[error("the request cannot be built")]
    Request,
}

impl<'c> AsyncHttpClient<'c> for TokenRequests<'_> {
    type Error = TokenRequestError;
    type Future = BoxFuture<'c, Result<HttpResponse, TokenRequestError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        async move {
            let request =
                reqwest::Request::try_from(request).map_err(|_| TokenRequestError::Request)?;
            let (status, body) = self.0.send(request).await?;

            let is_ok = match status {
                200 => !is_error(&body),
                400 | 401 => false,
                status => return Err(FetchError::Status(status).into()),
            };

            let mut response = HttpResponse::new(body);
            if !is_ok {
                *response.status_mut() = http::StatusCode::BAD_REQUEST;
            }
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, json);
            Ok(response)
        }
        .boxed()
    }
}

/// Whether a body with status 200 is an error, as GitHub sends it.
fn is_error(body: &[u8]) -> bool {
    let body = serde_json::from_slice::<Value>(body).unwrap_or_default();
    body.get("error").is_some() && body.get("access_token").is_none()
}
