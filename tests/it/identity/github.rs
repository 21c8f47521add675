//! GitHub, which has no ID tokens.

use larder::login::{ProviderGrant, ProviderKind::GitHub};
use serde_json::{Value, json};

use super::{World, has, outage, refresh_token, refusal};
use crate::auth::issuer::Reply;

const TOKEN: &str = "/login/oauth/access_token";

/// GitHub with the responses of its documentation.
async fn github() -> World {
    let world = World::with(GitHub, |options| options.api_url = options.issuer.clone()).await;
    let user = json!({
        "login": "octocat", "id": 1, "node_id": "MDQ6VXNlcjE=", "type": "User",
        "site_admin": false, "name": "monalisa octocat", "company": "GitHub",
        "email": "octocat@elsewhere.example", "created_at": "2008-01-14T04:33:35Z",
    });
    let emails = json!([
        { "email": "old@example.com", "verified": true, "primary": false, "visibility": null },
        { "email": "octocat@example.com", "verified": true, "primary": true,
          "visibility": "public" },
    ]);
    let organizations =
        json!([{ "login": "acme", "id": 1, "description": "A great organization" }]);
    let teams = json!([{
        "id": 1, "name": "Justice League", "slug": "justice-league", "privacy": "closed",
        "permission": "admin", "parent": null,
        "organization": { "login": "acme", "id": 1, "type": "Organization" },
    }]);
    for (path, body) in [
        ("/user", user),
        ("/user/emails", emails),
        ("/user/orgs", organizations),
        ("/user/teams", teams),
    ] {
        world.server.set_reply(path, Reply::Json(body));
    }
    set_token(&world, &json!({}));
    world
}

/// The documented token response, with further members.
fn set_token(world: &World, more: &Value) {
    let mut tokens = json!({
        "access_token": "gho_16C7e42F292c6912E7710c838347Ae178B4a",
        "scope": "read:org,read:user,user:email", "token_type": "bearer",
    });
    tokens.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.server.set_reply(TOKEN, Reply::Json(tokens));
}

fn access_token() -> ProviderGrant {
    let token = "gho_16C7e42F292c6912E7710c838347Ae178B4a".to_owned();
    ProviderGrant { access_token: Some(token), refresh_token: None }
}

#[tokio::test]
async fn the_api_says_who_a_user_is() {
    let world = github().await;
    let user = world.redeem().await.unwrap();
    let person = &user.person;
    assert_eq!((person.issuer.as_str(), person.subject.as_str()), (&*world.server.url, "1"));
    assert_eq!(person.email.as_deref(), Some("octocat@example.com"));
    assert!(person.email_verified);
    assert_eq!(person.name.as_deref(), Some("monalisa octocat"));
    assert_eq!(person.groups, ["acme", "acme/justice-league"]);
    assert_eq!(user.grant, Some(access_token()));
    let request = &world.server.requests("/user")[0];
    let bearer = "Bearer gho_16C7e42F292c6912E7710c838347Ae178B4a";
    assert_eq!(request.authorization.as_deref(), Some(bearer));
    let body = &world.server.bodies(TOKEN)[0];
    for part in ["client_id=larder", "client_secret=s%26cret", "code_verifier=the+verifier"] {
        assert!(body.contains(part), "{body}");
    }
    let parameters = world.authorization().await;
    for (name, value) in [
        ("scope", "read:user user:email read:org"),
        ("state", "the state"),
        ("code_challenge", "the challenge"),
        ("code_challenge_method", "S256"),
    ] {
        assert!(has(&parameters, name, value), "{name}: {parameters:?}");
    }
}

#[tokio::test]
async fn only_the_primary_address_counts_and_only_if_it_is_verified() {
    let world = github().await;
    let emails = json!([
        { "email": "ceo@example.com", "verified": false, "primary": true, "visibility": null },
        { "email": "mallory@example.com", "verified": true, "primary": false, "visibility": null },
    ]);
    world.server.set_reply("/user/emails", Reply::Json(emails));
    let person = world.redeem().await.unwrap().person;
    assert!(!person.email_verified);
}

#[tokio::test]
async fn all_pages_of_teams_are_read_up_to_a_bound() {
    let world = github().await;
    let page = |number: usize, entries: usize| {
        let teams: Vec<Value> = (0..entries)
            .map(|n| json!({ "slug": format!("t{number}-{n}"), "organization": { "login": "a" } }))
            .collect();
        let path = format!("/user/teams?per_page=100&page={number}");
        world.server.set_reply(&path, Reply::Json(json!(teams)));
    };
    page(1, 100);
    page(2, 100);
    page(3, 7);
    let groups = world.redeem().await.unwrap().person.groups;
    assert_eq!(groups.len(), 1 + 207);
    assert!(groups.contains(&"a/t3-6".to_owned()));
    for number in 3..=11 {
        page(number, 100);
    }
    assert!(refusal(world.redeem().await).contains("/user/teams lists 1000 entries or more"));
}

#[tokio::test]
async fn a_token_that_does_not_expire_is_asked_for_the_user_again() {
    let world = github().await;
    let user = world.refresh_with(&access_token()).await.unwrap();
    assert_eq!((user.person.subject.as_str(), world.server.hits(TOKEN)), ("1", 0));
    assert_eq!(user.grant, Some(access_token()));
    for (status, message) in [(401, "Bad credentials"), (403, "Sorry. Your account was suspended.")]
    {
        world.server.set_reply("/user", Reply::Status(status, json!({ "message": message })));
        assert!(refusal(world.refresh_with(&access_token()).await).contains(message));
    }
    for (status, message) in [(403, "API rate limit exceeded for user ID 1."), (429, ""), (502, "")]
    {
        world.server.set_reply("/user", Reply::Status(status, json!({ "message": message })));
        outage(world.refresh_with(&access_token()).await);
    }
}

#[tokio::test]
async fn a_github_app_has_a_refresh_token() {
    let world = github().await;
    set_token(
        &world,
        &json!({
            "access_token": "ghu_16C7e42F292c6912E7710c838347Ae178B4a", "expires_in": 28800,
            "refresh_token": "ghr_1B4a2e77", "refresh_token_expires_in": 15_897_600, "scope": "",
        }),
    );
    assert_eq!(world.redeem().await.unwrap().grant, Some(refresh_token("ghr_1B4a2e77")));
    assert_eq!(world.refresh().await.unwrap().grant, Some(refresh_token("ghr_1B4a2e77")));
    assert!(world.server.bodies(TOKEN)[1].contains("grant_type=refresh_token"));
}

#[tokio::test]
async fn errors_with_status_200_are_errors() {
    let world = github().await;
    let error = |code: &str| {
        let body = json!({
            "error": code, "error_description": "The code passed is incorrect or expired.",
            "error_uri": "https://docs.github.com/apps/troubleshooting",
        });
        world.server.set_reply(TOKEN, Reply::Json(body));
    };
    error("bad_verification_code");
    assert!(refusal(world.redeem().await).contains("incorrect or expired"));
    assert_eq!(world.provider.check().await.unwrap(), "the client is accepted");
    error("bad_refresh_token");
    refusal(world.refresh().await);
    error("incorrect_client_credentials");
    assert!(outage(world.redeem().await).contains("auth.login.client_secret_file"));
    assert!(world.provider.check().await.unwrap_err().contains("auth.login.client_id"));
}
