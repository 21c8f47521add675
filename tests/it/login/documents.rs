//! Clients whose identifier is the URL of their metadata.

use serde_json::json;

use super::{Browser, REDIRECT, Site, body};
use crate::auth::{
    issuer::{Issuer, Reply},
    provider::Provider,
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
