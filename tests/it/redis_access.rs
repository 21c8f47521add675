//! A Redis that is reached by TLS, and one that knows its users.

use std::path::Path;

use serde_json::json;

use crate::{
    process::{refused, serving_in},
    support::{Certificates, Legacy, RedisServer, TRUSTED, free_port},
};

/// A Redis with TLS, and where that is.
async fn encrypted(certificates: &Certificates) -> (RedisServer, String) {
    let port = free_port();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let server = RedisServer::start_with(&[
        "--save",
        "",
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &path(&certificates.certificate()),
        "--tls-key-file",
        &path(&certificates.key()),
        "--tls-ca-cert-file",
        &path(&certificates.authority()),
        "--tls-auth-clients",
        "no",
    ])
    .await;
    (server, format!("rediss://127.0.0.1:{port}"))
}

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
    let (_redis, url) = encrypted(&certificates).await;
    let authority = certificates.authority();
    let trusted = [(TRUSTED, authority.to_str().unwrap())];
    let (_child, served) = serving_in(&["--migrate", "--store", &url], &trusted).await;
    works(&served).await;

    let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", &url];
    let (code, said) = refused(&arguments, &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("store.url") && said.contains("certificate"), "{said}");
}

/// A Redis that lets nobody in but this user, who may do what the README says.
async fn guarded() -> RedisServer {
    let redis = RedisServer::start().await;
    let rules = ["on", ">s/cret", "resetkeys", "~larder:*", "resetchannels", "&larder:*"];
    let commands = ["-@all", "+@all", "-@admin", "-@dangerous", "+info"];
    redis.command(&[&["ACL", "SETUSER", "larder"], &rules[..], &commands].concat()).await;
    redis.command(&["ACL", "SETUSER", "default", "off"]).await;
    redis
}

#[tokio::test]
async fn a_user_who_may_do_little_is_enough() {
    let redis = guarded().await;
    let url = redis.url().replace("redis://", "redis://larder:s%2Fcret@");
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
