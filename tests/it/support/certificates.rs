//! Certificates of a private certificate authority.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// The environment variable that names the trusted authorities.
pub(crate) const TRUSTED: &str = "SSL_CERT_FILE";

/// The files of an authority and of one server certificate, deleted when it is dropped.
pub(crate) struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// A certificate for 127.0.0.1.
    pub(crate) fn new() -> Self {
        let mut authority = CertificateParams::new([]).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Without a name of its own, OpenSSL (in Redis) takes the certificate for self-signed.
        authority.distinguished_name.push(DnType::CommonName, "authority");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap());
        let authority = authority.unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["127.0.0.1".into()]).unwrap();
        let certificate = certificate.signed_by(&key, &authority).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, pem: String| fs::write(folder.path().join(name), pem).unwrap();
        write("key.pem", key.serialize_pem());
        write("cert.pem", certificate.pem());
        write("ca.pem", authority.pem());
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder().join("key.pem")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder().join("cert.pem")
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.folder().join("ca.pem")
    }
}
