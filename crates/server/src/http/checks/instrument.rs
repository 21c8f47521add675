//! Request IDs and request metrics. This is the outermost step, so that it includes
//! rejected requests.

use std::{fmt, net::IpAddr};

use axum::response::Response;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method};
use larder_runtime::{
    histograms::Histograms,
    in_flight::InFlight,
    in_span::InSpan,
    metric::{self, Label},
};
use tokio::time::Instant;
use tracing::Span;

use crate::http::{Endpoint, head::Head};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The maximum length of a request ID that a proxy sets.
const MAX_ID_LENGTH: usize = 64;

/// A request that is measured from now on. Its ID, set by a proxy or generated here, is in the log
/// and in the response.
pub(in crate::http) struct Measured<'a> {
    id: String,
    span: Span,
    metrics: RequestMetrics<'a>,
}

impl<'a> Measured<'a> {
    pub(in crate::http) fn begin(endpoint: &'a Endpoint, head: &Head) -> Self {
        let is_valid = |id: &&str| {
            (1..=MAX_ID_LENGTH).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
        };
        let given = head.text(&REQUEST_ID).filter(is_valid);
        let id = given.map_or_else(|| endpoint.random.id(), str::to_owned);

        let metrics = RequestMetrics::new(&endpoint.durations, head.method());
        let peer = head.peer().map(|address| tracing::field::display(AddressText(address)));
        let span = tracing::error_span!("request", request = &*id, peer);
        Self { id, span, metrics }
    }

    /// Serves the request.
    pub(in crate::http) async fn serve(self, served: BoxFuture<'_, Response>) -> Response {
        let Self { id, span, mut metrics } = self;
        let mut response = InSpan::new(span, served).await;

        metrics.status = response.status().as_u16();
        if let Ok(id) = HeaderValue::try_from(id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response
    }
}

/// Formats an address as its `Display` does, but faster for IPv4, because each request has one.
struct AddressText(IpAddr);

impl fmt::Display for AddressText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IpAddr::V4(address) = self.0 else { return self.0.fmt(f) };

        let (mut text, mut len) = ([b'.'; 15], 0);
        for octet in address.octets() {
            let digits = [octet / 100, octet / 10 % 10, octet % 10].map(|digit| b'0' + digit);
            let digits = &digits[2 - usize::from(octet >= 10) - usize::from(octet >= 100)..];
            text[len..len + digits.len()].copy_from_slice(digits);
            // The dot after the last octet is cut off below.
            len += digits.len() + 1;
        }

        f.write_str(str::from_utf8(&text[..len - 1]).unwrap_or_default())
    }
}

/// The durations of requests, by method and status.
pub type RequestDurations = Histograms<(&'static str, u16)>;

/// Measures a request until it is dropped, also if the client disconnects.
struct RequestMetrics<'a> {
    durations: &'a RequestDurations,
    method: &'static str,
    /// 499 until there is a response, as in nginx for a client that disconnected.
    status: u16,
    started: Instant,
    _in_flight: InFlight,
}

impl<'a> RequestMetrics<'a> {
    fn new(durations: &'a RequestDurations, method: &Method) -> Self {
        let known = [
            Method::GET,
            Method::POST,
            Method::DELETE,
            Method::OPTIONS,
            Method::HEAD,
            Method::PUT,
            Method::PATCH,
        ];

        // Clients may send any method. Unknown methods share a label.
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
        Self { durations, method, status: 499, started: Instant::now(), _in_flight: in_flight }
    }
}

impl Drop for RequestMetrics<'_> {
    fn drop(&mut self) {
        let labels = (self.method, self.status);
        let register = || {
            let histogram = metric::histogram(
                "http_server_request_duration_seconds",
                [
                    ("http_request_method", Label::fixed(self.method)),
                    ("http_response_status_code", Label::status(self.status)),
                ],
            );
            (labels, histogram)
        };

        self.durations.get(&labels, register).record(self.started.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_usual() {
        for text in ["0.0.0.0", "127.0.0.1", "10.20.30.99", "255.100.9.10", "::1", "2001:db8::1"] {
            let address: IpAddr = text.parse().expect("it is an address");
            assert_eq!(AddressText(address).to_string(), text);
        }
    }
}
