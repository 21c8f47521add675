//! Tokens that an honest issuer would not issue, which are refused with 401 `invalid_token`;
//! and tokens just within the rules, which are accepted.

use serde_json::{Value, json};

use super::{
    RESOURCE, World, assert_invalid,
    issuer::Reply,
    signer::{Signer, part},
    world, world_with,
};

/// Tests that a good token is refused after a change of its header or its claims.
macro_rules! refused {
    ($($name:ident: |$header:ident, $claims:ident| $change:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            #[allow(unused_mut, unused_variables)]
            let change = |$header: &mut Value, $claims: &mut Value| { $change; };
            refuse(change).await;
        }
    )*};
}

async fn refuse(change: impl FnOnce(&mut Value, &mut Value)) {
    let world = world().await;
    let (mut header, mut claims) = (Signer::Rsa.header(), world.claims());
    let good = world.with_token(&Signer::Rsa.sign(&header, &claims)).await;
    assert_eq!(good.status, 200, "{good:?}");
    change(&mut header, &mut claims);
    assert_invalid(&world.with_token(&Signer::Rsa.sign(&header, &claims)).await);
}

fn drop_member(object: &mut Value, name: &str) {
    object.as_object_mut().unwrap().remove(name);
}

refused! {
    iss_of_another_issuer: |header, claims| claims["iss"] = json!("http://127.0.0.1:1");
    iss_with_a_slash_more: |header, claims| {
        claims["iss"] = json!(format!("{}/", claims["iss"].as_str().unwrap()));
    };
    iss_that_is_a_list_with_ours: |header, claims| claims["iss"] = json!([claims["iss"], "x"]);
    iss_missing: |header, claims| drop_member(claims, "iss");
    iss_null: |header, claims| claims["iss"] = Value::Null;

    aud_of_another_resource: |header, claims| claims["aud"] = json!("https://other.example/mcp");
    aud_with_a_slash_more: |header, claims| claims["aud"] = json!(format!("{RESOURCE}/"));
    aud_that_begins_like_ours: |header, claims| claims["aud"] = json!(format!("{RESOURCE}2"));
    aud_that_is_our_origin_only: |header, claims| claims["aud"] = json!("http://127.0.0.1:8000");
    aud_list_without_ours: |header, claims| claims["aud"] = json!(["a", "b"]);
    aud_list_with_a_number: |header, claims| claims["aud"] = json!([RESOURCE, 1]);
    aud_empty_list: |header, claims| claims["aud"] = json!([]);
    aud_missing: |header, claims| drop_member(claims, "aud");
    aud_null: |header, claims| claims["aud"] = Value::Null;
    aud_number: |header, claims| claims["aud"] = json!(1);
    aud_object: |header, claims| claims["aud"] = json!({ RESOURCE: true });

    exp_missing: |header, claims| drop_member(claims, "exp");
    exp_null: |header, claims| claims["exp"] = Value::Null;
    exp_string: |header, claims| claims["exp"] = json!(claims["exp"].to_string());
    exp_negative: |header, claims| claims["exp"] = json!(-1);
    exp_passed_by_the_leeway: |header, claims| {
        claims["exp"] = json!(claims["iat"].as_u64().unwrap() - 30);
    };
    nbf_beyond_the_leeway: |header, claims| {
        claims["nbf"] = json!(claims["iat"].as_u64().unwrap() + 31);
    };
    nbf_string: |header, claims| claims["nbf"] = json!("1");
    iat_beyond_the_leeway: |header, claims| {
        claims["iat"] = json!(claims["iat"].as_u64().unwrap() + 31);
    };
    iat_string: |header, claims| claims["iat"] = json!("1");

    sub_missing: |header, claims| drop_member(claims, "sub");
    sub_empty: |header, claims| claims["sub"] = json!("");
    sub_null: |header, claims| claims["sub"] = Value::Null;
    sub_number: |header, claims| claims["sub"] = json!(7);
    scope_number: |header, claims| claims["scope"] = json!(7);
    client_id_number: |header, claims| claims["client_id"] = json!(7);

    typ_of_an_id_token: |header, claims| header["typ"] = json!("JWT");
    typ_of_an_id_jag: |header, claims| header["typ"] = json!("oauth-id-jag+jwt");
    typ_of_a_logout_token: |header, claims| header["typ"] = json!("logout+jwt");
    typ_missing: |header, claims| drop_member(header, "typ");
    typ_number: |header, claims| header["typ"] = json!(1);

    crit_unknown: |header, claims| {
        header["crit"] = json!(["x"]);
        header["x"] = json!(1);
    };
    crit_b64: |header, claims| {
        header["crit"] = json!(["b64"]);
        header["b64"] = json!(false);
    };
    crit_empty: |header, claims| header["crit"] = json!([]);

    alg_none: |header, claims| header["alg"] = json!("none");
    alg_missing: |header, claims| drop_member(header, "alg");
    alg_number: |header, claims| header["alg"] = json!(256);
    alg_symmetric: |header, claims| header["alg"] = json!("HS256");
    alg_of_another_kind_of_key: |header, claims| header["alg"] = json!("ES256");
    alg_of_the_same_kind_that_did_not_sign: |header, claims| header["alg"] = json!("PS256");
    alg_in_lower_case: |header, claims| header["alg"] = json!("rs256");

    kid_unknown: |header, claims| header["kid"] = json!("nobody's");
    kid_of_another_key: |header, claims| header["kid"] = json!("ec");
    kid_number: |header, claims| header["kid"] = json!(1);
    kid_that_is_a_path: |header, claims| header["kid"] = json!("../../dev/null");

    a_token_bound_to_a_key: |header, claims| claims["cnf"] = json!({ "jkt": "x" });
    claims_that_are_a_list: |header, claims| *claims = json!([]);
    a_header_that_is_a_list: |header, claims| *header = json!([]);
}

#[tokio::test]
async fn a_key_in_the_token_itself_is_not_used() {
    let world = world().await;
    for (name, value) in [
        ("jwk", Signer::Stranger.jwk()),
        ("jku", json!(format!("{}/other-jwks", world.issuer.url))),
        ("x5u", json!(format!("{}/other-x5u", world.issuer.url))),
    ] {
        let mut header = Signer::Stranger.header();
        header[name] = value;
        assert_invalid(&world.with_token(&Signer::Stranger.sign(&header, &world.claims())).await);
    }
    assert_eq!(world.issuer.hits("/other-jwks") + world.issuer.hits("/other-x5u"), 0);
}

#[tokio::test]
async fn the_public_key_is_not_taken_for_a_shared_secret() {
    let world = world().await;
    for kid in ["rsa", "ec", "oct"] {
        let header = json!({ "alg": "HS256", "typ": "at+jwt", "kid": kid });
        assert_invalid(&world.with_token(&Signer::confused(&header, &world.claims())).await);
    }
}

#[tokio::test]
async fn a_symmetric_key_in_the_set_is_not_used() {
    let world = world().await;
    let secret = part("0123456789abcdef0123456789abcdef");
    world.issuer.set_keys(&[
        Signer::Rsa.jwk(),
        json!({ "kty": "oct", "k": secret, "alg": "HS256", "kid": "oct", "use": "sig" }),
    ]);
    let header = json!({ "alg": "HS256", "typ": "at+jwt", "kid": "oct" });
    assert_invalid(&world.with_token(&Signer::confused(&header, &world.claims())).await);
}

#[tokio::test]
async fn somebody_elses_signature_is_refused() {
    let world = world().await;
    assert_invalid(&world.with_token(&Signer::Stranger.token(&world.claims())).await);
}

#[tokio::test]
async fn a_token_changed_anywhere_is_refused() {
    let world = world().await;
    let good = world.token(|_| {});
    assert_eq!(world.with_token(&good).await.status, 200);
    let parts: Vec<_> = good.split('.').collect();
    let other = part(
        json!({ "iss": world.issuer.url, "sub": "mallory", "aud": RESOURCE, "exp": 9e12 })
            .to_string(),
    );
    for bad in [
        format!("{}.{other}.{}", parts[0], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{}.{}.{}A", parts[0], parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], parts[1], &parts[2][..parts[2].len() - 4]),
        format!("{good}.x"),
        format!("{good}.x.y"),
        format!(".{}", parts[1..].join(".")),
        "..".to_owned(),
        "a.b.c".to_owned(),
        "a.b.c.d.e".to_owned(),
        "x".to_owned(),
    ] {
        assert_invalid(&world.with_token(&bad).await);
    }
}

#[tokio::test]
async fn a_claim_given_twice_does_not_confuse() {
    let world = world().await;
    let claims = world.claims().to_string();
    let twice = claims.replacen('{', r#"{"aud":"https://other.example","#, 1);
    let last_wins = Signer::Rsa.sign_text(&Signer::Rsa.header().to_string(), &twice);
    // RFC 7519, section 4: such a token is either refused, or the last claim counts.
    assert!(matches!(world.with_token(&last_wins).await.status, 200 | 401));
    let twice = claims.replacen('}', r#","aud":"https://other.example"}"#, 1);
    let last_wins = Signer::Rsa.sign_text(&Signer::Rsa.header().to_string(), &twice);
    assert_invalid(&world.with_token(&last_wins).await);
}

#[tokio::test]
async fn a_token_just_within_the_rules_is_accepted() {
    let world = world().await;
    let now = world.claims()["iat"].as_u64().unwrap();
    let later = |seconds: u64| json!(now + seconds);
    for change in [
        json!({ "aud": ["https://other.example", RESOURCE] }),
        json!({ "exp": now - 29 }),
        serde_json::from_str(&format!(r#"{{"exp":{now}.5}}"#)).unwrap(),
        json!({ "nbf": later(30), "iat": later(30) }),
        json!({ "scope": ["mcp:read"] }),
    ] {
        let token = world.token(|claims| {
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        });
        assert_eq!(world.with_token(&token).await.status, 200, "{change}");
    }
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        let mut header = Signer::Rsa.header();
        header["typ"] = json!(typ);
        let answer = world.with_token(&Signer::Rsa.sign(&header, &world.claims())).await;
        assert_eq!(answer.status, 200, "{typ}");
    }
}

#[tokio::test]
async fn every_kind_of_key_is_accepted() {
    let world = world().await;
    for signer in [Signer::Rsa, Signer::Ec, Signer::Ed] {
        let answer = world.with_token(&signer.token(&world.claims())).await;
        assert_eq!(answer.status, 200, "{signer:?} {answer:?}");
    }
    // RFC 9864 gives EdDSA with this curve a name of its own.
    let mut header = Signer::Ed.header();
    header["alg"] = json!("Ed25519");
    assert_eq!(world.with_token(&Signer::Ed.sign(&header, &world.claims())).await.status, 200);
}

#[tokio::test]
async fn a_token_without_a_kid_is_accepted_where_one_usable_key_fits() {
    let world = world().await;
    let mut unusable = Signer::Ec.jwk();
    unusable["use"] = json!("enc");
    world.issuer.set_keys(&[unusable, Signer::Rsa.jwk(), json!({ "kty": "oct", "k": "AA" })]);
    let mut header = Signer::Rsa.header();
    drop_member(&mut header, "kid");
    let token = |world: &World| Signer::Rsa.sign(&header, &world.claims());
    assert_eq!(world.with_token(&token(&world)).await.status, 200);
    // Keys of other algorithms do not matter.
    let several = super::world().await;
    assert_eq!(several.with_token(&token(&several)).await.status, 200);
    let mut second = Signer::Rsa.jwk();
    second["kid"] = json!("second");
    let ambiguous = super::world().await;
    ambiguous.issuer.set_keys(&[Signer::Rsa.jwk(), second]);
    assert_invalid(&ambiguous.with_token(&token(&ambiguous)).await);
}

#[tokio::test]
async fn a_token_that_expires_is_refused_although_it_was_accepted_before() {
    let world = world().await;
    let token = world.token(|_| {});
    assert_eq!(world.with_token(&token).await.status, 200);
    world.server.clock.advance(std::time::Duration::from_secs(600 + 29));
    assert_eq!(world.with_token(&token).await.status, 200);
    world.server.clock.advance(std::time::Duration::from_secs(1));
    assert_invalid(&world.with_token(&token).await);
}

#[tokio::test]
async fn the_configuration_allows_an_issuer_the_old_type_but_no_id_tokens() {
    let world = world_with(|config| config.auth.issuers[0].any_typ = true).await;
    let mut header = Signer::Rsa.header();
    for typ in [json!("JWT"), Value::Null] {
        header["typ"] = typ.clone();
        if typ.is_null() {
            drop_member(&mut header, "typ");
        }
        let token = Signer::Rsa.sign(&header, &world.claims());
        assert_eq!(world.with_token(&token).await.status, 200, "{typ}");
    }
    for (name, value) in [("nonce", json!("n")), ("at_hash", json!("h"))] {
        let mut claims = world.claims();
        claims[name] = value;
        assert_invalid(&world.with_token(&Signer::Rsa.sign(&header, &claims)).await);
    }
    header["typ"] = json!("oauth-id-jag+jwt");
    assert_invalid(&world.with_token(&Signer::Rsa.sign(&header, &world.claims())).await);
}

#[tokio::test]
async fn the_configuration_names_more_audiences_and_the_scope_claim_of_an_issuer() {
    let world = world_with(|config| {
        config.auth.issuers[0].audiences = vec!["api://larder".into()];
        config.auth.issuers[0].scope_claim = Some("scp".into());
        config.auth.required_scopes = vec!["mcp:read".into()];
    })
    .await;
    let token = world.token(|claims| {
        claims["aud"] = json!("api://larder");
        claims["scp"] = json!(["mcp:read"]);
    });
    assert_eq!(world.with_token(&token).await.status, 200);
    assert_eq!(world.with_token(&world.token(|_| {})).await.status, 403);
}

#[tokio::test]
async fn one_issuer_cannot_speak_for_another() {
    let other = super::issuer::Issuer::start().await;
    let url = other.url.clone();
    let world = world_with(|config| {
        let issuer = larder::config::IssuerConfig { issuer: url, ..Default::default() };
        config.auth.issuers.push(issuer);
    })
    .await;
    other.set_keys(&[Signer::Stranger.jwk()]);
    let good = world.with_token(&world.token(|_| {})).await;
    assert_eq!(good.status, 200);
    // It names the first issuer, and the key is that of the other.
    assert_invalid(&world.with_token(&Signer::Stranger.token(&world.claims())).await);
    let mut claims = world.claims();
    claims["iss"] = json!(other.url);
    assert_eq!(world.with_token(&Signer::Stranger.token(&claims)).await.status, 200);
    assert_invalid(&world.with_token(&Signer::Rsa.token(&claims)).await);
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    let world = world().await;
    let mut metadata = world.issuer.metadata();
    metadata["issuer"] = json!("http://127.0.0.1:1");
    world.issuer.set_reply("/.well-known/oauth-authorization-server", Reply::Json(metadata));
    let answer = world.with_token(&world.token(|_| {})).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(world.issuer.hits("/jwks"), 0);
}
