//! Resources from web pages.

use std::time::Duration;

use axum::{Router, http::StatusCode, response::Redirect, routing::get};
use larder::{HttpResource, Registry};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Modern, Server};

/// A web site on this machine; its URL.
async fn site() -> String {
    let router = Router::new()
        .route("/text", get(async || "plain"))
        .route("/json", get(async || ([("content-type", "application/json")], "{\"a\":1}")))
        .route("/bytes", get(async || ([("content-type", "image/png")], &b"\x89PNG"[..])))
        .route("/long", get(async || "x".repeat(100_000)))
        .route("/moved", get(async || Redirect::temporary("/text")))
        .route("/round", get(async || Redirect::temporary("/round")))
        .route("/away", get(async || Redirect::temporary("file:///etc/passwd")))
        .route("/broken", get(async || StatusCode::INTERNAL_SERVER_ERROR))
        .route("/slow", get(async || std::future::pending::<String>().await));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test]
async fn the_callers_token_is_not_passed_on() {
    let echo = async |headers: axum::http::HeaderMap| format!("{headers:?}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let site = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/", get(echo));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let registry = Registry::builder("pages")
        .resource(HttpResource::new(site).allow_private().at("x:echo"))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::bearing(&server, "a-secret-token");
    let read = client.read("x:echo").await;
    let headers = read["text"].as_str().unwrap();
    assert!(headers.contains("host"), "{headers}");
    assert!(!headers.contains("authorization") && !headers.contains("a-secret-token"), "{headers}");
}

/// The error of a read.
async fn error(client: &Modern, uri: &str) -> Value {
    client.send("resources/read", json!({ "uri": uri })).await.error()
}

#[tokio::test]
async fn pages_are_text_or_binary_within_limits_of_size_and_time() {
    let site = site().await;
    let page = |path: &str| HttpResource::new(format!("{site}/{path}")).allow_private();
    let registry = Registry::builder("pages")
        .resource(page("text").at("x:text"))
        .resource(page("json").at("x:json"))
        .resource(page("bytes").at("x:bytes"))
        .resource(page("moved").mime_type("text/markdown").at("x:moved"))
        .resource(page("long").max_bytes(99_999).at("x:long"))
        .resource(page("round").at("x:round"))
        .resource(page("away").at("x:away"))
        .resource(page("broken").at("x:broken"))
        .resource(page("missing").at("x:missing"))
        .resource(page("slow").timeout(Duration::from_millis(50)).at("x:slow"))
        .build()
        .unwrap();
    let server = Server::of(registry).await;
    let client = Modern::of(&server);
    assert_eq!(client.read("x:text").await["text"], "plain");
    let read = client.read("x:json").await;
    assert_eq!(
        (&read["mimeType"], &read["text"]),
        (&json!("application/json"), &json!("{\"a\":1}"))
    );
    let read = client.read("x:bytes").await;
    assert_eq!((&read["mimeType"], &read["blob"]), (&json!("image/png"), &json!("iVBORw==")));
    let read = client.read("x:moved").await;
    assert_eq!((&read["mimeType"], &read["text"]), (&json!("text/markdown"), &json!("plain")));
    assert_eq!(error(&client, "x:missing").await["code"], -32602);
    for (uri, said) in [
        ("x:long", "than 99999 bytes"),
        ("x:broken", "status 500"),
        ("x:round", "could not be reached"),
        ("x:away", "status 307"),
        ("x:slow", "could not be reached in time"),
    ] {
        let error = error(&client, uri).await;
        assert_eq!(error["code"], -32603, "{uri}: {error}");
        assert!(error["message"].as_str().unwrap().contains(said), "{uri}: {error}");
        assert!(!error.to_string().contains("127.0.0.1"), "{error}");
    }
}

#[tokio::test]
async fn private_addresses_are_not_visited() {
    let site = site().await;
    let port = site.rsplit(':').next().unwrap();
    let urls = [
        format!("{site}/text"),
        format!("http://localhost:{port}/text"),
        format!("http://[::1]:{port}/text"),
        format!("http://[::ffff:127.0.0.1]:{port}/text"),
        format!("http://2130706433:{port}/text"),
        format!("http://0x7f.1:{port}/text"),
        format!("http://0.0.0.0:{port}/text"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://user:secret@example.com/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    let mut builder = Registry::builder("pages");
    for (at, url) in urls.iter().enumerate() {
        builder = builder.resource(HttpResource::new(url).at(format!("x:{at}")));
    }
    let builder = builder.resource(HttpResource::new("no url").at("x:no-url"));
    let server = Server::of(builder.build().unwrap()).await;
    let client = Modern::of(&server);
    let invalid = error(&client, "x:no-url").await;
    assert!(invalid["message"].as_str().unwrap().contains("URL is not valid"), "{invalid}");
    for (at, url) in urls.iter().enumerate() {
        let error = error(&client, &format!("x:{at}")).await;
        assert_eq!(error["code"], -32603, "{url}: {error}");
        let said = error["message"].as_str().unwrap();
        assert!(
            said.contains("address is not allowed") || said.contains("reached"),
            "{url}: {said}"
        );
    }
}
