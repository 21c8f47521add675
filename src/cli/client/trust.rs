//! The certificates that a client trusts besides those of the system.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use rustls_platform_verifier::Verifier;

/// How the verifier names the refusal of an authority's certificate as a server's.
pub(super) const CA_AS_SERVER: &str = "CaUsedAsEndEntity";

/// Trusts what the system trusts, these authorities, and a server that has one of these
/// certificates itself: a self-signed one, as `openssl req -x509` makes it, says that it is an
/// authority, which no server's certificate may say.
#[derive(Debug)]
struct Trust {
    system: Verifier,
    given: Vec<CertificateDer<'static>>,
}

/// The TLS of a client that also trusts these certificates, in PEM.
///
/// # Errors
/// What is wrong with them.
pub(super) fn trusting(pem: &[u8]) -> Result<ClientConfig, String> {
    let given: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("it is not a certificate in PEM: {error}"))?;
    if given.is_empty() {
        return Err("it has no certificate in PEM (-----BEGIN CERTIFICATE-----)".into());
    }

    let provider = Arc::new(aws_lc_rs::default_provider());
    let system = Verifier::new_with_extra_roots(given.clone(), Arc::clone(&provider))
        .map_err(|error| error.to_string())?;

    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trust { system, given }))
        .with_no_client_auth();
    Ok(config)
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.system.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );

        match verified {
            // Other reasons than the dates, which have been checked before.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if other.to_string() == CA_AS_SERVER
                    && self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) =>
            {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                verify_server_name(&parsed, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.system.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.system.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.system.supported_verify_schemes()
    }
}
