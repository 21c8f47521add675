//! HTTPS in the binary.

use std::{fs, path::Path};

use serde_json::json;
use tokio::process::Child;

use super::certificate;
use crate::{
    process::{larder, refused, serving, serving_in, signal},
    support::{Answer, patiently},
};

/// A server that speaks HTTPS with what is in that folder.
async fn serving_from(folder: &Path) -> (Child, String) {
    let config = folder.join("larder.toml");
    fs::write(&config, files(folder)).unwrap();
    serving(&["--config", config.to_str().unwrap()]).await
}

fn files(folder: &Path) -> String {
    let folder = folder.display();
    format!("[server.tls]\ncert = \"{folder}/tls.crt\"\nkey = \"{folder}/tls.key\"\n")
}

/// A client that believes that certificate, and no other.
fn believing(certificate: &rcgen::Certificate) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(certificate.pem().as_bytes()).unwrap();
    reqwest::Client::builder().no_proxy().tls_certs_only([root]).build().unwrap()
}

fn ping(client: &reqwest::Client, url: &str) -> reqwest::RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    client.post(url).header("content-type", "application/json").body(body)
}

#[tokio::test]
async fn http_1_and_2_are_spoken_over_it() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path());
    let (mut child, url) = serving_from(folder.path()).await;
    let client = believing(&certificate);
    let answer = patiently("an answer", ping(&client, &url).send()).await.unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_2);
    assert_eq!(answer.status(), 200);
    let root = reqwest::Certificate::from_pem(certificate.pem().as_bytes()).unwrap();
    let older = reqwest::Client::builder().no_proxy().tls_certs_only([root]).http1_only();
    let answer = patiently("an answer", ping(&older.build().unwrap(), &url).send()).await.unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_11);
    // The binary's own probe, for which the certificate is for another name.
    let address = url.trim_start_matches("https://").trim_end_matches("/mcp");
    let config = folder.path().join("larder.toml");
    let arguments = ["health", "--listen", address, "--config", config.to_str().unwrap()];
    let output = patiently("an answer", larder(&arguments).output()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    signal(&child, "-TERM").await;
    assert_eq!(patiently("the end", child.wait()).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_new_certificate_is_shown_without_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let old = certificate(folder.path());
    let (_child, url) = serving_from(folder.path()).await;
    assert_eq!(Answer::of(ping(&believing(&old), &url)).await.status, 200);
    // One that cannot be used changes nothing.
    fs::write(folder.path().join("tls.crt"), "no certificate").unwrap();
    let new = certificate(folder.path());
    let client = believing(&new);
    let shown = async { while ping(&client, &url).send().await.is_err() {} };
    patiently("the new certificate", shown).await;
    assert!(ping(&believing(&old), &url).send().await.is_err(), "the old one is gone");
}

#[tokio::test]
async fn two_variables_switch_it_on() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = certificate(folder.path());
    let [cert, key] = ["tls.crt", "tls.key"].map(|file| folder.path().join(file));
    let environment = [
        ("LARDER_SERVER__TLS__CERT", cert.to_str().unwrap()),
        ("LARDER_SERVER__TLS__KEY", key.to_str().unwrap()),
    ];
    let (_child, url) = serving_in(&[], &environment).await;
    assert!(url.starts_with("https://"), "{url}");
    assert_eq!(Answer::of(ping(&believing(&certificate), &url)).await.status, 200);
}

#[tokio::test]
async fn what_is_no_pair_is_named() {
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
    let alone = [("LARDER_SERVER__TLS__CERT", cert.to_str().unwrap())];
    let (code, said) = refused(&["serve"], &alone).await;
    assert!(code == Some(2) && said.contains("server.tls.key"), "{said}");
}
