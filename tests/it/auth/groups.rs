//! Resources that are shared with a group: the groups come from verified tokens.

use larder::config::IssuerConfig;
use serde_json::{Value, json};

use super::{
    World,
    issuer::{Issuer, Reply},
    opaque::{active, opaque},
    world, world_with,
};
use crate::{
    changes::legacy::{subscribe, until_marked},
    sharing::links::{reads, share},
    support::{Legacy, Modern},
};

impl World {
    /// A client whose token has this subject and this `groups` claim.
    fn member(&self, subject: &str, groups: Value) -> Modern {
        let token = self.token(|claims| {
            claims["sub"] = json!(subject);
            claims["groups"] = groups;
        });
        Modern::bearing(&self.server, &token)
    }

    /// Alice, and the link to a resource that she shares with the analysts.
    async fn shared(&self) -> (Modern, String) {
        let alice = self.member("alice", json!([]));
        alice.create(json!({ "uri": "x:report", "text": "the report" })).await;
        let link = share(&alice, "x:report", "group", Some("analysts")).await;
        (alice, link)
    }
}

#[tokio::test]
async fn members_by_the_groups_claim_can_read_and_others_cannot() {
    let world = world().await;
    let (alice, link) = world.shared().await;
    assert!(reads(&alice, &link, "the report").await, "the sharer cannot read by the link");
    for (groups, is_shared) in [
        (json!(["others", "analysts"]), true),
        (json!(["others"]), false),
        (json!(["Analysts", "analysts "]), false),
        (json!([]), false),
        (json!(null), false),
        // Anything but a list of strings names no group.
        (json!("analysts"), false),
        (json!({ "analysts": true }), false),
        (json!([["analysts"], 7]), false),
    ] {
        let bob = world.member("bob", groups.clone());
        assert_eq!(reads(&bob, &link, "the report").await, is_shared, "{groups}");
    }
    // A scope of the same name is not a group.
    let scoped = Modern::bearing(&world.server, &world.token_for("carol", "analysts mcp:read"));
    assert!(!reads(&scoped, &link, "the report").await);
}

#[tokio::test]
async fn the_configuration_names_the_claim() {
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
async fn members_by_introspection_can_read_and_others_cannot() {
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
        world.introspected(Reply::Json(response));
        let client = Modern::bearing(&world.server, &format!("opaque-{subject}"));
        assert_eq!(reads(&client, &link, "the report").await, is_shared, "{subject}");
    }
}

#[tokio::test]
async fn a_group_or_scope_of_another_issuer_is_a_different_one() {
    let other = Issuer::start().await;
    let world = world_with(|config| {
        let issuer = IssuerConfig { issuer: other.url.clone(), ..IssuerConfig::default() };
        config.auth.issuers.push(issuer);
    })
    .await;
    let (alice, by_group) = world.shared().await;
    let by_scope = share(&alice, "x:report", "scope", Some("reports:read")).await;
    let groups = json!(["analysts"]);
    let scoped = |world: &World| {
        Modern::bearing(&world.server, &world.token_for("carol", "mcp:read reports:read"))
    };
    assert!(reads(&world.member("bob", groups.clone()), &by_group, "the report").await);
    assert!(reads(&scoped(&world), &by_scope, "the report").await);
    let theirs = World { issuer: other, ..world };
    assert!(!reads(&theirs.member("bob", groups), &by_group, "the report").await);
    assert!(!reads(&scoped(&theirs), &by_scope, "the report").await);
}

#[tokio::test]
async fn former_members_are_not_notified_in_the_same_session() {
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
