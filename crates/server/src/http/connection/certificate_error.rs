//! The problems of the server's TLS certificate, in a build with or without TLS.

use std::path::PathBuf;

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("server.tls.{setting}: {}: {problem}", file.display())]
pub struct CertificateError {
    /// `cert` or `key`.
    pub setting: &'static str,
    /// The file.
    pub file: PathBuf,
    /// The problem of the file.
    pub problem: String,
}
