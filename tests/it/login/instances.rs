//! Several instances on one Redis.

use reqwest::Url;
use tempfile::NamedTempFile;

use super::{Browser, Client, body, configure, parameter, refusal};
use crate::{
    auth::provider::Provider,
    support::{RedisServer, Server},
};

/// An instance. All have the URL of the first one, as behind a proxy.
pub(super) async fn instance(
    redis: &RedisServer,
    key: &NamedTempFile,
    url: Option<&str>,
) -> Server {
    let provider = Provider::shared().await;
    let secret = NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "a key of at least thirty-two bytes").unwrap();
    Server::configured(|setup| {
        let config = &mut setup.config;
        configure(config, &provider.issuer, &secret);
        config.store.url = redis.url();
        config.redis.migrate = true;
        config.server.state_key_file = Some(key.path().to_owned());
        if let Some(url) = url {
            config.server.public_url = Some(url.to_owned());
        }
    })
    .await
}

/// The same URL at another instance.
pub(super) fn at(server: &Server, url: &Url) -> Url {
    let mut url = url.clone();
    url.set_port(Some(server.address.port())).unwrap();
    url
}

#[tokio::test]
async fn any_instance_goes_on_with_what_another_began_and_none_without_redis() {
    let (mut redis, key) = (RedisServer::start().await, NamedTempFile::new().unwrap());
    let one = instance(&redis, &key, None).await;
    let two = instance(&redis, &key, Some(&one.url)).await;
    let client = Client::of(&one.url);
    let other = Client::of(&two.url);
    let id = other.register().await;
    let mut alice = Browser::of("alice");
    let url = client.authorize_url(&client.request(&id));
    let callback = alice.follow(url.clone(), "/login/callback").await.unwrap();
    // Tokens come from either, and are good at either.
    let question = alice.follow(at(&two, &callback), "/login/consent").await.unwrap();
    let form = format!("ticket={}&decision=allow", parameter(&question, "ticket").unwrap());
    let origin = Url::parse(&one.url).unwrap().origin().ascii_serialization();
    let answered = alice.answer(&question, &form, &origin).await;
    let back = Url::parse(answered.headers()["location"].to_str().unwrap()).unwrap();
    let code = parameter(&back, "code").unwrap();
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", &*id),
        ("code", &*code),
        ("code_verifier", super::VERIFIER),
        ("redirect_uri", super::REDIRECT),
    ];
    let tokens = body(other.post("token", &form).await).await;
    assert_eq!(client.status(&tokens).await, 200);
    assert_eq!(other.status(&tokens).await, 200);
    // Two processes of the client refresh at once, at both.
    let (here, there) = tokio::join!(client.refresh(&id, &tokens), other.refresh(&id, &tokens));
    let (here, there) = (body(here).await, body(there).await);
    for name in ["access_token", "refresh_token"] {
        assert!(here[name].is_string() && here[name] == there[name], "{name}");
    }
    let tokens = here;
    assert_eq!(other.status(&tokens).await, 200);
    // Both use the keys of one of them.
    let keys = async |client: &Client| body(super::get(&client.url("keys")).await).await;
    assert_eq!(keys(&client).await, keys(&other).await);
    // A code that one has redeemed is a replay at the other.
    assert_eq!(refusal(client.redeem(&id, &code).await).await, (400, "invalid_grant".into()));
    assert_eq!(refusal(other.refresh(&id, &tokens).await).await, (400, "invalid_grant".into()));
    // Without Redis: a page, and a JSON error.
    let callback = alice.follow(url, "/login/callback").await.unwrap();
    redis.kill();
    let page = alice.get(&callback).await;
    assert_eq!(page.status(), 503);
    assert!(page.headers().contains_key("retry-after"));
    let refused = refusal(client.refresh(&id, &tokens).await).await;
    assert_eq!(refused, (503, "temporarily_unavailable".into()));
}
