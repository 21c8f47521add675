//! [`Sender`]: sends the requests that `oauth2` builds.

use std::ops::RangeInclusive;

use futures_util::{FutureExt, future::BoxFuture};
use http::{
    HeaderValue, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::lenient;
use crate::{FetchError, Fetcher};

/// The statuses with which a token endpoint refuses (RFC 6749, section 5.2).
pub(super) const GRANT_REFUSALS: RangeInclusive<u16> = 400..=401;

/// Sends requests for `oauth2`, which would take any error with a JSON body for a verdict.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) fetcher: &'a Fetcher,
    /// The URL that requests go to, whatever `oauth2` has been told.
    pub(crate) url: &'a Url,
    /// A grant type in place of the one that `oauth2` writes.
    pub(crate) grant_type: Option<&'static str>,
    /// The statuses that are a verdict; `None` if only 200 is one.
    pub(crate) refusals: Option<RangeInclusive<u16>>,
}

/// Why an endpoint gives no verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The endpoint could not be asked.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The parameters make no HTTP request.
    #[error("the request cannot be built")]
    Request,
}

impl<'c> AsyncHttpClient<'c> for Sender<'_> {
    type Error = SendError;
    type Future = BoxFuture<'c, Result<HttpResponse, SendError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        self.send(request).boxed()
    }
}

impl Sender<'_> {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, SendError> {
        if let Some(grant_type) = self.grant_type {
            *request.body_mut() = with_grant_type(request.body(), grant_type);
        }

        let mut request = reqwest::Request::try_from(request).map_err(|_| SendError::Request)?;
        *request.url_mut() = self.url.clone();
        if let Some(credentials) = request.headers_mut().get_mut(AUTHORIZATION) {
            credentials.set_sensitive(true);
        }

        let (status, body) = self.fetcher.send(request).await?;
        let is_refused = match &self.refusals {
            Some(_) if status == 200 => is_error(&body),
            Some(refusals) if refusals.contains(&status) => true,
            None if status == 200 => false,
            _ => return Err(FetchError::Status(status).into()),
        };

        let mut response = HttpResponse::new(lenient::response(body));
        if is_refused {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        Ok(response)
    }
}

/// Whether a body with status 200 is an error, as GitHub sends it.
fn is_error(body: &[u8]) -> bool {
    let body = serde_json::from_slice::<Value>(body).unwrap_or_default();
    body.get("error").is_some() && body.get("access_token").is_none()
}

fn with_grant_type(form: &[u8], grant_type: &str) -> Vec<u8> {
    let pairs = form_urlencoded::parse(form).map(|(name, value)| {
        let value = if name == "grant_type" { grant_type.into() } else { value };
        (name, value)
    });
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into()
}
