//! Request IDs and request metrics. This is the outermost step, so that it includes
//! rejected requests.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{ConnectInfo, Request},
    response::Response,
};
use http::{Extensions, HeaderName, HeaderValue, Method};
use tokio::time::Instant;
use tracing::Instrument;

use super::Endpoint;
use crate::in_flight::InFlight;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The maximum length of a request ID that a proxy sets.
const MAX_ID_LENGTH: usize = 64;

/// Serves a request. Its ID, set by a proxy or generated here, is in the log and in the
/// response.
pub(super) async fn request(
    endpoint: &Endpoint,
    mut request: Request,
    serve: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_valid = |id: &&str| {
        (1..=MAX_ID_LENGTH).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
    };
    let id = given.filter(is_valid).map_or_else(|| endpoint.random.id(), str::to_owned);
    let mut metrics = RequestMetrics::new(request.method());
    let client = client(endpoint, &request);
    if let Some(client) = client {
        request.extensions_mut().insert(Client(client));
    }
    let peer = client.map(tracing::field::display);
    let span = tracing::error_span!("request", request = &*id, peer);
    let mut response = serve(request).instrument(span).await;
    metrics.status = response.status().as_u16();
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The address of the client of a request.
#[derive(Debug, Clone, Copy)]
struct Client(IpAddr);

fn client(endpoint: &Endpoint, request: &Request) -> Option<IpAddr> {
    let ConnectInfo(peer) = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
    Some(endpoint.options().proxies.client(peer.ip(), request.headers()))
}

/// The address that the request came from: a proxy's, if there is one that is not trusted.
pub(super) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Client>().map(|Client(address)| *address)
}

/// Measures a request until it is dropped, also if the client disconnects.
struct RequestMetrics {
    method: &'static str,
    /// 499 until there is a response, as in nginx for a client that disconnected.
    status: u16,
    started: Instant,
    _in_flight: InFlight,
}

impl RequestMetrics {
    fn new(method: &Method) -> Self {
        let known = [
            Method::GET,
            Method::POST,
            Method::DELETE,
            Method::OPTIONS,
            Method::HEAD,
            Method::PUT,
            Method::PATCH,
        ];
        // Clients may send any method. Unknown ones share a label.
        let method = match known.iter().position(|known| known == method) {
            Some(0) => "GET",
            Some(1) => "POST",
            Some(2) => "DELETE",
            Some(3) => "OPTIONS",
            Some(4) => "HEAD",
            Some(5) => "PUT",
            Some(6) => "PATCH",
            _ => "_OTHER",
        };
        let in_flight = InFlight::new("http_server_active_requests");
        Self { method, status: 499, started: Instant::now(), _in_flight: in_flight }
    }
}

impl Drop for RequestMetrics {
    fn drop(&mut self) {
        metrics::histogram!(
            "http_server_request_duration_seconds",
            "http_request_method" => self.method,
            "http_response_status_code" => self.status.to_string(),
        )
        .record(self.started.elapsed());
    }
}
