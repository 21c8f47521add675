//! Redis that is reached by TLS, and that knows its users: one server, and a cluster.

use serde_json::json;

use crate::{
    process::{refused, serving_in},
    support::{Certificates, LOGIN, Legacy, RedisServer, TRUSTED, admit, encrypted},
};

/// A session, a resource and its announcement: all that goes over Redis.
async fn works(url: &str) {
    let client = Legacy::begin(url, &Legacy::initialize("2025-11-25")).await;
    let mut own = client.listen().await;
    assert_eq!(own.next().await.unwrap().data, "", "a priming event");
    client.create(json!({ "uri": "x:1", "text": "1" })).await;
    assert_eq!(own.message().await["method"], "notifications/resources/list_changed");
    let read = client.send("resources/read", json!({ "uri": "x:1" })).await.result();
    assert_eq!(read["contents"][0]["text"], "1");
}

#[tokio::test]
async fn a_redis_with_tls_is_used_where_its_certificate_is_trusted() {
    let certificates = Certificates::new();
    let redis = RedisServer::start_also_with(&["--save", ""], &encrypted(&certificates)).await;
    let url = format!("rediss://127.0.0.1:{}", redis.option("--tls-port").unwrap());
    let authority = certificates.authority();
    let trusted = [(TRUSTED, authority.to_str().unwrap())];
    let (_child, served) = serving_in(&["--migrate", "--store", &url], &trusted).await;
    works(&served).await;

    let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", &url];
    let (code, said) = refused(&arguments, &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("store.url") && said.contains("certificate"), "{said}");
}

#[tokio::test]
async fn a_cluster_with_tls_is_used_by_a_user_who_may_do_little() {
    let certificates = Certificates::new();
    let nodes = RedisServer::cluster(|| encrypted(&certificates)).await;
    let mut hosts = Vec::new();
    for node in &nodes {
        admit(node).await;
        hosts.push(format!("127.0.0.1:{}", node.option("--tls-port").unwrap()));
    }
    let authority = certificates.authority();
    let trusted = [(TRUSTED, authority.to_str().unwrap())];
    let url = format!("rediss+cluster://{LOGIN}{}", hosts.join(","));
    let (_child, served) = serving_in(&["--migrate", "--store", &url], &trusted).await;
    works(&served).await;
}

/// A Redis that lets nobody else in.
async fn guarded() -> RedisServer {
    let redis = RedisServer::start().await;
    admit(&redis).await;
    redis.command(&["ACL", "SETUSER", "default", "off"]).await;
    redis
}

#[tokio::test]
async fn a_user_who_may_do_little_is_enough() {
    let redis = guarded().await;
    let url = redis.url().replace("redis://", &format!("redis://{LOGIN}"));
    let (_child, served) = serving_in(&["--migrate", "--store", &url], &[]).await;
    works(&served).await;
}

#[tokio::test]
async fn who_is_not_let_in_is_told_so_without_the_password() {
    let redis = guarded().await;
    for login in ["", "larder:sesame@", "nobody:sesame@"] {
        let url = redis.url().replace("redis://", &format!("redis://{login}"));
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", &url];
        let (code, said) = refused(&arguments, &[]).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("store.url") && !said.contains("sesame"), "{said}");
    }
}
