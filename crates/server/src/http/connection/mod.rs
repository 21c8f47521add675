//! Connections: accepted, counted, with TLS and both versions of HTTP, until they end or wait too
//! long. What a request means is known elsewhere.

mod activity;
mod certificate_error;
mod connection_count;
mod first_bytes;
mod overload;
mod response_body;
mod serve;
mod server;
mod stall;
mod stop_stages;
mod tls;
mod tls_protocols;

pub use self::{
    certificate_error::CertificateError,
    serve::{ServeLimits, serve, serve_in_stages},
    stop_stages::StopStages,
    tls::Certificate,
};
