//! Links that work once: a page for people, whose button gives the content.

use reqwest::{Method, header, redirect};
use serde_json::{Value, json};

use super::{
    downloads::{at, instances, is_not_found},
    each_backend, get, request,
};
use crate::support::{Answer, Modern, patiently};

async fn once_link(client: &Modern) -> String {
    client.create(json!({ "uri": "x:1", "text": "secret", "name": "<b>.txt" })).await;
    let answer = client.call("download_url", json!({ "uri": "x:1", "once": true })).await;
    let download: &Value = &answer.result()["structuredContent"]["download"];
    assert_eq!(download["method"], "POST");
    download["url"].as_str().unwrap().to_owned()
}

/// A POST whose redirect is not followed.
async fn press(url: &str, headers: &[(&str, &str)]) -> Answer {
    let client = reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none());
    let request =
        headers.iter().fold(client.build().unwrap().post(url), |request, (name, value)| {
            request.header(*name, *value)
        });
    Answer::of(request).await
}

#[tokio::test]
async fn only_the_first_post_gets_the_content_in_every_backend() {
    for stored in each_backend().await {
        let client = Modern::at(&stored.server.url);
        let url = once_link(&client).await;
        assert!(url.contains("/content/o/"), "{url}");
        for _ in 0..10 {
            let page = get(&url, &[("accept", "text/html")]).await;
            let html = str::from_utf8(&page.body).unwrap();
            assert_eq!(page.status, 200, "{}", stored.backend);
            assert!(html.contains("<form method=\"post\">") && html.contains("&lt;b&gt;.txt"));
            assert!(!html.contains("secret") && !html.contains("<script"));
            let policy = page.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("script-src"));
        }
        assert_eq!(Answer::of(request(Method::HEAD, &url, &[])).await.status, 200);
        let foreign = press(&url, &[("origin", "https://evil.example")]).await;
        assert_eq!(foreign.status, 403);
        let redirect = press(&url, &[]).await;
        assert_eq!(redirect.status, 303);
        let location = redirect.header(header::LOCATION.as_str()).unwrap();
        for _ in 0..2 {
            assert_eq!(get(location, &[]).await.body, "secret", "a download can be repeated");
        }
        is_not_found(&press(&url, &[]).await);
        is_not_found(&get(&url, &[]).await);
        let page = get(&url, &[("accept", "text/html")]).await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (404, Some("text/html; charset=utf-8"))
        );
        // A link of one kind is none of the other.
        is_not_found(&get(&url.replace("/content/o/", "/content/d/"), &[]).await);
        is_not_found(
            &get(&format!("{}/name", url.replace("/content/o/", "/content/d/")), &[]).await,
        );
    }
}

#[tokio::test]
async fn of_many_posts_to_two_instances_one_wins() {
    let (_redis, instances) = instances().await;
    let client = Modern::at(&instances[0].url);
    for _ in 0..5 {
        let url = once_link(&client).await;
        let host = [("host", "larder.test")];
        let presses = (0..8).map(|n| {
            let url = at(&instances[n % 2], &url);
            async move { press(&url, &host).await.status }
        });
        let statuses = patiently("the answers", futures_util::future::join_all(presses)).await;
        assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 404).count(), 7, "{statuses:?}");
    }
}
