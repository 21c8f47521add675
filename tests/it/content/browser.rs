//! Links to content in Chromium.

use std::{path::Path, process::Stdio};

use larder::tools;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use super::{get, request, resource};
use crate::support::{Answer, Modern, Server, patiently};

/// The program of Debian's package.
const CHROMIUM: &str = "/usr/bin/chromium";

async fn stored(server: &Server, uri: &str, name: &str, media_type: &str, text: &str) {
    let url = format!("{}&name={name}", resource(&server.url, uri));
    let headers = [("content-type", media_type)];
    let answer = Answer::of(request(Method::PUT, &url, &headers).body(text.to_owned())).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

async fn link(client: &Modern, tool: &str, place: &str, arguments: Value) -> Value {
    client.call(tool, arguments).await.result()["structuredContent"][place]["url"].take()
}

/// What the browser has saved, shown and requested.
async fn visit(given: &Value) -> Value {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/content");
    let mut command = Command::new("node");
    command.arg(package.join("browser.mjs")).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(given.to_string().as_bytes()).await.unwrap();
    drop(stdin);
    let output = patiently("Chromium", child.wait_with_output()).await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn a_browser_saves_what_could_run_and_uploads_by_the_page() {
    let server = Server::offering(|builder| {
        builder.with(tools::writing()).with(tools::downloading()).with(tools::uploading())
    })
    .await;
    let client = Modern::of(&server);
    let script = "fetch('http://larder.test/beacon')";
    let html = format!("<html><body onload=\"{script}\"><script>{script}</script>");
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"{script}\"><script>{script}</script></svg>"
    );
    stored(&server, "x:html", "a%22b%C3%A4.html", "text/html", &html).await;
    stored(&server, "x:svg", "..%2Fpicture.svg", "image/svg+xml", &svg).await;
    stored(&server, "x:text", "shown.txt", "text/plain", &html).await;
    let mut downloads = Vec::new();
    for (uri, inline) in [("x:html", false), ("x:svg", true)] {
        let arguments = json!({ "uri": uri, "inline": inline });
        downloads.push(link(&client, "download_url", "download", arguments).await);
    }
    let inline = json!({ "uri": "x:text", "inline": true });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("From a person.csv");
    std::fs::write(&file, "a,b\n1,2\n").unwrap();
    let seen = visit(&json!({
        "chromium": CHROMIUM,
        "downloads": downloads,
        "inline": link(&client, "download_url", "download", inline).await,
        "upload": link(&client, "upload_url", "upload", json!({ "uri": "x:up" })).await,
        "file": file,
        "screenshots": std::env::var("SCREENSHOTS").ok(),
    }))
    .await;
    assert_eq!(seen["beacons"], json!([]), "no script ran: {seen}");
    let saved = seen["saved"].as_array().unwrap();
    assert_eq!(saved.len(), 4, "{seen}");
    for (index, one) in saved.iter().enumerate() {
        assert_eq!(one["content"], if index < 2 { &*html } else { &*svg });
        let name = one["name"].as_str().unwrap();
        assert!(!name.contains(['"', '/']), "{name:?}");
        assert!(name.ends_with(if index < 2 { "bä.html" } else { "picture.svg" }), "{name:?}");
    }
    assert_eq!(seen["inline"], html, "text is shown as text");
    assert_eq!(seen["status"], "Stored From a person.csv, 8 bytes. You can close this page.");
    let found = get(&resource(&server.url, "x:up"), &[]).await;
    assert_eq!(found.body, "a,b\n1,2\n".as_bytes());
}
