//! HTTPS in the binary.

use std::{fs, path::Path};

use serde_json::json;

use super::certificate;
use crate::support::{
    Answer, eventually, patiently,
    process::{Process, larder, refused, run, serving, serving_in},
    request,
};

/// A server with the certificate and key in a folder.
async fn serving_from(folder: &Path) -> (Process, String) {
    let config = folder.join("larder.toml");
    let toml =
        format!("[server.tls]\ncert = \"{0}/tls.crt\"\nkey = \"{0}/tls.key\"\n", folder.display());
    fs::write(&config, toml).unwrap();
    serving(&["--config", config.to_str().unwrap()]).await
}

/// A client that trusts this certificate only.
fn trusting(certificate: &rcgen::Certificate) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(certificate.pem().as_bytes()).unwrap();
    reqwest::Client::builder().no_proxy().tls_certs_only([root]).build().unwrap()
}

fn ping(client: &reqwest::Client, url: &str) -> reqwest::RequestBuilder {
    let body = request("ping", json!({})).to_string();
    client.post(url).header("content-type", "application/json").body(body)
}

#[tokio::test]
async fn https_serves_http_1_and_http_2() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path());
    let (mut server, url) = serving_from(folder.path()).await;
    let client = trusting(&certificate);
    let answer = patiently("an answer", ping(&client, &url).send()).await.unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_2);
    assert_eq!(answer.status(), 200);
    let root = reqwest::Certificate::from_pem(certificate.pem().as_bytes()).unwrap();
    let older = reqwest::Client::builder().no_proxy().tls_certs_only([root]).http1_only();
    let answer = patiently("an answer", ping(&older.build().unwrap(), &url).send()).await.unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_11);
    // `larder health` does not check the certificate, which may be for another name.
    let config = folder.path().join("larder.toml");
    let address = server.address();
    let arguments = ["health", "--listen", address, "--config", config.to_str().unwrap()];
    let probed = run(larder(&arguments)).await;
    assert_eq!(probed.code, Some(0), "{probed:?}");
    server.signal("-TERM").await;
    assert_eq!(server.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_new_certificate_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let old = certificate(folder.path());
    let (_server, url) = serving_from(folder.path()).await;
    assert_eq!(Answer::of(ping(&trusting(&old), &url)).await.status, 200);
    // An invalid certificate is ignored.
    fs::write(folder.path().join("tls.crt"), "no certificate").unwrap();
    let new = certificate(folder.path());
    let client = trusting(&new);
    let used = async || ping(&client, &url).send().await.is_ok();
    eventually("the new certificate", used).await;
    assert!(ping(&trusting(&old), &url).send().await.is_err(), "the old one is still used");
}

#[tokio::test]
async fn two_environment_variables_enable_https() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path());
    let [cert, key] = ["tls.crt", "tls.key"].map(|file| folder.path().join(file));
    let environment = [
        ("LARDER_SERVER__TLS__CERT", cert.to_str().unwrap()),
        ("LARDER_SERVER__TLS__KEY", key.to_str().unwrap()),
    ];
    let (_server, url) = serving_in(&[], &environment).await;
    assert!(url.starts_with("https://"), "{url}");
    assert_eq!(Answer::of(ping(&trusting(&certificate), &url)).await.status, 200);
}

#[tokio::test]
async fn a_key_of_another_certificate_is_named() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _ = (certificate(folder.path()), certificate(other.path()));
    let [cert, key] = ["tls.crt", "tls.key"].map(|file| folder.path().join(file));
    let stranger = other.path().join("tls.key");
    for (cert, key, named) in [
        (cert.as_path(), stranger.as_path(), "server.tls.key"),
        (key.as_path(), key.as_path(), "server.tls.cert"),
        (Path::new("/nowhere"), key.as_path(), "/nowhere"),
    ] {
        let environment = [
            ("LARDER_SERVER__TLS__CERT", cert.to_str().unwrap()),
            ("LARDER_SERVER__TLS__KEY", key.to_str().unwrap()),
        ];
        let (code, said) = refused(&["serve", "--listen", "127.0.0.1:0"], &environment).await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(named), "{named}: {said}");
    }
    // The check reads the files, too, and contacts no store.
    let nowhere = ("LARDER_SERVER__TLS__CERT", "/nowhere");
    let key = ("LARDER_SERVER__TLS__KEY", key.to_str().unwrap());
    for store in ["memory:", "redis://127.0.0.1:1", "file:///nowhere"] {
        let environment = [nowhere, key, ("LARDER_STORE__URL", store)];
        let (code, said) = refused(&["config", "check"], &environment).await;
        assert!(code == Some(2) && said.contains("server.tls.cert"), "{store}: {said}");
    }
    let alone = [("LARDER_SERVER__TLS__CERT", cert.to_str().unwrap())];
    let (code, said) = refused(&["serve"], &alone).await;
    assert!(code == Some(2) && said.contains("server.tls.key"), "{said}");
}

#[tokio::test]
async fn a_refused_connection_gets_a_response_that_its_client_understands() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path());
    let _server = serving_from(folder.path()).await;
    let config = folder.path().join("larder.toml");
    let config = config.to_str().unwrap();
    let (_server, url) =
        serving_in(&["--config", config], &[("LARDER_LIMITS__CONNECTIONS", "1")]).await;
    let first = trusting(&certificate);
    let held = patiently("an answer", ping(&first, &url).send()).await.unwrap();
    assert_eq!((held.status(), held.version()), (http::StatusCode::OK, http::Version::HTTP_2));
    let second = trusting(&certificate);
    let refused = patiently("an answer", ping(&second, &url).send()).await.unwrap();
    assert_eq!(refused.status(), http::StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.version(), http::Version::HTTP_11);
    assert!(refused.text().await.unwrap().contains("limits.connections"));
}

#[tokio::test]
async fn a_handshake_that_stalls_does_not_delay_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let config = folder.path().join("larder.toml");
    let toml = format!(
        "[server]\ngrace = 3600\n[server.tls]\ncert = \"{0}/tls.crt\"\nkey = \"{0}/tls.key\"\n",
        folder.path().display()
    );
    fs::write(&config, toml).unwrap();
    let (mut server, _) = serving(&["--config", config.to_str().unwrap()]).await;
    let mut stalled = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    // The beginning of a handshake.
    tokio::io::AsyncWriteExt::write_all(&mut stalled, &[22, 3, 1]).await.unwrap();
    server.signal("-TERM").await;
    assert_eq!(server.exit_code().await, Some(0));
}
