//! The binary over Redis: what it asks for before it serves.

use std::process::Output;

use serde_json::json;

use crate::{
    process::{larder, refused, serving},
    support::{Answer, RedisServer, http, patiently},
};

async fn run(arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, .. } =
        patiently("the process to end", larder(arguments).output()).await.unwrap();
    (status.success(), String::from_utf8(stdout).unwrap())
}

async fn tools_of(url: &str) -> usize {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let request = http().post(url).header("content-type", "application/json");
    let answer = Answer::of(request.body(list.to_string())).await.result();
    answer["tools"].as_array().unwrap().len()
}

#[tokio::test]
async fn it_serves_only_what_is_migrated_and_says_how_to() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let command = format!("larder migrate --store {url}");
    let (code, said) = refused(&["serve", "--listen", "127.0.0.1:0", "--store", &url], &[]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&command), "{said}");
    let (ok, said) = run(&["migrate", "--status", "--store", &url]).await;
    assert!(ok && said.contains("Layout 0 of 3") && said.contains("0001_resources"), "{said}");
    let (ok, said) = run(&["migrate", "--store", &url]).await;
    assert!(
        ok && said.contains("Applied 0001_resources") && said.contains("Applied 0002_"),
        "{said}"
    );
    let (ok, said) = run(&["migrate", "--store", &url]).await;
    assert!(ok && !said.contains("Applied") && said.contains("up to date"), "{said}");
    let (_child, served) = serving(&["--store", &url]).await;
    assert!(tools_of(&served).await > 0);
}

#[tokio::test]
async fn it_migrates_first_where_it_is_told_to() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    let arguments = ["--migrate", "--store", &url];
    let several = (0..10).map(|_| serving(&arguments));
    for (_child, served) in futures_util::future::join_all(several).await {
        assert!(tools_of(&served).await > 0);
    }
    let (ok, said) = run(&["migrate", "--status", "--store", &url]).await;
    assert!(ok && said.contains("Layout 3 of 3"), "{said}");
}

#[tokio::test]
async fn a_newer_layout_is_refused_by_serve_and_migrate() {
    let redis = RedisServer::start().await;
    let url = redis.url();
    run(&["migrate", "--store", &url]).await;
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
async fn a_redis_that_is_not_there_is_named() {
    let mut redis = RedisServer::start().await;
    redis.kill();
    let url = redis.url().replace("redis://", "redis://me:secret@");
    let (code, said) = refused(&["serve", "--listen", "127.0.0.1:0", "--store", &url], &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("store.url") && said.contains("Redis cannot be reached"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}
