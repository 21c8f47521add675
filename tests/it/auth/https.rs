//! An authorization server as it is in production: reached by HTTPS, here with
//! a certificate of an authority that the machine has to be told of.

use std::{ffi::OsStr, fs, path::PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::{
    audit::Logging,
    cli::{larder, oauth},
    provider::Provider,
};

/// Where operators name the authorities that their machines trust.
const TRUSTED: &str = "SSL_CERT_FILE";

struct Encrypted {
    provider: Provider,
    authority: PathBuf,
    folder: tempfile::TempDir,
}

async fn encrypted() -> Encrypted {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".into()]).unwrap();
    let certificate = certificate.signed_by(&key, &authority).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, pem: String| {
        let path = folder.path().join(name);
        fs::write(&path, pem).unwrap();
        path
    };
    let (key, certificate) =
        (write("key.pem", key.serialize_pem()), write("cert.pem", certificate.pem()));
    let http = reqwest::Client::builder().no_proxy();
    let http = http.tls_certs_only(
        [authority.pem().as_bytes()].map(|pem| reqwest::Certificate::from_pem(pem).unwrap()),
    );
    let provider = Provider::encrypted(http.build().unwrap(), &key, &certificate).await;
    assert!(provider.issuer.starts_with("https://"));
    let authority = write("ca.pem", authority.pem());
    Encrypted { provider, authority, folder }
}

impl Encrypted {
    async fn check(&self, environment: &[(&str, &OsStr)]) -> (i32, String) {
        let file = self.folder.path().join("larder.toml");
        fs::write(&file, oauth(&self.provider.issuer, "")).unwrap();
        let arguments = ["config", "check", "--online", "--config", file.to_str().unwrap()];
        let output = larder(&arguments, environment).await;
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }
}

#[tokio::test]
async fn its_tokens_are_accepted_where_its_certificate_is_trusted() {
    let encrypted = encrypted().await;
    let token = encrypted.provider.machine("rs256", "mcp:read").await;
    let trusted = [(TRUSTED, encrypted.authority.as_os_str())];
    let (code, said) = encrypted.check(&trusted).await;
    assert_eq!(code, 0, "{said}");
    let server = Logging::start(&encrypted.provider.issuer, &trusted).await;
    assert_eq!(server.send(&token, "ping", &serde_json::json!({})).await, 200);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_no_verdict_on_the_token() {
    let encrypted = encrypted().await;
    let token = encrypted.provider.machine("rs256", "mcp:read").await;
    let (code, said) = encrypted.check(&[]).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("certificate") && said.contains(&encrypted.provider.issuer), "{said}");
    let server = Logging::start(&encrypted.provider.issuer, &[]).await;
    assert_eq!(server.send(&token, "ping", &serde_json::json!({})).await, 503);
}
