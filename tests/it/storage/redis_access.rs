//! Redis with TLS and with users: a single server, and a cluster.

use serde_json::json;

use crate::support::{
    Certificates, LOGIN, Legacy, RedisServer, TRUSTED, admit, encrypted,
    process::{refused, serving_in},
};

/// Checks that a server can use its Redis: a session, a resource, and a notification.
async fn assert_works(url: &str) {
    let client = Legacy::at_url(url).await;
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
    let (_larder, served) = serving_in(&["--migrate", "--store", &url], &trusted).await;
    assert_works(&served).await;

    let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", &url];
    let (code, said) = refused(&arguments, &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("store.url") && said.contains("certificate"), "{said}");
}

#[tokio::test]
async fn a_cluster_with_tls_is_used_by_a_user_with_limited_rights() {
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
    let (_larder, served) = serving_in(&["--migrate", "--store", &url], &trusted).await;
    assert_works(&served).await;
}

/// A Redis with one user, whose rights are limited.
async fn with_users() -> RedisServer {
    let redis = RedisServer::start().await;
    admit(&redis).await;
    redis.command(&["ACL", "SETUSER", "default", "off"]).await;
    redis
}

#[tokio::test]
async fn a_user_with_limited_rights_is_enough() {
    let redis = with_users().await;
    let url = redis.url().replace("redis://", &format!("redis://{LOGIN}"));
    let (_larder, served) = serving_in(&["--migrate", "--store", &url], &[]).await;
    assert_works(&served).await;
}

#[tokio::test]
async fn a_refused_login_is_reported_without_the_password() {
    let redis = with_users().await;
    for login in ["", "larder:sesame@", "nobody:sesame@"] {
        let url = redis.url().replace("redis://", &format!("redis://{login}"));
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", &url];
        let (code, said) = refused(&arguments, &[]).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("store.url") && !said.contains("sesame"), "{said}");
    }
}
