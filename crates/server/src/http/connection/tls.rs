//! The server's TLS certificate. It is replaced while serving when its files change.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
pub(super) use tokio_rustls::TlsAcceptor;

use super::{certificate_error::CertificateError, tls_protocols::Protocols};

/// The server's certificate and its private key.
pub struct Certificate {
    cert: PathBuf,
    key: PathBuf,
    current: ArcSwap<CertifiedKey>,
}

impl Certificate {
    /// Reads both files.
    ///
    /// # Errors
    /// Names the file: it cannot be read, is not PEM, or the key does not belong to the
    /// certificate.
    pub fn open(cert: &Path, key: &Path) -> Result<Arc<Self>, CertificateError> {
        let current = ArcSwap::from_pointee(read(cert, key)?);
        Ok(Arc::new(Self { cert: cert.to_owned(), key: key.to_owned(), current }))
    }

    /// Reads both files again, for new connections.
    ///
    /// # Errors
    /// As [`Certificate::open`]. The previous certificate stays in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        self.current.store(Arc::new(read(&self.cert, &self.key)?));
        Ok(())
    }

    /// The paths of the certificate and of the key.
    pub fn files(&self) -> [&Path; 2] {
        [&self.cert, &self.key]
    }

    /// An acceptor for TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// The cryptography provider does not support that.
    pub(super) fn acceptor(self: Arc<Self>, protocols: Protocols) -> io::Result<TlsAcceptor> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;

        let mut config = builder.with_no_client_auth().with_cert_resolver(self);
        config.alpn_protocols = match protocols {
            Protocols::All => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Protocols::Http1 => vec![b"http/1.1".to_vec()],
        };
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn read(cert: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
    let wrong = |setting, file: &Path, problem: &dyn fmt::Display| CertificateError {
        setting,
        file: file.to_owned(),
        problem: problem.to_string(),
    };

    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong("cert", cert, &error))?;
    if chain.is_empty() {
        return Err(wrong("cert", cert, &"it contains no certificate"));
    }

    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong("key", key, &error))?;
    CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider())
        .map_err(|error| wrong("key", key, &error))
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

/// Omits the key.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("cert", &self.cert).finish_non_exhaustive()
    }
}
