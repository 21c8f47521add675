//! Announcements on the standalone stream, and watches.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::StreamExt;
use larder_identity::{Owner, Principal};
use larder_protocol::Announcement;

use super::{Harness, Stage, begin, in_time, next};
use crate::session::{Deliveries, Delivery, EventId, SessionError, SessionLimits, Sessions, Watch};

/// An announcement that every session receives. It shows that nothing else came before it.
const LIST: Announcement = Announcement::ResourceListChanged;

fn updated(uri: &str) -> Announcement {
    Announcement::ResourceUpdated { uri: uri.into() }
}

async fn announce(sessions: &Arc<dyn Sessions>, announcement: &Announcement) {
    sessions.announce(&Principal::Local.owner(), announcement, &[]).await;
}

/// Expects these announcements next, in this order.
async fn expect_next(deliveries: &mut Deliveries, announcements: &[Announcement]) {
    for announcement in announcements {
        let expected = String::from_utf8(announcement.encode(None).to_vec()).expect("text");
        assert_eq!(next(deliveries).await, Some(expected));
    }
}

async fn id_of_next(deliveries: &mut Deliveries) -> EventId {
    match in_time(deliveries.next()).await {
        Some(Ok(Delivery::Event(event))) => event.id,
        other => panic!("expected an event, got {other:?}"),
    }
}

/// Announcements without a connection are delivered to the next connection.
pub async fn announcements_wait_for_a_connection(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    stage.other.subscribe(&stage.session, "a:1").await.expect("the subscription is added");

    announce(&stage.one, &updated("a:1")).await;
    announce(&stage.other, &LIST).await;
    let mut events = stage.standalone().await;
    expect_next(&mut events, &[updated("a:1"), LIST]).await;

    announce(&stage.one, &updated("a:1")).await;
    expect_next(&mut events, &[updated("a:1")]).await;
}

/// A message for a connection that is there now is delivered in its order, and not without one.
pub async fn a_message_is_sent_to_a_present_connection_alone(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let Stage { one, other, session } = &stage;
    assert_eq!(one.send_now(session, "nobody".into()).await, Ok(false));

    let mut events = stage.standalone().await;
    for sessions in [one, other] {
        announce(sessions, &LIST).await;
        assert_eq!(sessions.send_now(session, "now".into()).await, Ok(true));
        expect_next(&mut events, &[LIST]).await;
        assert_eq!(next(&mut events).await.as_deref(), Some("now"));
    }
}

/// A repeated announcement is not delivered again until the first one is.
pub async fn a_repeated_announcement_waits_until_the_first_is_delivered(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    stage.one.subscribe(&stage.session, "a:1").await.expect("the subscription is added");

    for sessions in [&stage.one, &stage.other] {
        announce(sessions, &updated("a:1")).await;
    }
    announce(&stage.one, &LIST).await;

    let mut events = stage.standalone().await;
    expect_next(&mut events, &[updated("a:1"), LIST]).await;

    announce(&stage.one, &LIST).await;
    expect_next(&mut events, &[LIST]).await;
}

/// A connection with a cursor continues after the cursor, any other one after the last delivery.
pub async fn a_connection_without_a_cursor_continues_where_the_last_one_stopped(
    harness: &dyn Harness,
) {
    let limits = SessionLimits { events_per_stream: 2, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    for uri in ["a:1", "a:2", "a:3", "a:4"] {
        stage.one.subscribe(&stage.session, uri).await.expect("the subscription is added");
    }

    announce(&stage.one, &updated("a:1")).await;
    announce(&stage.one, &updated("a:2")).await;

    let mut first = stage.standalone().await;
    let seen = id_of_next(&mut first).await;
    let mut second = stage.standalone().await;
    expect_next(&mut second, &[updated("a:2")]).await;
    let mut resumed = stage.one.follow(&stage.session, &seen).await.expect("the event is kept");
    expect_next(&mut resumed, &[updated("a:2")]).await;
    drop(resumed);

    // A connection without a cursor silently misses trimmed messages.
    for uri in ["a:1", "a:2", "a:3", "a:4"] {
        announce(&stage.one, &updated(uri)).await;
    }

    let mut third = stage.standalone().await;
    expect_next(&mut third, &[updated("a:3"), updated("a:4")]).await;

    let refused = stage.one.follow(&stage.session, &seen).await.err();
    assert_eq!(refused, Some(SessionError::Trimmed(seen.to_string())));
}

/// A session receives updates of the resources that it subscribes to, until it unsubscribes.
pub async fn only_subscribed_resources_are_announced(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut events = stage.standalone().await;

    stage.one.subscribe(&stage.session, "a:1").await.expect("the subscription is added");
    announce(&stage.one, &updated("a:2")).await;
    announce(&stage.one, &updated("a:1")).await;
    expect_next(&mut events, &[updated("a:1")]).await;

    stage.other.unsubscribe(&stage.session, "a:1").await.expect("the subscription is removed");
    announce(&stage.one, &updated("a:1")).await;

    let foreign = Owner::new("somebody else");
    stage.one.announce(&foreign, &Announcement::ToolListChanged, &[]).await;
    announce(&stage.one, &LIST).await;
    expect_next(&mut events, &[LIST]).await;
}

/// A change is identified by its ID. Two changes with equal announcements are announced twice.
pub async fn a_change_is_announced_once_by_several_processes(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let owner = Principal::Local.owner();
    let mut events = stage.standalone().await;

    for (change, announcement) in [("first", &LIST), ("second", &Announcement::ToolListChanged)] {
        stage.one.announce(&owner, announcement, &[change.into()]).await;
        expect_next(&mut events, std::slice::from_ref(announcement)).await;
        stage.other.announce(&owner, announcement, &[change.into()]).await;
    }

    stage.one.announce(&owner, &LIST, &["third".into()]).await;
    expect_next(&mut events, &[LIST]).await;
}

/// Sessions of every owner receive an announcement to all.
pub async fn an_announcement_to_all_reaches_every_session(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let session = begin(&stage.other).await.expect("another session");
    let also = Stage { session, one: stage.one.clone(), other: stage.other.clone() };

    stage.one.announce_to_all(&Announcement::PromptListChanged).await;
    for stage in [&stage, &also] {
        expect_next(&mut stage.standalone().await, &[Announcement::PromptListChanged]).await;
    }
}

/// A session may have a limited number of subscriptions. Subscribing twice counts once.
pub async fn subscriptions_are_limited(harness: &dyn Harness) {
    let limits = SessionLimits { subscriptions_per_session: 1, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let Stage { one, other, session } = &stage;

    one.subscribe(session, "a:1").await.expect("there is room");
    other.subscribe(session, "a:1").await.expect("it is already added");
    let refused = other.subscribe(session, "a:2").await.err();
    assert!(matches!(refused, Some(SessionError::TooMany(_))), "{refused:?}");

    one.unsubscribe(session, "a:1").await.expect("the subscription is removed");
    other.subscribe(session, "a:2").await.expect("there is room again");
}

/// Watches are found by owner and URI, each until its own expiry.
pub async fn watches_are_found_by_all_processes_until_they_expire(harness: &dyn Harness) {
    let [one, other] = harness.processes(SessionLimits::default()).await;
    let tick = harness.tick();
    let alice = Owner::new("alice");

    let by = |reader: &str, link: &str| Watch { reader: Owner::new(reader), link: link.into() };
    let watches = async |owner: &Owner, uri: &str| {
        let watches = other.watches(owner, uri).await.expect("the watches are found");
        watches.into_iter().collect::<BTreeSet<_>>()
    };
    let record = async |uri: &str, watch: Watch, ticks: u32| {
        one.watch(&alice, uri, watch, tick * ticks).await.expect("the watch is recorded");
    };

    record("a:1", by("bob", "l:1"), 4).await;
    record("a:1", by("carol b", "l:1"), 1000).await;
    record("a:1", by("bob", "l:2"), 1000).await;
    // Recording a watch twice counts once.
    record("a:1", by("bob", "l:2"), 1000).await;
    record("a:2", by("bob", "l:3"), 4).await;

    let [short, long] = [by("bob", "l:1"), by("bob", "l:2")];
    let all = BTreeSet::from([short, long.clone(), by("carol b", "l:1")]);
    assert_eq!(watches(&alice, "a:1").await, all);
    assert_eq!(watches(&alice, "a:2").await, BTreeSet::from([by("bob", "l:3")]));

    for (owner, uri) in [(&Owner::new("bob"), "a:1"), (&alice, "a:3"), (&alice, "l:1")] {
        assert_eq!(watches(owner, uri).await, BTreeSet::new(), "{uri}");
    }

    harness.pass(tick * 5).await;
    assert_eq!(watches(&alice, "a:1").await, BTreeSet::from([long, by("carol b", "l:1")]));
    assert_eq!(watches(&alice, "a:2").await, BTreeSet::new());
}
