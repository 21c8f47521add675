//! The files of the page.

use reqwest::Method;

use super::{Browser, server};
use crate::support::{Answer, Server, http};

#[tokio::test]
async fn the_page_allows_no_script_but_its_own_and_no_frame() {
    let server = server(|_| {}).await;
    let browser = Browser::of(&server);
    for (name, media_type) in [
        ("", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("app.css", "text/css; charset=utf-8"),
    ] {
        let answer = Answer::of(browser.get(name)).await;
        assert_eq!(answer.status, 200, "{name}");
        let header = |header: &str| answer.headers[header].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), media_type);
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        let policy = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self';",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let again = browser.get(name).header("if-none-match", header("etag"));
        assert_eq!(Answer::of(again).await.status, 304);
    }
}

#[tokio::test]
async fn the_path_without_a_slash_leads_to_the_page() {
    let server = server(|_| {}).await;
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let url = format!("http://{}/console", server.address);
    let answer = Answer::of(client.build().unwrap().request(Method::GET, url)).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.headers["location"], "/console/");
}

#[tokio::test]
async fn there_is_no_console_unless_it_is_enabled() {
    let server = Server::start().await;
    for path in ["", "login", "rpc", "events"] {
        let url = format!("http://{}/console/{path}", server.address);
        assert_eq!(Answer::of(http().get(url)).await.status, 404, "{path}");
    }
}
