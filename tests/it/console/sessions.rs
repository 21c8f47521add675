//! How many sessions there are, and what they count for.

use larder::config::Config;
use reqwest::Method;
use serde_json::json;

use super::{Browser, configure, server};
use crate::{
    content::resource,
    support::{Answer, RedisServer, Server, http},
};

/// The default of `console.sessions_per_principal`.
const MAX: usize = 16;

/// Each browser and whether it is still logged in.
async fn alive(browsers: &[Browser]) -> Vec<bool> {
    let mut alive = Vec::new();
    for browser in browsers {
        alive.push(browser.session().await["user"].is_string());
    }
    alive
}

async fn with_store(url: String, change: impl FnOnce(&mut Config)) -> Server {
    Server::configured(|setup| {
        configure(setup, |config| {
            config.store.url = url;
            config.redis.migrate = true;
            change(config);
        });
    })
    .await
}

/// Logs in more often than there may be sessions.
async fn the_oldest_end_first(server: &Server) {
    let ben = Browser::logged_in(server, "ben").await;
    let mut browsers = Vec::new();
    for _ in 0..MAX + 4 {
        browsers.push(Browser::logged_in(server, "anna").await);
    }
    let expected: Vec<_> = (0..MAX + 4).map(|n| n >= 4).collect();
    assert_eq!(alive(&browsers).await, expected);
    assert!(ben.session().await["user"].is_string(), "the sessions of others stay");

    // A logout makes room, so nobody else has to go.
    browsers[10].log_out().await;
    let another = Browser::logged_in(server, "anna").await;
    let expected: Vec<_> = (0..MAX + 4).map(|n| n >= 4 && n != 10).collect();
    assert_eq!(alive(&browsers).await, expected);
    assert!(another.session().await["user"].is_string());
}

#[tokio::test]
async fn the_oldest_session_of_a_principal_ends_when_there_are_too_many() {
    the_oldest_end_first(&server(|_| {}).await).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    the_oldest_end_first(&with_store(url, |_| {}).await).await;
    let redis = RedisServer::start().await;
    the_oldest_end_first(&with_store(redis.url(), |_| {}).await).await;
}

#[tokio::test]
async fn logins_of_one_token_do_not_fill_redis() {
    let redis = RedisServer::start().await;
    let server = with_store(redis.url(), |_| {}).await;
    Browser::logged_in(&server, "anna").await;
    let keys = async || {
        let size = redis.command(&["DBSIZE"]).await;
        size.trim_start_matches(':').trim().parse::<usize>().unwrap()
    };
    let before = keys().await;
    for _ in 0..200 {
        Browser::logged_in(&server, "anna").await;
    }
    let grown = keys().await.saturating_sub(before);
    assert!(grown <= 2 * MAX, "200 logins have left {grown} keys");
}

#[tokio::test]
async fn of_many_logins_at_once_no_more_sessions_remain() {
    let redis = RedisServer::start().await;
    let instances = [with_store(redis.url(), |_| {}).await, with_store(redis.url(), |_| {}).await];
    let logins = (0..3 * MAX).map(|n| {
        let mut browser = Browser::of(&instances[n % 2]);
        async move {
            browser.log_in("anna").await;
            browser
        }
    });
    let browsers = futures_util::future::join_all(logins).await;
    let alive = alive(&browsers).await.into_iter().filter(|alive| *alive).count();
    assert!((1..=MAX).contains(&alive), "{alive}");
}

#[tokio::test]
async fn a_login_counts_as_a_request_of_its_caller() {
    let server = server(|config| config.limits.requests_per_window = 3).await;
    for _ in 0..3 {
        Browser::logged_in(&server, "anna").await;
    }
    let refused = Browser::of(&server).log_in("anna").await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    assert!(!refused.headers.contains_key("set-cookie"), "{refused:?}");
    // At the MCP endpoint as well, and for nobody else.
    let ping = crate::support::request("ping", json!({}));
    let endpoint = crate::support::post(&server.url, &ping).bearer_auth("anna");
    assert_eq!(Answer::of(endpoint).await.status, 429);
    Browser::logged_in(&server, "ben").await;
}

/// Stores that many bytes as anna; the status.
async fn store(server: &Server, uri: &str, bytes: usize) -> u16 {
    let put = http().request(Method::PUT, resource(&server.url, uri));
    let put = put.bearer_auth("anna").header("content-type", "application/octet-stream");
    Answer::of(put.body(vec![7; bytes])).await.status
}

async fn delete(server: &Server, uri: &str) {
    let delete = http().delete(resource(&server.url, uri)).bearer_auth("anna");
    assert_eq!(Answer::of(delete).await.status, 204);
}

/// Sessions count, and end where there is no room for one more.
async fn sessions_count(server: &Server) {
    const QUOTA: usize = 64 << 10;
    let mut browsers = Vec::new();
    for _ in 0..MAX {
        browsers.push(Browser::logged_in(server, "anna").await);
    }
    assert_eq!(store(server, "x:large", QUOTA - (12 << 10)).await, 507, "sessions are counted");
    for browser in &browsers[1..] {
        browser.log_out().await;
    }
    assert_eq!(store(server, "x:large", QUOTA - (12 << 10)).await, 201, "they are no longer");

    // Whoever is out of room can log in all the same, to delete something.
    assert_eq!(store(server, "x:rest", 6 << 10).await, 201);
    let mut last = Vec::new();
    for _ in 0..6 {
        last.push(Browser::logged_in(server, "anna").await);
    }
    let alive = alive(&last).await;
    assert!(alive[5], "the latest login has a session");
    assert!(!alive[0] && browsers[0].session().await["user"].is_null(), "{alive:?}");
    delete(server, "x:large").await;
    assert_eq!(store(server, "x:another", 16 << 10).await, 201);
}

#[tokio::test]
async fn sessions_count_in_the_quota_of_their_owner() {
    const QUOTA: u64 = 64 << 10;
    sessions_count(&server(|config| config.memory.bytes_per_owner = QUOTA).await).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let files = with_store(url, |config| config.objects.bytes_per_owner = QUOTA).await;
    sessions_count(&files).await;
    let redis = RedisServer::start().await;
    let redis = with_store(redis.url(), |config| config.redis.bytes_per_owner = QUOTA).await;
    sessions_count(&redis).await;
}
#[tokio::test]
async fn a_lower_limit_holds_for_sessions_from_before() {
    let redis = RedisServer::start().await;
    let before = with_store(redis.url(), |_| {}).await;
    let mut browsers = Vec::new();
    for _ in 0..4 {
        browsers.push(Browser::logged_in(&before, "anna").await);
    }
    let two = |config: &mut Config| config.console.sessions_per_principal = 2;
    let after = with_store(redis.url(), two).await;
    let moved: Vec<_> = browsers
        .iter()
        .map(|browser| Browser { cookie: browser.cookie.clone(), ..Browser::of(&after) })
        .collect();
    Browser::logged_in(&after, "anna").await;
    let alive = alive(&moved).await.into_iter().filter(|alive| *alive).count();
    assert!(alive <= 1, "{alive} of the sessions before are left beside the new one");
}
