//! Microsoft Entra ID.

use larder::login::ProviderKind::Entra;
use serde_json::{Value, json};

use super::{World, has, outage, refusal};
use crate::auth::issuer::Reply;

const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
const GRAPH: &str = "/v1.0/me/getMemberObjects";

/// A provider with Entra's metadata: it lists no challenge methods.
async fn entra() -> World {
    let world = World::with(Entra, |options| {
        options.tenant = Some(TENANT.into());
        options.api_url = options.issuer.clone();
    })
    .await;
    world.set_metadata(|metadata| {
        metadata.as_object_mut().unwrap().remove("code_challenge_methods_supported");
        metadata.as_object_mut().unwrap().remove("authorization_response_iss_parameter_supported");
        metadata["token_endpoint_auth_methods_supported"] =
            json!(["client_secret_post", "private_key_jwt", "client_secret_basic"]);
        metadata["tenant_region_scope"] = json!("EU");
        metadata["msgraph_host"] = json!("graph.microsoft.com");
    });
    world
}

/// The ID token (version 2.0) of Microsoft's documentation.
fn set_account(world: &World, change: impl FnOnce(&mut Value)) {
    world.set_tokens(|claims| {
        claims["ver"] = json!("2.0");
        claims["sub"] = json!("AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ");
        claims["oid"] = json!("00000000-0000-0000-66f3-3332eca7ea81");
        claims["tid"] = json!(TENANT);
        claims["preferred_username"] = json!("Alice@example.com");
        claims["nbf"] = claims["iat"].clone();
        claims["aio"] = json!("Df2UVXL1ix!lMCWMSOJBcFatzcGfvFGhjKv8q5g0x732dR5MB5BisvGQO7");
        claims.as_object_mut().unwrap().remove("email_verified");
        change(claims);
    });
}

/// As the documentation shows a user with more groups than a token lists.
fn set_overage(world: &World) {
    set_account(world, |claims| {
        claims.as_object_mut().unwrap().remove("groups");
        claims["_claim_names"] = json!({ "groups": "src1" });
        claims["_claim_sources"] = json!({ "src1": {
            "endpoint": format!("https://graph.windows.net/{TENANT}/users/x/getMemberObjects"),
        } });
    });
}

#[tokio::test]
async fn an_account_of_the_tenant_is_let_in() {
    let world = entra().await;
    set_account(&world, |_| {});
    let person = world.redeem().await.unwrap().person;
    assert_eq!(person.organization.as_deref(), Some(TENANT));
    assert_eq!(person.email.as_deref(), Some("Alice@example.com"));
    assert!(person.email_verified);
    assert_eq!(person.groups, ["engineering"]);
    assert_eq!((world.server.hits("/userinfo"), world.server.hits(GRAPH)), (0, 0));
    // Entra gives a refresh token without a consent, which some users cannot give.
    let parameters = world.authorization().await;
    let scope = "openid profile email User.Read offline_access";
    assert!(has(&parameters, "scope", scope), "{parameters:?}");
    assert!(parameters.iter().all(|(name, _)| name != "prompt"));
}

#[tokio::test]
async fn accounts_of_other_tenants_are_refused() {
    let world = entra().await;
    for other in [json!("bbbbcccc-1111-dddd-2222-eeee3333ffff"), Value::Null] {
        set_account(&world, |claims| claims["tid"] = other.clone());
        assert!(refusal(world.redeem().await).contains("auth.login.tenant"), "{other}");
        assert!(refusal(world.refresh().await).contains("auth.login.tenant"), "{other}");
    }
}

#[tokio::test]
async fn an_address_that_an_administrator_entered_is_not_the_users() {
    let world = entra().await;
    set_account(&world, |claims| {
        claims["email"] = json!("ceo@example.com");
        claims["preferred_username"] = json!("mallory@other.example");
    });
    let person = world.redeem().await.unwrap().person;
    assert_eq!(person.email.as_deref(), Some("mallory@other.example"));
}

#[tokio::test]
async fn graph_lists_the_groups_that_a_token_cannot() {
    let world = entra().await;
    set_overage(&world);
    let groups: Vec<String> =
        (0..300).map(|n| format!("fee2c45b-915a-4a64-b130-{n:012}")).collect();
    let list = json!({
        "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#Collection(Edm.String)",
        "value": groups,
    });
    world.server.set_reply(GRAPH, Reply::Json(list));
    assert_eq!(world.redeem().await.unwrap().person.groups, groups);
    assert_eq!(world.refresh().await.unwrap().person.groups, groups);
    let request = &world.server.requests(GRAPH)[0];
    assert_eq!(request.authorization.as_deref(), Some("Bearer the access token"));
    assert_eq!(request.body, r#"{"securityEnabledOnly":true}"#);
}

#[tokio::test]
async fn groups_that_cannot_be_listed_are_refused_and_never_left_out() {
    let world = entra().await;
    set_overage(&world);
    let denied = json!({ "error": {
        "code": "Authorization_RequestDenied",
        "message": "Insufficient privileges to complete the operation.",
    } });
    world.server.set_reply(GRAPH, Reply::Status(403, denied));
    let text = refusal(world.redeem().await);
    assert!(
        text.contains("more groups than a token lists") && text.contains("User.Read"),
        "{text}"
    );
    world.server.set_reply(GRAPH, Reply::Status(503, json!({})));
    outage(world.redeem().await);
}
