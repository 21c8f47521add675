//! Links: who can read a shared resource, and what a link allows.

use larder::config::{AuthMode, Config, TokenConfig};
use serde_json::json;

use crate::support::{Modern, Server, sha256};

/// Alice, who shares; and others, with and without scope and group.
pub(crate) struct Callers {
    pub(crate) server: Server,
    pub(crate) alice: Modern,
    /// In the group, without the scope.
    pub(crate) bob: Modern,
    /// With the scope, not in the group.
    pub(crate) carol: Modern,
    /// With neither.
    dave: Modern,
}

impl Callers {
    pub(crate) async fn new() -> Self {
        Self::configured(|_| {}).await
    }

    /// The same with a configuration.
    pub(crate) async fn configured(change: impl FnOnce(&mut Config)) -> Self {
        let server = Server::configured(|setup| {
            change(&mut setup.config);
            setup.config.auth.mode = AuthMode::Static;
            let token = |name: &str, scopes: &[&str], groups: &[&str]| TokenConfig {
                name: name.into(),
                sha256: sha256(name),
                scopes: scopes.iter().map(ToString::to_string).collect(),
                groups: groups.iter().map(ToString::to_string).collect(),
                expires: None,
            };
            setup.config.auth.tokens = vec![
                token("alice", &[], &[]),
                token("bob", &[], &["analysts", "others"]),
                token("carol", &["reports:read"], &["others"]),
                token("dave", &[], &[]),
            ];
        })
        .await;
        let client = |name: &str| Modern::bearing(&server, name);
        let [alice, bob, carol, dave] = ["alice", "bob", "carol", "dave"].map(client);
        Self { server, alice, bob, carol, dave }
    }

    /// The link to a resource that Alice shares.
    pub(crate) async fn shared(&self, uri: &str, with: &str, name: Option<&str>) -> String {
        share(&self.alice, uri, with, name).await
    }
}

/// The link to a resource that a caller shares.
pub(crate) async fn share(sharer: &Modern, uri: &str, with: &str, name: Option<&str>) -> String {
    let mut arguments = json!({ "uri": uri, "with": with });
    if let Some(name) = name {
        arguments["name"] = name.into();
    }
    let said = sharer.call("share_resource", arguments).await.text();
    said.lines().next().unwrap().to_owned()
}

/// Whether a client can read `text` by a link, both by `resources/read` and by the tool. If
/// not, the error must be the same as for a link that does not exist.
pub(crate) async fn reads(client: &Modern, link: &str, text: &str) -> bool {
    let answer = client.send("resources/read", json!({ "uri": link })).await;
    let read = client.call("read_resource", json!({ "uri": link })).await;
    if answer.json()["error"].is_null() {
        let content = &answer.result()["contents"][0];
        assert_eq!((content["text"].as_str(), content["uri"].as_str()), (Some(text), Some(link)));
        assert!(read.text().ends_with(text), "{read:?}");
        return true;
    }
    let missing = link[..link.rfind('/').unwrap()].to_owned() + "/0123456789abcdef";
    let nothing = client.send("resources/read", json!({ "uri": missing })).await.error();
    let error = answer.error();
    assert_eq!(error.to_string(), nothing.to_string().replace(&missing, link));
    assert!(read.failure().contains("not found"), "{read:?}");
    false
}

#[tokio::test]
async fn only_the_audience_of_a_link_can_read() {
    let callers = Callers::new().await;
    let Callers { alice, bob, carol, dave, .. } = &callers;
    alice.create(json!({ "uri": "x:report", "text": "the report" })).await;
    for (with, name, readers) in [
        ("everyone", None, [true, true, true]),
        ("group", Some("analysts"), [true, false, false]),
        ("scope", Some("reports:read"), [false, true, false]),
        ("group", Some("nobody"), [false, false, false]),
    ] {
        let link = callers.shared("x:report", with, name).await;
        assert!(link.starts_with("larder://shared/"), "{link}");
        assert!(reads(alice, &link, "the report").await, "the sharer cannot read by the link");
        let mut read = [false; 3];
        for (at, client) in [bob, carol, dave].into_iter().enumerate() {
            read[at] = reads(client, &link, "the report").await;
        }
        assert_eq!(read, readers, "{with} {name:?}");
    }
    // By its own URI it is still private.
    let own = bob.send("resources/read", json!({ "uri": "x:report" })).await.error();
    assert_eq!(own["code"], -32602, "{own}");
}

#[tokio::test]
async fn a_link_allows_reading_and_searching_only() {
    let callers = Callers::new().await;
    let Callers { alice, bob, .. } = &callers;
    alice.create(json!({ "uri": "x:log", "text": "one\ntwo\nthree" })).await;
    alice.create(json!({ "uri": "x:private", "text": "secret two" })).await;
    let link = callers.shared("x:log", "everyone", None).await;

    let found = json!({ "uri": link, "query": "two" });
    assert!(bob.call("search_resource", found).await.text().contains("2: two"));
    let described = bob.call("describe_resource", json!({ "uri": link })).await.text();
    assert!(described.contains("lines: 3 lines") && !described.contains("x:log"), "{described}");
    assert_eq!(bob.read(&format!("{link}?lines=3")).await["text"], "three");
    // It is neither listed nor found among the reader's own resources.
    assert!(bob.list("resources/list", "resources").await.iter().all(|r| r["uri"] != link));
    let own = bob.call("search_resources", json!({ "query": "two" })).await.text();
    assert!(!own.contains("x:log") && !own.contains(&link), "{own}");

    let update = bob.call("update_resource", json!({ "uri": link, "text": "changed" })).await;
    update.failure();
    let create = bob.call("create_resource", json!({ "uri": link, "text": "changed" })).await;
    create.failure();
    bob.call("delete_resource", json!({ "uri": link })).await;
    bob.call("delete_resource", json!({ "uri": "x:log" })).await;
    let shared = bob.call("share_resource", json!({ "uri": link, "with": "everyone" })).await;
    shared.failure();
    assert!(reads(bob, &link, "one\ntwo\nthree").await, "a reader has changed it");

    // Updates and revisions can be read by the link.
    alice.call("update_resource", json!({ "uri": "x:log", "text": "four" })).await.text();
    assert!(reads(bob, &link, "four").await);
    assert_eq!(bob.read(&format!("{link}?revision=1")).await["text"], "one\ntwo\nthree");
    // A new link begins with the present revision, unless more is asked for.
    let link = share(alice, "x:log", "everyone", None).await;
    let first = json!({ "uri": link, "revision": 1 });
    assert!(bob.call("read_resource", first).await.failure().contains("no revision 1"));
    let all = json!({ "uri": "x:log", "with": "everyone", "earlier_revisions": true });
    let all = alice.call("share_resource", all).await.text();
    let all = all.lines().next().unwrap();
    assert_eq!(bob.read(&format!("{all}?revision=1")).await["text"], "one\ntwo\nthree");
}

#[tokio::test]
async fn a_link_ends_when_it_or_its_resource_is_deleted_or_expires() {
    let callers = Callers::new().await;
    let Callers { server, alice, bob, .. } = &callers;
    let create = async |uri: &str, ttl: u64| {
        alice.create(json!({ "uri": uri, "text": "text", "ttl": ttl })).await;
        let link = callers.shared(uri, "everyone", None).await;
        assert!(reads(bob, &link, "text").await);
        link
    };
    let link = create("x:taken-back", 60).await;
    let listed = alice.list("resources/list", "resources").await;
    assert!(
        listed.iter().any(|r| r["uri"] == link.as_str()),
        "the link is not listed to its owner"
    );
    alice.call("delete_resource", json!({ "uri": link })).await.text();
    assert!(!reads(bob, &link, "text").await);
    assert_eq!(alice.read("x:taken-back").await["text"], "text");

    let link = create("x:deleted", 60).await;
    alice.call("delete_resource", json!({ "uri": "x:deleted" })).await.text();
    assert!(!reads(bob, &link, "text").await);
    // A new resource of the same URI is not shared.
    server.clock.advance(std::time::Duration::from_secs(1));
    alice.create(json!({ "uri": "x:deleted", "text": "private" })).await;
    assert!(!reads(bob, &link, "private").await);

    let link = create("x:expired", 60).await;
    server.clock.advance(std::time::Duration::from_secs(60));
    assert!(!reads(bob, &link, "text").await);
}

#[tokio::test]
async fn invalid_arguments_of_share_resource_are_named() {
    let callers = Callers::new().await;
    callers.alice.create(json!({ "uri": "x:a", "text": "text" })).await;
    for (arguments, said) in [
        (json!({ "uri": "x:a", "with": "group" }), "name is missing"),
        (json!({ "uri": "x:a", "with": "everyone", "name": "a" }), "leave name out"),
        (json!({ "uri": "x:none", "with": "everyone" }), "not found"),
        (json!({ "uri": "docs://welcome", "with": "everyone" }), "not found"),
    ] {
        let failure = callers.alice.call("share_resource", arguments).await.failure();
        assert!(failure.contains(said), "{failure}");
    }
}
