//! The types of TLS in a build without it.

use std::{io, path::Path, sync::Arc};

use super::{CertificateError, tls_protocols::Protocols};

/// The server's certificate. A build without the feature `tls` has none.
#[derive(Debug)]
pub enum Certificate {}

/// Accepts TLS connections. A build without the feature `tls` has none.
#[derive(Clone)]
pub(super) enum TlsAcceptor {}

impl Certificate {
    /// # Errors
    /// Always: the feature `tls` is missing.
    pub fn open(cert: &Path, _: &Path) -> Result<Arc<Self>, CertificateError> {
        Err(CertificateError {
            setting: "cert",
            file: cert.to_owned(),
            problem: "this build has no TLS: enable the feature `tls`".into(),
        })
    }

    /// # Errors
    /// None.
    pub fn reload(&self) -> Result<(), CertificateError> {
        match *self {}
    }

    /// The paths of the certificate and of the key.
    pub fn files(&self) -> [&Path; 2] {
        match *self {}
    }

    pub(super) fn acceptor(self: Arc<Self>, _: Protocols) -> io::Result<TlsAcceptor> {
        match *self {}
    }
}

impl TlsAcceptor {
    pub(super) async fn accept<S>(&self, _: S) -> io::Result<S> {
        match *self {}
    }
}
