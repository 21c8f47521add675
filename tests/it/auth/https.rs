//! An authorization server over HTTPS, with a certificate of a private authority.

use std::{ffi::OsStr, fs};

use super::{audit::Logging, configuration::oauth, provider::Provider};
use crate::support::{
    Certificates, TRUSTED,
    process::{larder, run},
};

struct Encrypted {
    provider: Provider,
    certificates: Certificates,
}

async fn encrypted() -> Encrypted {
    let certificates = Certificates::new();
    let authority = fs::read(certificates.authority()).unwrap();
    let authority = reqwest::Certificate::from_pem(&authority).unwrap();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([authority]);
    let http = http.build().unwrap();
    let provider =
        Provider::encrypted(http, &certificates.key(), &certificates.certificate()).await;
    assert!(provider.issuer.starts_with("https://"));
    Encrypted { provider, certificates }
}

impl Encrypted {
    /// The exit code and the output of an online check.
    async fn check(&self, environment: &[(&str, &OsStr)]) -> (i32, String) {
        let file = self.certificates.folder().join("larder.toml");
        fs::write(&file, oauth(&self.provider.issuer, "")).unwrap();
        let arguments = ["config", "check", "--online", "--config", file.to_str().unwrap()];
        let mut command = larder(&arguments);
        command.envs(environment.iter().copied());
        let checked = run(command).await;
        (checked.code.unwrap(), checked.stdout + &checked.stderr)
    }
}

#[tokio::test]
async fn its_tokens_are_accepted_where_its_certificate_is_trusted() {
    let encrypted = encrypted().await;
    let token = encrypted.provider.machine("rs256", "mcp:read").await;
    let authority = encrypted.certificates.authority();
    let trusted = [(TRUSTED, authority.as_os_str())];
    let (code, said) = encrypted.check(&trusted).await;
    assert_eq!(code, 0, "{said}");
    let server = Logging::start(&encrypted.provider.issuer, &trusted).await;
    assert_eq!(server.send(&token, "ping", &serde_json::json!({})).await, 200);
}

#[tokio::test]
async fn without_a_trusted_certificate_a_token_is_neither_accepted_nor_invalid() {
    let encrypted = encrypted().await;
    let token = encrypted.provider.machine("rs256", "mcp:read").await;
    let (code, said) = encrypted.check(&[]).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("certificate") && said.contains(&encrypted.provider.issuer), "{said}");
    let server = Logging::start(&encrypted.provider.issuer, &[]).await;
    assert_eq!(server.send(&token, "ping", &serde_json::json!({})).await, 503);
}
