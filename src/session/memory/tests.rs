#![allow(clippy::unwrap_used)]

use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::{clock::ManualClock, session::Delivery};

fn sessions(limits: SessionLimits) -> (MemorySessions, ManualClock) {
    let clock = ManualClock::new();
    (MemorySessions::new(Arc::new(clock.clone()), Random::counting(), limits), clock)
}

async fn begin(sessions: &MemorySessions) -> Arc<Session> {
    let version = ProtocolVersion::LATEST_LEGACY;
    sessions.create(Principal::Local, version, ClientFacts::default()).await.unwrap()
}

async fn texts(deliveries: Deliveries) -> Vec<String> {
    let text = |delivery: Result<Delivery, SessionError>| match delivery.unwrap() {
        Delivery::Event(event) => String::from_utf8(event.data.to_vec()).unwrap(),
        Delivery::Disconnect { .. } => "disconnect".to_owned(),
    };
    deliveries.map(text).collect().await
}

#[tokio::test]
async fn a_follower_sees_what_came_before_and_what_comes() {
    let (sessions, _) = sessions(SessionLimits::default());
    let session = begin(&sessions).await;
    let mut writer = sessions.open(&session).await.unwrap();
    writer.append("1".into()).await.unwrap();
    let start = writer.start();
    let seen = tokio::spawn(texts(sessions.follow(&session, &start).await.unwrap()));
    writer.append("2".into()).await.unwrap();
    drop(writer);
    assert_eq!(seen.await.unwrap(), ["1", "2"]);
    let after_one = EventId { position: 1, ..start };
    assert_eq!(texts(sessions.follow(&session, &after_one).await.unwrap()).await, ["2"]);
}

#[tokio::test]
async fn a_foreign_or_invented_event_id_finds_nothing() {
    let (sessions, _) = sessions(SessionLimits::default());
    let (mine, other) = (begin(&sessions).await, begin(&sessions).await);
    let writer = sessions.open(&mine).await.unwrap();
    let start = writer.start();
    assert!(matches!(sessions.follow(&other, &start).await.err(), Some(SessionError::NoStream(_))));
    let ahead = EventId { position: 5, ..start };
    assert!(matches!(sessions.follow(&mine, &ahead).await.err(), Some(SessionError::NoStream(_))));
}

#[tokio::test]
async fn a_trimmed_cursor_is_an_error_and_never_a_gap() {
    let limits = SessionLimits { events_per_stream: 2, ..SessionLimits::default() };
    let (sessions, _) = sessions(limits);
    let session = begin(&sessions).await;
    let mut writer = sessions.open(&session).await.unwrap();
    let mut slow = sessions.follow(&session, &writer.start()).await.unwrap();
    for message in ["1", "2", "3"] {
        writer.append(message.into()).await.unwrap();
    }
    assert!(matches!(slow.next().await, Some(Err(SessionError::Trimmed(_)))));
    let resumed = sessions.follow(&session, &writer.start()).await;
    assert!(matches!(resumed.err(), Some(SessionError::Trimmed(_))));
}

#[tokio::test]
async fn the_newest_message_is_kept_whatever_its_size() {
    let limits = SessionLimits { bytes_per_stream: 4, ..SessionLimits::default() };
    let (sessions, _) = sessions(limits);
    let session = begin(&sessions).await;
    let mut writer = sessions.open(&session).await.unwrap();
    writer.append("far too large".into()).await.unwrap();
    let start = writer.start();
    drop(writer);
    assert_eq!(texts(sessions.follow(&session, &start).await.unwrap()).await, ["far too large"]);
}

#[tokio::test]
async fn a_new_follower_cuts_the_old_one_off() {
    let (sessions, _) = sessions(SessionLimits::default());
    let session = begin(&sessions).await;
    let (_, mut old) = sessions.standalone(&session).await.unwrap();
    assert!(old.next().now_or_never().is_none());
    let (_, mut new) = sessions.standalone(&session).await.unwrap();
    assert!(old.next().await.is_none());
    sessions.announce(&Principal::Local.owner(), &Announcement::ResourceListChanged).await;
    assert!(new.next().await.is_some());
}

#[tokio::test]
async fn announcements_wait_for_a_connection_and_repeat_themselves_only_once_seen() {
    let (sessions, _) = sessions(SessionLimits::default());
    let session = begin(&sessions).await;
    let owner = Principal::Local.owner();
    let updated = |uri: &str| Announcement::ResourceUpdated { uri: uri.into() };
    sessions.subscribe(&session, "a:1").await.unwrap();
    sessions.announce(&owner, &updated("a:1")).await;
    sessions.announce(&owner, &updated("a:1")).await;
    sessions.announce(&owner, &updated("a:2")).await;
    let (_, mut events) = sessions.standalone(&session).await.unwrap();
    assert!(events.next().await.is_some());
    assert!(events.next().now_or_never().is_none());
    sessions.announce(&owner, &updated("a:1")).await;
    assert!(events.next().await.is_some());
    sessions.unsubscribe(&session, "a:1").await.unwrap();
    sessions.announce(&owner, &updated("a:1")).await;
    assert!(events.next().now_or_never().is_none());
}

#[tokio::test]
async fn an_idle_session_expires_and_one_in_use_does_not() {
    let (sessions, clock) = sessions(SessionLimits::default());
    let sessions = Arc::new(sessions);
    let maintenance = tokio::spawn({
        let sessions = Arc::clone(&sessions);
        async move { sessions.maintain().await }
    });
    let (idle, used, touched) =
        (begin(&sessions).await, begin(&sessions).await, begin(&sessions).await);
    let connection = sessions.standalone(&used).await.unwrap();
    clock.advance(Duration::from_secs(59 * 60));
    sessions.get(&touched.id, &Principal::Local).await.unwrap();
    clock.advance(Duration::from_secs(2 * 60));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(sessions.get(&idle.id, &Principal::Local).await.err(), Some(SessionError::NotFound));
    sessions.get(&touched.id, &Principal::Local).await.unwrap();
    sessions.get(&used.id, &Principal::Local).await.unwrap();
    drop(connection);
    clock.advance(Duration::from_secs(3 * 60 * 60));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(sessions.inner.lock().next_expiry().is_none(), "nothing is left to look at");
    maintenance.abort();
}

#[tokio::test]
async fn a_finished_stream_can_be_resumed_for_a_while() {
    let (sessions, clock) = sessions(SessionLimits::default());
    let session = begin(&sessions).await;
    let mut writer = sessions.open(&session).await.unwrap();
    writer.append("result".into()).await.unwrap();
    let start = writer.start();
    drop(writer);
    clock.advance(Duration::from_secs(299));
    sessions.inner.lock().remove_expired(sessions.inner.clock.now(), Duration::from_secs(3600));
    assert_eq!(texts(sessions.follow(&session, &start).await.unwrap()).await, ["result"]);
    clock.advance(Duration::from_secs(2));
    sessions.inner.lock().remove_expired(sessions.inner.clock.now(), Duration::from_secs(3600));
    assert!(matches!(
        sessions.follow(&session, &start).await.err(),
        Some(SessionError::NoStream(_))
    ));
}

#[tokio::test]
async fn deleting_a_session_ends_its_streams() {
    let (sessions, _) = sessions(SessionLimits::default());
    let session = begin(&sessions).await;
    let (_, mut events) = sessions.standalone(&session).await.unwrap();
    assert!(sessions.delete(&session.id, &Principal::Local).await.unwrap());
    assert!(events.next().await.is_none());
    assert!(!sessions.delete(&session.id, &Principal::Local).await.unwrap());
}

#[tokio::test]
async fn running_streams_are_bounded_and_finished_ones_make_room() {
    let limits = SessionLimits { streams_per_session: 1, ..SessionLimits::default() };
    let (sessions, _) = sessions(limits);
    let session = begin(&sessions).await;
    let writer = sessions.open(&session).await.unwrap();
    assert!(matches!(sessions.open(&session).await.err(), Some(SessionError::TooMany(_))));
    drop(writer);
    sessions.open(&session).await.unwrap();
}

#[tokio::test]
async fn a_writer_can_send_the_connection_away_and_the_stream_goes_on() {
    let (sessions, _) = sessions(SessionLimits::default());
    let session = begin(&sessions).await;
    let mut writer = sessions.open(&session).await.unwrap();
    let first = sessions.follow(&session, &writer.start()).await.unwrap();
    writer.append("1".into()).await.unwrap();
    writer.disconnect(Duration::from_secs(1)).await.unwrap();
    assert_eq!(texts(first).await, ["1", "disconnect"]);
    writer.append("2".into()).await.unwrap();
    let start = writer.start();
    drop(writer);
    assert_eq!(texts(sessions.follow(&session, &start).await.unwrap()).await, ["1", "2"]);
}
