//! Restarts in the middle of a login, and a Redis that is away.

use reqwest::{Response, Url};
use tempfile::NamedTempFile;

use super::{
    Browser, Client, body,
    instances::{at, instance},
    parameter,
};
use crate::support::{RedisServer, poll};

fn origin(url: &str) -> String {
    Url::parse(url).unwrap().origin().ascii_serialization()
}

fn form(question: &Url) -> String {
    format!("ticket={}&decision=allow", parameter(question, "ticket").unwrap())
}

/// The code of the redirect to the client.
fn code(answered: &Response) -> String {
    let back = Url::parse(answered.headers()["location"].to_str().unwrap()).unwrap();
    parameter(&back, "code").unwrap_or_else(|| panic!("{back}"))
}

#[tokio::test]
async fn a_login_goes_on_after_each_restart() {
    let (redis, key) = (RedisServer::start().await, NamedTempFile::new().unwrap());
    let one = instance(&redis, &key, None).await;
    let url = one.url.clone();
    let client = Client::of(&url);
    let id = client.register().await;
    let mut alice = Browser::of("alice");
    let begin = client.authorize_url(&client.request(&id));
    let callback = alice.follow(begin, "/login/callback").await.unwrap();
    one.stop().finished().await;

    let two = instance(&redis, &key, Some(&url)).await;
    let question = alice.follow(at(&two, &callback), "/login/consent").await.unwrap();
    two.stop().finished().await;

    let three = instance(&redis, &key, Some(&url)).await;
    let answered = alice.answer(&at(&three, &question), &form(&question), &origin(&url)).await;
    let code = code(&answered);
    three.stop().finished().await;

    let four = instance(&redis, &key, Some(&url)).await;
    let client = Client::of(&four.url);
    let redeemed = [
        ("grant_type", "authorization_code"),
        ("client_id", &*id),
        ("code", &*code),
        ("code_verifier", super::VERIFIER),
        ("redirect_uri", super::REDIRECT),
    ];
    let tokens = body(client.post("token", &redeemed).await).await;
    assert_eq!(client.status(&tokens).await, 200);
    four.stop().finished().await;

    let five = instance(&redis, &key, Some(&url)).await;
    let client = Client::of(&five.url);
    assert_eq!(client.status(&tokens).await, 200);
    let tokens = body(client.refresh(&id, &tokens).await).await;
    assert_eq!(client.status(&tokens).await, 200);
}

/// Sends a request without Redis, and again with it.
async fn without_redis(
    redis: &mut RedisServer,
    mut send: impl AsyncFnMut() -> Response,
) -> Response {
    redis.kill();
    let refused = send().await;
    assert_eq!(refused.status(), 503, "{}", refused.url());
    assert!(refused.headers().contains_key("retry-after"), "{}", refused.url());
    redis.restart().await;
    let answered = async || {
        let response = send().await;
        (response.status() != 503).then_some(response)
    };
    poll("an answer with Redis", answered).await
}

#[tokio::test]
async fn a_step_without_redis_is_refused_and_succeeds_with_it_again() {
    let (mut redis, key) = (RedisServer::durable().await, NamedTempFile::new().unwrap());
    let server = instance(&redis, &key, None).await;
    let client = Client::of(&server.url);
    let id = client.register().await;
    let mut alice = Browser::of("alice");
    let begin = client.authorize_url(&client.request(&id));
    // The provider's code is used up then, so the user begins again.
    let callback = alice.follow(begin.clone(), "/login/callback").await.unwrap();
    let again = without_redis(&mut redis, async || alice.get(&callback).await).await;
    assert_ne!(again.status(), 303);
    let question = alice.follow(begin, "/login/consent").await.unwrap();
    let page = without_redis(&mut redis, async || alice.get(&question).await).await;
    assert_eq!(page.status(), 200);
    let (form, origin) = (form(&question), origin(&server.url));
    let answer = async || alice.answer(&question, &form, &origin).await;
    let answered = without_redis(&mut redis, answer).await;
    assert_eq!(answered.status(), 303);
    let code = code(&answered);
    let redeemed = without_redis(&mut redis, async || client.redeem(&id, &code).await).await;
    let tokens = body(redeemed).await;
    assert_eq!(client.status(&tokens).await, 200);
    let refreshed = without_redis(&mut redis, async || client.refresh(&id, &tokens).await).await;
    let tokens = body(refreshed).await;
    assert_eq!(client.status(&tokens).await, 200);
    let token = [("token", tokens["refresh_token"].as_str().unwrap())];
    let revoked = without_redis(&mut redis, async || client.post("revoke", &token).await).await;
    assert_eq!(revoked.status(), 200);
    assert_eq!(client.refresh(&id, &tokens).await.status(), 400);
}
