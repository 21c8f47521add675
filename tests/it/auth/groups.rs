//! Whom resources are shared with by group, as verified tokens name them.

use larder::config::IssuerConfig;
use serde_json::{Value, json};

use super::{
    World,
    issuer::{Issuer, Said},
    opaque::{active, opaque},
    world, world_with,
};
use crate::{
    changes::legacy::{subscribe, until_marked},
    sharing::links::{reads, share},
    support::{Legacy, Modern},
};

impl World {
    /// A client with a token of that subject that names groups like that.
    fn member(&self, subject: &str, groups: Value) -> Modern {
        let token = self.token(|claims| {
            claims["sub"] = json!(subject);
            claims["groups"] = groups;
        });
        Modern::bearing(&self.server, &token)
    }

    /// Alice, and the link to what she shares with the analysts.
    async fn shared(&self) -> (Modern, String) {
        let alice = self.member("alice", json!([]));
        alice.create(json!({ "uri": "x:report", "text": "the report" })).await;
        let link = share(&alice, "x:report", "group", Some("analysts")).await;
        (alice, link)
    }
}

#[tokio::test]
async fn a_group_of_the_tokens_claim_reads_and_nobody_else() {
    let world = world().await;
    let (alice, link) = world.shared().await;
    assert!(reads(&alice, &link, "the report").await, "whoever shares may read it by the link");
    for (groups, is_shared) in [
        (json!(["others", "analysts"]), true),
        (json!(["others"]), false),
        (json!(["Analysts", "analysts "]), false),
        (json!([]), false),
        (json!(null), false),
        // No list, so it names nobody.
        (json!("analysts"), false),
        (json!({ "analysts": true }), false),
        (json!([["analysts"], 7]), false),
    ] {
        let bob = world.member("bob", groups.clone());
        assert_eq!(reads(&bob, &link, "the report").await, is_shared, "{groups}");
    }
    // A scope of that name is none.
    let scoped = Modern::bearing(&world.server, &world.token_for("carol", "analysts mcp:read"));
    assert!(!reads(&scoped, &link, "the report").await);
}

#[tokio::test]
async fn the_claim_is_the_one_that_the_configuration_names() {
    let world = world_with(|config| {
        config.auth.issuers[0].groups_claim = Some("https://corp.example/roles".into());
    })
    .await;
    let (_, link) = world.shared().await;
    assert!(!reads(&world.member("bob", json!(["analysts"])), &link, "the report").await);
    let token = world.token(|claims| {
        claims["sub"] = json!("bob");
        claims["https://corp.example/roles"] = json!(["analysts"]);
    });
    assert!(reads(&Modern::bearing(&world.server, &token), &link, "the report").await);
}

#[tokio::test]
async fn a_group_of_what_introspection_answers_reads_and_nobody_else() {
    let world = opaque().await;
    let (_, link) = world.shared().await;
    for (subject, groups, is_shared) in [
        ("bob", json!(["others", "analysts"]), true),
        ("carol", json!(["others"]), false),
        ("dave", json!("analysts"), false),
        ("erin", json!(null), false),
    ] {
        let mut response = active(&world);
        response["sub"] = json!(subject);
        response["groups"] = groups;
        world.introspected(Said::Json(response));
        let client = Modern::bearing(&world.server, &format!("opaque-{subject}"));
        assert_eq!(reads(&client, &link, "the report").await, is_shared, "{subject}");
    }
}

#[tokio::test]
async fn another_issuers_group_of_that_name_is_another() {
    let other = Issuer::start().await;
    let world = world_with(|config| {
        let issuer = IssuerConfig { issuer: other.url.clone(), ..IssuerConfig::default() };
        config.auth.issuers.push(issuer);
    })
    .await;
    let (_, link) = world.shared().await;
    let groups = json!(["analysts"]);
    assert!(reads(&world.member("bob", groups.clone()), &link, "the report").await);
    let theirs = World { issuer: other, ..world };
    assert!(!reads(&theirs.member("bob", groups), &link, "the report").await);
}

#[tokio::test]
async fn who_has_left_the_group_hears_no_more_in_the_same_session() {
    let world = world().await;
    let (alice, link) = world.shared().await;
    let update = async |text: &str| {
        alice.call("update_resource", json!({ "uri": "x:report", "text": text })).await.text();
    };
    let token = |groups: Value| {
        world.token(|claims| {
            claims["sub"] = json!("bob");
            claims["groups"] = groups;
        })
    };
    let (member, leaver) = (token(json!(["analysts"])), token(json!([])));
    let session = Legacy::bearing(&world.server, &member).await;
    subscribe(&session, &link).await;
    let mut updates = Vec::new();
    for (text, token) in [("two", &member), ("three", &leaver), ("four", &member)] {
        update(text).await;
        let session = session.with_token(token);
        let mut own = session.listen().await;
        let heard = until_marked(&session, &mut own).await;
        updates.push(heard.iter().flatten().filter(|uri| **uri == link).count());
    }
    assert_eq!(updates, [1, 0, 1]);
}
