//! Gives each request a name and measures it: outermost of all, so that
//! whatever is refused within is seen as well.

use axum::{extract::Request, response::Response};
use http::{HeaderName, HeaderValue, Method};
use tokio::time::Instant;
use tracing::Instrument;

use super::Endpoint;
use crate::in_flight::InFlight;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A proxy's name for a request is kept if it is no longer than this.
const MOST_ID: usize = 64;

/// Names it in the log and in the answer, by the name that a proxy has given
/// it or by one of ours.
pub(super) async fn request(
    endpoint: &Endpoint,
    request: Request,
    serve: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_fit = |id: &&str| {
        (1..=MOST_ID).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
    };
    let id = given.filter(is_fit).map_or_else(|| endpoint.random.id(), str::to_owned);
    let mut measured = Measured::new(request.method());
    let span = tracing::error_span!("request", request = &*id);
    let mut response = serve(request).instrument(span).await;
    measured.status = response.status().as_u16();
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// From now until it is dropped, also when the client goes before an answer.
struct Measured {
    method: &'static str,
    /// 499 while there is none, as nginx has it for a client that went.
    status: u16,
    begun: Instant,
    _active: InFlight,
}

impl Measured {
    fn new(method: &Method) -> Self {
        let known = [Method::GET, Method::POST, Method::DELETE, Method::OPTIONS, Method::HEAD];
        // Clients may make up methods, and there are not to be as many numbers.
        let method = match known.iter().position(|known| known == method) {
            Some(0) => "GET",
            Some(1) => "POST",
            Some(2) => "DELETE",
            Some(3) => "OPTIONS",
            Some(4) => "HEAD",
            _ => "_OTHER",
        };
        let active = InFlight::new("http_server_active_requests");
        Self { method, status: 499, begun: Instant::now(), _active: active }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        metrics::histogram!(
            "http_server_request_duration_seconds",
            "http_request_method" => self.method,
            "http_response_status_code" => self.status.to_string(),
        )
        .record(self.begun.elapsed());
    }
}
