//! Floods of logins from one address, before anybody is known.

use futures_util::{StreamExt, future::join_all, stream};
use serde_json::json;

use super::{Browser, said, server};
use crate::support::{Answer, Server, UnfinishedForm, eventually, http};

/// Forms of one address that are read at the same time.
const PER_ADDRESS: usize = 64;

const STRANGER: &str = "203.0.113.1";

/// A console behind a proxy, which tells the address of each client.
async fn proxied() -> Server {
    server(|config| config.server.trusted_proxies = vec!["127.0.0.0/8".to_owned()]).await
}

/// A login from an address.
async fn log_in(server: &Server, address: &str, token: &str) -> Answer {
    let origin = format!("http://{}", server.address);
    let request = http()
        .post(format!("{origin}/console/login"))
        .header("origin", origin)
        .header("x-forwarded-for", address)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={token}"));
    Answer::of(request).await
}

#[tokio::test]
async fn unfinished_logins_of_one_address_are_bounded_and_keep_nobody_else_out() {
    let server = proxied().await;
    let begin = || UnfinishedForm::begin(&server, "/console/login", STRANGER, 40_000);
    let flood = join_all((0..2 * PER_ADDRESS).map(|_| begin())).await;

    assert_eq!(flood.iter().filter(|form| form.is_read()).count(), PER_ADDRESS);
    for UnfinishedForm { answer, .. } in flood.iter().filter(|form| !form.is_read()) {
        assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
        assert!(answer.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{answer}");
    }

    let refused = log_in(&server, STRANGER, "anna").await;
    assert_eq!(refused.status, 429);
    assert!(said(&refused).contains("Try again shortly"), "{refused:?}");
    for address in ["203.0.113.2", "2001:db8::1"] {
        assert_eq!(log_in(&server, address, "anna").await.status, 204, "{address}");
    }

    // A client that leaves gives its slot back.
    drop(flood);
    eventually("a free slot", async || log_in(&server, STRANGER, "anna").await.status == 204).await;
}

#[tokio::test]
async fn wrong_tokens_of_one_address_leave_nothing_behind_and_keep_nobody_else_out() {
    let server = proxied().await;
    let flood = stream::iter(0..2_000).map(async |number| {
        let answer = log_in(&server, STRANGER, &format!("wrong-{number}")).await;
        assert!(answer.headers.get("set-cookie").is_none(), "{answer:?}");
        assert!(matches!(answer.status, 401 | 429), "{answer:?}");
    });
    let mut flood = std::pin::pin!(flood.buffer_unordered(2 * PER_ADDRESS));

    // Others log in while the wrong tokens arrive.
    let mut number = 0;
    while flood.next().await.is_some() {
        number += 1;
        if number % 100 == 0 {
            assert_eq!(log_in(&server, "203.0.113.2", "anna").await.status, 204, "{number}");
        }
    }

    assert_eq!(log_in(&server, STRANGER, "ben").await.status, 204);
    let stranger = Browser::of(&server);
    assert_eq!(stranger.session().await, json!({ "login": true }));
}
