//! Clients whose identifier is the URL of their metadata.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use tokio::task::JoinSet;

use super::{Browser, REDIRECT, Site, body};
use crate::{
    auth::{
        issuer::{Issuer, Reply},
        provider::Provider,
    },
    support::{eventually, patiently},
};

#[tokio::test]
async fn a_client_with_a_metadata_document_logs_in_without_registering() {
    let site =
        Site::with(Provider::shared().await, |login| login.allow_private_documents = true).await;
    let client = site.client();
    let documents = Issuer::empty().await;
    let id = format!("{}/client.json", documents.url);
    let document = json!({
        "client_id": id, "client_name": "Documented", "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
    });
    documents.set_reply("/client.json", Reply::Json(document.clone()));
    let mut browser = Browser::of("alice");
    let code = client.code(&mut browser, &id).await;
    let page = browser.pages.pop().unwrap();
    assert!(page.contains("Documented") && page.contains("/client.json"), "{page}");
    let tokens = body(client.redeem(&id, &code).await).await;
    assert_eq!(client.status(&tokens).await, 200);
    assert_eq!(documents.hits("/client.json"), 1, "it is cached");
    // Its tokens are refreshed while the document cannot be read.
    let hits = documents.hits("/client.json");
    documents.set_reply("/client.json", Reply::Status(500, json!({})));
    site.server.clock.advance(std::time::Duration::from_secs(310));
    let tokens = body(client.refresh(&id, &tokens).await).await;
    assert_eq!(client.status(&tokens).await, 200);
    assert_eq!(documents.hits("/client.json"), hits);
    documents.set_reply("/client.json", Reply::Json(document));
    // Anybody on the device can name this client and listen there, so the user is asked again.
    client.code(&mut browser, &id).await;
    assert!(browser.pages.pop().is_some());
    // The document of another client.
    let other = format!("{}/other.json", documents.url);
    documents.set_reply("/other.json", Reply::Json(json!({ "client_id": id })));
    let url = client.authorize_url(&client.request(&other));
    assert_eq!(browser.get(&url).await.status(), 400);
}

#[tokio::test]
async fn documents_at_private_addresses_are_not_fetched() {
    let site = Site::start().await;
    let client = site.client();
    let documents = Issuer::empty().await;
    let id = format!("{}/client.json", documents.url);
    let url = client.authorize_url(&client.request(&id));
    assert_eq!(Browser::of("alice").get(&url).await.status(), 400);
    assert_eq!(documents.hits("/client.json"), 0);
}

#[tokio::test]
async fn a_document_server_cannot_send_too_much_or_elsewhere_or_never() {
    let site =
        Site::with(Provider::shared().await, |login| login.allow_private_documents = true).await;
    let client = site.client();
    let documents = Issuer::empty().await;
    let elsewhere = format!("{}/elsewhere.json", documents.url);
    for (path, reply, says) in [
        ("/large.json", Reply::Text("x".repeat((64 << 10) + 1)), "has more than 64 KiB"),
        ("/moved.json", Reply::Redirect(elsewhere), "cannot be fetched"),
        ("/failed.json", Reply::Status(500, json!({})), "cannot be fetched"),
        ("/text.json", Reply::Text("no JSON".to_owned()), "is not client metadata"),
        ("/never.json", Reply::Hang, "cannot be fetched"),
    ] {
        documents.set_reply(path, reply);
        let id = format!("{}{path}", documents.url);
        let url = client.authorize_url(&client.request(&id));
        for _ in 0..2 {
            let (status, page) = Browser::of("alice").page(url.clone()).await;
            assert!(status == 400 && page.contains(says) && page.contains(path), "{page}");
        }
        assert_eq!(documents.hits(path), 1, "{path} is fetched once for a while");
    }
    assert_eq!(documents.hits("/elsewhere.json"), 0);
}

/// The status and the page of an authorization request from this address.
async fn authorize(site: &Site, id: &str, address: &str) -> (u16, String) {
    let client = site.client();
    let request = Browser::http()
        .get(client.authorize_url(&client.request(id)))
        .header("x-forwarded-for", address);
    let response = patiently("an answer", request.send()).await.unwrap();
    let status = response.status().as_u16();
    (status, patiently("a page", response.text()).await.unwrap())
}

/// A site behind a proxy, whose clients may have documents on this machine.
async fn proxied() -> Site {
    Site::configured(Provider::shared().await, |config| {
        config.server.trusted_proxies = vec!["127.0.0.0/8".to_owned()];
        config.auth.login.as_mut().unwrap().allow_private_documents = true;
    })
    .await
}

/// A document of a client at this path. Returns the client's ID.
fn describe(documents: &Issuer, path: &str) -> String {
    let id = format!("{}{path}", documents.url);
    let document = json!({ "client_id": id, "redirect_uris": [REDIRECT] });
    documents.set_reply(path, Reply::Json(document));
    id
}

#[tokio::test]
async fn a_stranger_with_slow_documents_keeps_nobody_else_from_logging_in() {
    const STRANGER: &str = "198.51.100.66";
    let site = Arc::new(proxied().await);
    let documents = Issuer::empty().await;
    let cached = describe(&documents, "/cached");
    assert_eq!(authorize(&site, &cached, STRANGER).await.0, 303);

    // Of 16 slow documents at another host, each is being fetched or refused.
    let mut slow = JoinSet::new();
    let answered = Arc::new(AtomicUsize::new(0));
    for number in 0..16 {
        let path = format!("/slow-{number}");
        documents.set_reply(&path, Reply::Hang);
        let id = format!("{}{path}", documents.url.replace("127.0.0.1", "localhost"));
        let site = Arc::clone(&site);
        let answered = Arc::clone(&answered);
        slow.spawn(async move {
            let answer = authorize(&site, &id, STRANGER).await;
            answered.fetch_add(1, Ordering::Relaxed);
            answer
        });
    }
    eventually("the slow documents", async || {
        let fetched: usize = (0..16).map(|number| documents.hits(&format!("/slow-{number}"))).sum();
        fetched + answered.load(Ordering::Relaxed) >= 16
    })
    .await;

    // None of 40 other clients waits or is refused, nor is one whose document is known.
    for number in 0..40 {
        let id = describe(&documents, &format!("/client-{number}"));
        let (status, page) = authorize(&site, &id, &format!("203.0.113.{number}")).await;
        assert_eq!(status, 303, "{number}: {page}");
    }
    assert_eq!(authorize(&site, &cached, STRANGER).await.0, 303);

    while let Some(answer) = slow.join_next().await {
        let (status, page) = answer.unwrap();
        assert!(status != 429 || page.contains("of this address"), "{page}");
    }
}

#[tokio::test]
async fn a_document_is_fetched_once_for_all_who_ask_at_the_same_time() {
    let site = proxied().await;
    let documents = Issuer::empty().await;
    let id = describe(&documents, "/popular");
    let addresses: Vec<_> = (0..40).map(|number| format!("203.0.113.{number}")).collect();
    let asked = addresses.iter().map(|address| authorize(&site, &id, address));
    for (status, page) in futures_util::future::join_all(asked).await {
        assert_eq!(status, 303, "{page}");
    }
    assert_eq!(documents.hits("/popular"), 1);
}
