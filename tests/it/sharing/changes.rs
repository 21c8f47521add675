//! Notifications about shared resources, by their links, in both eras.

use serde_json::{Value, json};

use crate::{
    changes::legacy::{subscribe, until_marked},
    sharing::links::{Callers, share},
    support::{Events, Legacy, Modern, RedisServer},
};

/// How often [`Listener::heard`] can be called.
const MARKS: usize = 5;

/// A caller who subscribes to a link in both eras, if the caller can read it.
struct Listener {
    modern: Modern,
    stream: Events,
    legacy: Legacy,
    own: Events,
    marks: usize,
}

impl Listener {
    async fn of(callers: &Callers, name: &str, modern: &Modern, link: &str) -> Self {
        let marks: Vec<_> = (0..MARKS).map(mark).collect();
        let with_link = [&[link.to_owned()], &marks[..]].concat();
        let asked = json!({ "notifications": { "resourceSubscriptions": with_link } });
        let mut stream = modern.stream(1, "subscriptions/listen", asked).await;
        let acknowledged = stream.message().await;
        let honoured = &acknowledged["params"]["notifications"]["resourceSubscriptions"];
        let legacy = Legacy::bearing(&callers.server, name).await;
        // A subscription is accepted exactly if a read is.
        let read = legacy.send("resources/read", json!({ "uri": link })).await;
        let subscribed = legacy.send("resources/subscribe", json!({ "uri": link })).await;
        if read.json()["error"].is_null() {
            assert_eq!(*honoured, json!(with_link));
            assert_eq!(subscribed.result(), json!({}));
        } else {
            assert_eq!(*honoured, json!(marks));
            assert_eq!(subscribed.error().to_string(), read.error().to_string());
        }
        let own = legacy.listen().await;
        Self { modern: modern.clone(), stream, legacy, own, marks: 0 }
    }

    /// The number of notifications about the link since the last call, in the modern and the
    /// legacy era.
    async fn heard(&mut self, link: &str) -> (usize, usize) {
        let mark = mark(self.marks);
        self.marks += 1;
        subscribe(&self.legacy, &mark).await;
        self.modern.create(json!({ "uri": mark, "text": "one" })).await;
        self.modern.call("update_resource", json!({ "uri": mark, "text": "two" })).await.text();
        let modern = until(&mut self.stream, &mark).await;
        let own = until(&mut self.own, &mark).await;
        assert!(modern.iter().chain(&own).all(|uri| uri == link), "{modern:?} {own:?}");
        (modern.len(), own.len())
    }
}

/// A resource of the listener, whose notification comes last.
fn mark(n: usize) -> String {
    format!("x:mark-{n}")
}

/// The URIs of all notifications before that of the mark.
async fn until(events: &mut Events, mark: &str) -> Vec<String> {
    let mut updated = Vec::new();
    loop {
        let event = events.next().await.unwrap();
        let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
        match message["params"]["uri"].as_str() {
            Some(uri) if uri == mark => return updated,
            Some(uri) => updated.push(uri.to_owned()),
            None => {}
        }
    }
}

async fn update(alice: &Modern, text: &str) {
    alice.call("update_resource", json!({ "uri": "x:report", "text": text })).await.text();
}

/// The link to a report that Alice shares with a group.
async fn report(callers: &Callers) -> String {
    callers.alice.create(json!({ "uri": "x:report", "text": "one" })).await;
    callers.shared("x:report", "group", Some("analysts")).await
}

#[tokio::test]
async fn only_the_audience_of_a_link_is_notified_of_an_update() {
    let callers = Callers::new().await;
    let link = report(&callers).await;
    let Callers { alice, bob, carol, .. } = &callers;
    let mut in_group = Listener::of(&callers, "bob", bob, &link).await;
    let mut outside = Listener::of(&callers, "carol", carol, &link).await;
    let mut sharer = Listener::of(&callers, "alice", alice, &link).await;
    update(alice, "two").await;
    for listener in [&mut in_group, &mut sharer] {
        assert_eq!(listener.heard(&link).await, (1, 1));
    }
    assert_eq!(outside.heard(&link).await, (0, 0));
    // Nobody is notified of other resources of hers, nor by the resource's own URI.
    let own = json!({ "resourceSubscriptions": ["x:report", mark(1)] });
    let mut by_name = bob.listen(2, own).await;
    subscribe(&in_group.legacy, "x:report").await;
    alice.create(json!({ "uri": "x:other", "text": "one" })).await;
    update(alice, "three").await;
    assert_eq!(in_group.heard(&link).await, (1, 1));
    assert_eq!(until(&mut by_name, &mark(1)).await, [""; 0]);
    // After unsubscribing no notification comes.
    in_group.legacy.send("resources/unsubscribe", json!({ "uri": link })).await.result();
    update(alice, "four").await;
    assert_eq!(in_group.heard(&link).await, (1, 0));
}

#[tokio::test]
async fn no_notification_comes_after_a_link_or_its_resource_is_deleted() {
    let callers = Callers::new().await;
    let Callers { server, alice, bob, .. } = &callers;
    let delete = async |uri: &str| {
        alice.call("delete_resource", json!({ "uri": uri })).await.text();
    };
    let link = report(&callers).await;
    let mut listener = Listener::of(&callers, "bob", bob, &link).await;
    update(alice, "two").await;
    assert_eq!(listener.heard(&link).await, (1, 1));
    delete(&link).await;
    update(alice, "three").await;
    assert_eq!(listener.heard(&link).await, (0, 0), "it was taken back");

    // A pending notification is not delivered after the link is deleted.
    let link = share(alice, "x:report", "group", Some("analysts")).await;
    let absent = Legacy::bearing(server, "bob").await;
    subscribe(&absent, &link).await;
    update(alice, "four").await;
    delete(&link).await;
    let mut own = absent.listen().await;
    let heard = until_marked(&absent, &mut own).await;
    assert_eq!(heard.iter().flatten().collect::<Vec<_>>(), [""; 0]);

    let link = share(alice, "x:report", "everyone", None).await;
    let mut listener = Listener::of(&callers, "bob", bob, &link).await;
    delete("x:report").await;
    server.clock.advance(std::time::Duration::from_secs(1));
    alice.create(json!({ "uri": "x:report", "text": "private" })).await;
    update(alice, "still private").await;
    assert_eq!(listener.heard(&link).await, (0, 0), "another of that name is not shared");
}

#[tokio::test]
async fn nonexistent_links_are_not_notified() {
    let callers = Callers::new().await;
    let link = report(&callers).await;
    let missing = link[..link.rfind('/').unwrap()].to_owned() + "/0123456789abcdef";
    for uri in [missing.as_str(), "larder://shared/nobody/1"] {
        let mut listener = Listener::of(&callers, "bob", &callers.bob, uri).await;
        update(&callers.alice, "two").await;
        assert_eq!(listener.heard(uri).await, (0, 0));
    }
}

#[tokio::test]
async fn an_update_on_one_instance_is_notified_once_on_another() {
    let redis = RedisServer::start().await;
    let server = async || {
        let url = redis.url();
        Callers::configured(|config| {
            config.store.url = url;
            config.redis.migrate = true;
        })
        .await
    };
    let (a, b) = (server().await, server().await);
    let link = report(&a).await;
    let mut on_b = Listener::of(&b, "bob", &b.bob, &link).await;
    let elsewhere = on_b.legacy.at(&a.server.url);
    let later = Legacy::bearing(&b.server, "bob").await;
    subscribe(&later, &link).await;
    update(&a.alice, "two").await;
    assert_eq!(on_b.heard(&link).await, (1, 1));
    // The same if another instance serves the session.
    on_b.own = elsewhere.listen().await;
    update(&b.alice, "three").await;
    assert_eq!(on_b.heard(&link).await, (1, 1));
    // The same for a session without a stream at the time of the update.
    let later = later.at(&a.server.url);
    let mut own = later.listen().await;
    let heard = until_marked(&later, &mut own).await;
    assert!(heard.iter().flatten().all(|uri| *uri == link), "{heard:?}");
    assert!(heard.iter().flatten().count() > 0);
    a.alice.call("delete_resource", json!({ "uri": link })).await.text();
    update(&a.alice, "four").await;
    assert_eq!(on_b.heard(&link).await, (0, 0));
}
