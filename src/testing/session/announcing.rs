//! A session's own stream.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::StreamExt;

use super::{Harness, Stage, begin, next, patiently};
use crate::{
    auth::{Owner, Principal},
    protocol::Announcement,
    session::{Deliveries, Delivery, EventId, SessionError, SessionLimits, Sessions, Watch},
};

/// Wanted by all, and so the proof that nothing else came before it.
const LIST: Announcement = Announcement::ResourceListChanged;

fn updated(uri: &str) -> Announcement {
    Announcement::ResourceUpdated { uri: uri.into() }
}

async fn announce(sessions: &Arc<dyn Sessions>, announcement: &Announcement) {
    sessions.announce(&Principal::Local.owner(), announcement, None).await;
}

/// That these come next, one after the other.
async fn comes(deliveries: &mut Deliveries, announcements: &[Announcement]) {
    for announcement in announcements {
        let expected = String::from_utf8(announcement.encode(None).to_vec()).expect("text");
        assert_eq!(next(deliveries).await, Some(expected));
    }
}

async fn id_of_next(deliveries: &mut Deliveries) -> EventId {
    match patiently(deliveries.next()).await {
        Some(Ok(Delivery::Event(event))) => event.id,
        other => panic!("no event but {other:?}"),
    }
}

/// Though nobody is connected when something happens.
pub async fn announcements_wait_for_a_connection(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    stage.other.subscribe(&stage.session, "a:1").await.expect("it can be subscribed to");
    announce(&stage.one, &updated("a:1")).await;
    announce(&stage.other, &LIST).await;
    let mut events = stage.listen().await;
    comes(&mut events, &[updated("a:1"), LIST]).await;
    announce(&stage.one, &updated("a:1")).await;
    comes(&mut events, &[updated("a:1")]).await;
}

/// Saying twice that something changed says nothing more.
pub async fn a_repetition_is_said_again_only_once_it_was_seen(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    stage.one.subscribe(&stage.session, "a:1").await.expect("it can be subscribed to");
    for sessions in [&stage.one, &stage.other] {
        announce(sessions, &updated("a:1")).await;
    }
    announce(&stage.one, &LIST).await;
    let mut events = stage.listen().await;
    comes(&mut events, &[updated("a:1"), LIST]).await;
    announce(&stage.one, &LIST).await;
    comes(&mut events, &[LIST]).await;
}

/// And one with a cursor goes on after that.
pub async fn a_connection_without_a_cursor_goes_on_where_the_last_one_was(harness: &dyn Harness) {
    let limits = SessionLimits { events_per_stream: 2, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    for uri in ["a:1", "a:2", "a:3", "a:4"] {
        stage.one.subscribe(&stage.session, uri).await.expect("it can be subscribed to");
    }
    announce(&stage.one, &updated("a:1")).await;
    announce(&stage.one, &updated("a:2")).await;
    let mut first = stage.listen().await;
    let seen = id_of_next(&mut first).await;
    let mut second = stage.listen().await;
    comes(&mut second, &[updated("a:2")]).await;
    let mut resumed = stage.one.follow(&stage.session, &seen).await.expect("it is kept");
    comes(&mut resumed, &[updated("a:2")]).await;
    drop(resumed);
    // What is no longer kept is missing for all who come without a cursor.
    for uri in ["a:1", "a:2", "a:3", "a:4"] {
        announce(&stage.one, &updated(uri)).await;
    }
    let mut third = stage.listen().await;
    comes(&mut third, &[updated("a:3"), updated("a:4")]).await;
    let refused = stage.one.follow(&stage.session, &seen).await.err();
    assert_eq!(refused, Some(SessionError::Trimmed(seen.to_string())));
}

/// By each session for itself, until it takes that back.
pub async fn only_what_is_subscribed_to_is_announced(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut events = stage.listen().await;
    stage.one.subscribe(&stage.session, "a:1").await.expect("it can be subscribed to");
    announce(&stage.one, &updated("a:2")).await;
    announce(&stage.one, &updated("a:1")).await;
    comes(&mut events, &[updated("a:1")]).await;
    stage.other.unsubscribe(&stage.session, "a:1").await.expect("it can be taken back");
    announce(&stage.one, &updated("a:1")).await;
    let foreign = Owner::new("somebody else");
    stage.one.announce(&foreign, &Announcement::ToolListChanged, None).await;
    announce(&stage.one, &LIST).await;
    comes(&mut events, &[LIST]).await;
}

/// One change has one name; two changes have two, though they say the same.
pub async fn a_change_is_announced_once_whoever_hears_of_it(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let owner = Principal::Local.owner();
    let mut events = stage.listen().await;
    for (change, announcement) in [("first", &LIST), ("second", &Announcement::ToolListChanged)] {
        stage.one.announce(&owner, announcement, Some(change)).await;
        comes(&mut events, std::slice::from_ref(announcement)).await;
        stage.other.announce(&owner, announcement, Some(change)).await;
    }
    stage.one.announce(&owner, &LIST, Some("third")).await;
    comes(&mut events, &[LIST]).await;
}

/// Whoever's sessions they are.
pub async fn what_concerns_all_is_announced_to_all(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let session = begin(&stage.other).await.expect("another session");
    let also = Stage { session, one: stage.one.clone(), other: stage.other.clone() };
    stage.one.announce_to_all(&Announcement::PromptListChanged).await;
    for stage in [&stage, &also] {
        comes(&mut stage.listen().await, &[Announcement::PromptListChanged]).await;
    }
}

/// One more of the same is none more.
pub async fn subscriptions_are_bounded(harness: &dyn Harness) {
    let limits = SessionLimits { subscriptions_per_session: 1, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let Stage { one, other, session } = &stage;
    one.subscribe(session, "a:1").await.expect("there is room");
    other.subscribe(session, "a:1").await.expect("it is there already");
    let refused = other.subscribe(session, "a:2").await.err();
    assert!(matches!(refused, Some(SessionError::TooMany(_))), "{refused:?}");
    one.unsubscribe(session, "a:1").await.expect("it can be taken back");
    other.subscribe(session, "a:2").await.expect("there is room again");
}

/// By owner and name, each for its own time.
pub async fn who_watches_what_is_shared_is_known_to_all_until_then(harness: &dyn Harness) {
    let [one, other] = harness.processes(SessionLimits::default()).await;
    let (tick, alice) = (harness.tick(), Owner::new("alice"));
    let by = |reader: &str, link: &str| Watch { reader: Owner::new(reader), link: link.into() };
    let watches = async |owner: &Owner, uri: &str| {
        let watches = other.watches(owner, uri).await.expect("they are told");
        watches.into_iter().collect::<BTreeSet<_>>()
    };
    let noted = async |uri: &str, watch: Watch, ticks: u32| {
        one.watch(&alice, uri, watch, tick * ticks).await.expect("it is noted");
    };
    noted("a:1", by("bob", "l:1"), 4).await;
    noted("a:1", by("carol b", "l:1"), 1000).await;
    noted("a:1", by("bob", "l:2"), 1000).await;
    // Once more is no more.
    noted("a:1", by("bob", "l:2"), 1000).await;
    noted("a:2", by("bob", "l:3"), 4).await;
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
