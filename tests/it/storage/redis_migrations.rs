//! Migrations of the layout in Redis: a server serves the current layout only.

use serde_json::json;

use crate::support::{
    RedisServer, ask,
    process::{larder, refused, run, serving},
};

/// The output of `larder migrate`, which succeeds.
async fn migrate(arguments: &[&str]) -> String {
    let finished = run(larder(&[&["migrate"], arguments].concat())).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stdout
}

/// Checks that a server answers.
async fn assert_serves(url: &str) {
    let tools = ask(url, "tools/list", json!({})).await.result();
    assert!(!tools["tools"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn an_old_layout_is_refused_until_it_is_migrated() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let command = format!("larder migrate --store {url}");
    let (code, said) = refused(&["serve", "--listen", "127.0.0.1:0", "--store", &url], &[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&command), "{said}");
    let said = migrate(&["--status", "--store", &url]).await;
    assert!(said.contains("Layout 0 of 4") && said.contains("0001_resources"), "{said}");
    let said = migrate(&["--store", &url]).await;
    assert!(said.contains("Applied 0001_resources") && said.contains("Applied 0002_"), "{said}");
    let said = migrate(&["--store", &url]).await;
    assert!(!said.contains("Applied") && said.contains("up to date"), "{said}");
    let (_larder, served) = serving(&["--store", &url]).await;
    assert_serves(&served).await;
}

#[tokio::test]
async fn servers_that_start_together_migrate_once() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let arguments = ["--migrate", "--store", &url];
    let several = (0..10).map(|_| serving(&arguments));
    for (_larder, served) in futures_util::future::join_all(several).await {
        assert_serves(&served).await;
    }
    let said = migrate(&["--status", "--store", &url]).await;
    assert!(said.contains("Layout 4 of 4"), "{said}");
}

#[tokio::test]
async fn a_newer_layout_is_refused_by_serve_and_migrate() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    migrate(&["--store", &url]).await;
    redis.command(&["SET", "larder:{7}:layout", "999"]).await;
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0", "--store", &url][..],
        &["serve", "--migrate", "--listen", "127.0.0.1:0", "--store", &url],
        &["migrate", "--store", &url],
    ] {
        let (code, said) = refused(arguments, &[]).await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("999") && said.contains("newer"), "{said}");
    }
}

#[tokio::test]
async fn an_unreachable_redis_is_named() {
    let mut redis = RedisServer::start().await;
    redis.kill();
    let url = redis.url().replace("redis://", "redis://me:secret@");
    let (code, said) = refused(&["serve", "--listen", "127.0.0.1:0", "--store", &url], &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("store.url") && said.contains("Redis cannot be reached"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}
