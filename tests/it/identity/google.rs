//! Google accounts and Google Workspace.

use larder::login::ProviderKind::Google;
use serde_json::{Value, json};

use super::{World, has, refusal};

/// A provider with Google's metadata: it has no scope `offline_access`.
async fn google(hosted_domain: Option<&str>) -> World {
    let domain = hosted_domain.map(str::to_owned);
    let world = World::with(Google, |options| options.hosted_domain = domain).await;
    world.set_metadata(|metadata| {
        metadata["scopes_supported"] = json!(["openid", "email", "profile"]);
        metadata["code_challenge_methods_supported"] = json!(["plain", "S256"]);
        metadata["token_endpoint_auth_methods_supported"] =
            json!(["client_secret_post", "client_secret_basic"]);
        metadata.as_object_mut().unwrap().remove("authorization_response_iss_parameter_supported");
    });
    world
}

/// The ID token of Google's documentation.
fn set_account(world: &World, change: impl FnOnce(&mut Value)) {
    world.set_tokens(|claims| {
        claims.as_object_mut().unwrap().remove("groups");
        claims["azp"] = json!("larder");
        claims["at_hash"] = json!("HK6E_P6Dh8Y93mRNtsDB1Q");
        claims["sub"] = json!("10769150350006150715113082367");
        claims["picture"] = json!("https://lh3.googleusercontent.com/a-/x");
        claims["given_name"] = json!("Alice");
        claims["hd"] = json!("example.com");
        change(claims);
    });
}

#[tokio::test]
async fn a_refresh_token_is_asked_for_as_google_gives_it() {
    let parameters = google(Some("example.com")).await.authorization().await;
    for (name, value) in [
        ("scope", "openid profile email"),
        ("access_type", "offline"),
        ("prompt", "consent"),
        ("hd", "example.com"),
        ("code_challenge_method", "S256"),
    ] {
        assert!(has(&parameters, name, value), "{name}: {parameters:?}");
    }
}

#[tokio::test]
async fn an_account_of_the_organization_is_let_in() {
    let world = google(Some("example.com")).await;
    set_account(&world, |_| {});
    let person = world.redeem().await.unwrap().person;
    assert_eq!(person.subject, "10769150350006150715113082367");
    assert_eq!(person.organization.as_deref(), Some("example.com"));
    assert!(person.email_verified && person.groups.is_empty());
    assert_eq!(world.server.hits("/userinfo"), 0);
}

#[tokio::test]
async fn other_accounts_are_refused_where_a_hosted_domain_is_configured() {
    let world = google(Some("example.com")).await;
    for other in [json!("other.example"), Value::Null, json!("evil-example.com")] {
        set_account(&world, |claims| claims["hd"] = other.clone());
        assert!(refusal(world.redeem().await).contains("auth.login.hosted_domain"), "{other}");
        assert!(refusal(world.refresh().await).contains("auth.login.hosted_domain"), "{other}");
    }
}

#[tokio::test]
async fn google_vouches_for_no_address_outside_of_organizations_and_gmail() {
    let world = google(None).await;
    set_account(&world, |claims| {
        claims.as_object_mut().unwrap().remove("hd");
    });
    let person = world.redeem().await.unwrap().person;
    assert_eq!(person.email.as_deref(), Some("alice@example.com"));
    assert!(!person.email_verified);
}
