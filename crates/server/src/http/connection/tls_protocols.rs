//! The protocols that a TLS acceptor negotiates (ALPN).

/// The protocols that a TLS acceptor negotiates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocols {
    /// HTTP/2 and HTTP/1.1.
    All,
    /// HTTP/1.1 only: a client that speaks only HTTP/2 gets an error of TLS.
    Http1,
}
