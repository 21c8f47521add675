//! The streams of calls.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;

use super::{Harness, Stage, append, begin, call, in_time, next, texts};
use crate::session::{EventId, Retention, SessionError, SessionLimits};

/// A follower receives each message once, in order.
pub async fn a_follower_receives_existing_and_new_messages(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut writer = stage.open().await;

    append(&mut writer, "1").await;
    let mut seen = stage.follow(&writer.start()).await;
    assert_eq!(next(&mut seen).await.as_deref(), Some("1"));

    for message in ["2", "3", "4"] {
        append(&mut writer, message).await;
    }

    assert_eq!(next(&mut seen).await.as_deref(), Some("2"));
    append(&mut writer, "5").await;

    drop(writer);
    assert_eq!(texts(seen).await, ["3", "4", "5"]);
}

/// A replay has exactly the messages after the event.
pub async fn a_finished_stream_is_replayed_from_any_event(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let start = stage.finished(&["1", "2", "3"]).await;
    for (position, rest) in [(0, vec!["1", "2", "3"]), (1, vec!["2", "3"]), (3, vec![])] {
        let after = EventId { position, ..start.clone() };
        assert_eq!(texts(stage.follow(&after).await).await, rest);
    }
}

/// A replay may have more messages than one read returns.
pub async fn a_long_stream_is_replayed_whole_and_in_order(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let messages: Vec<String> = (1..=600).map(|n| n.to_string()).collect();
    let start = stage.finished(&messages.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(texts(stage.follow(&start).await).await, messages);
}

/// An id is valid only in its own session, and only if it was issued.
pub async fn a_foreign_or_invented_event_id_finds_nothing(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mine = stage.finished(&["1"]).await;
    let foreign = begin(&stage.one).await.expect("another session");
    let ahead = EventId { position: 5, ..mine.clone() };
    let invented = EventId { stream: "0".repeat(32).into(), position: 0 };

    let nameless = EventId { stream: "".into(), position: 0 };

    for (session, after) in [
        (&foreign, &mine),
        (&stage.session, &ahead),
        (&stage.session, &invented),
        (&stage.session, &nameless),
    ] {
        let refused = stage.other.follow(session, after).await.err();
        assert_eq!(refused, Some(SessionError::NoStream(after.to_string())));
    }

    let (own, _) = stage.one.standalone(&foreign).await.expect("its own stream");
    let refused = stage.other.follow(&stage.session, &own).await.err();
    assert_eq!(refused, Some(SessionError::NoStream(own.to_string())));
}

/// A resuming follower and a slow one both receive an error for a trimmed cursor.
pub async fn a_trimmed_cursor_is_an_error_and_never_a_gap(harness: &dyn Harness) {
    let limits = SessionLimits { events_per_stream: 2, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let mut writer = stage.open().await;
    let mut slow = stage.follow(&writer.start()).await;

    for message in ["1", "2", "3"] {
        append(&mut writer, message).await;
    }

    let slow = in_time(slow.next()).await;
    assert!(matches!(slow, Some(Err(SessionError::Trimmed(_)))), "{slow:?}");
    let resumed = stage.other.follow(&stage.session, &writer.start()).await.err();
    assert_eq!(resumed, Some(SessionError::Trimmed(writer.start().to_string())));

    let kept = EventId { position: 1, ..writer.start() };
    drop(writer);
    assert_eq!(texts(stage.follow(&kept).await).await, ["2", "3"]);
}

/// The newest message is never trimmed, because it may be the call's result.
pub async fn the_oldest_messages_are_trimmed_but_never_the_newest(harness: &dyn Harness) {
    let limits = SessionLimits { bytes_per_stream: 4, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;

    let start = stage.finished(&["far too large"]).await;
    assert_eq!(texts(stage.follow(&start).await).await, ["far too large"]);

    let start = stage.finished(&["1", "22", "3", "44"]).await;
    let refused = stage.other.follow(&stage.session, &start).await.err();
    assert_eq!(refused, Some(SessionError::Trimmed(start.to_string())));
    let after = EventId { position: 2, ..start };
    assert_eq!(texts(stage.follow(&after).await).await, ["3", "44"]);
}

/// Old messages are trimmed, so that a slow stream does not grow without limit.
pub async fn old_messages_are_trimmed_when_new_ones_arrive(harness: &dyn Harness) {
    let limits = SessionLimits { message_age: harness.tick() * 2, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let mut writer = stage.open().await;
    append(&mut writer, "1").await;
    append(&mut writer, "2").await;

    harness.pass(harness.tick() * 3).await;
    append(&mut writer, "3").await;
    let start = writer.start();
    drop(writer);

    let refused = stage.other.follow(&stage.session, &start).await.err();
    assert_eq!(refused, Some(SessionError::Trimmed(start.to_string())));
    let after = EventId { position: 2, ..start };
    assert_eq!(texts(stage.follow(&after).await).await, ["3"]);
}

/// The last message and the end of the stream are one step.
pub async fn a_finished_stream_ends_with_its_last_message(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut writer = stage.open().await;
    let follower = stage.follow(&writer.start()).await;

    append(&mut writer, "1").await;
    writer.finish(Bytes::from("result").into(), Retention::Kept).await.expect("it is appended");
    assert_eq!(texts(follower).await, ["1", "result"]);
    assert_eq!(texts(stage.follow(&writer.start()).await).await, ["1", "result"]);
}

/// A message goes to one connection only (2025-11-25, transports: Multiple Connections).
pub async fn a_new_follower_cuts_the_old_one_off(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut writer = stage.open().await;
    append(&mut writer, "1").await;
    let mut old = stage.one.follow(&stage.session, &writer.start()).await.expect("the first");
    assert_eq!(next(&mut old).await.as_deref(), Some("1"));

    let mut new = stage.follow(&writer.start()).await;
    assert_eq!(next(&mut old).await, None);

    append(&mut writer, "2").await;
    drop((writer, old));
    assert_eq!(next(&mut new).await.as_deref(), Some("1"));
    assert_eq!(texts(new).await, ["2"]);
}

/// A follower disconnects after everything that was appended before. The next one misses nothing.
pub async fn a_writer_can_disconnect_the_follower_and_the_stream_continues(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut writer = stage.open().await;

    let first = stage.follow(&writer.start()).await;
    append(&mut writer, "1").await;
    writer.disconnect(Duration::from_secs(1)).await.expect("it is asked");
    assert_eq!(texts(first).await, ["1", "disconnect"]);

    append(&mut writer, "2").await;
    let start = writer.start();
    drop(writer);
    assert_eq!(texts(stage.follow(&start).await).await, ["1", "2"]);
}

/// Finished streams are kept only while there is room.
pub async fn running_streams_are_limited_and_finished_ones_make_room(harness: &dyn Harness) {
    let limits = SessionLimits { streams_per_session: 1, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let writer = stage.open().await;
    let refused = stage.other.open(&stage.session, &call()).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany(_))), "{refused:?}");

    let last = Arc::new(writer.start());
    let ended = stage.follow(&last).await;
    drop(writer);
    // The stream is closed once its follower ends.
    assert!(texts(ended).await.is_empty());
    stage.other.open(&stage.session, &call()).await.expect("there is room");
}

/// An answer that is not kept reaches the present follower and nobody else.
pub async fn an_answer_that_is_not_kept_reaches_the_present_follower_alone(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut writer = stage.open().await;
    let follower = stage.follow(&writer.start()).await;

    append(&mut writer, "1").await;
    writer.finish(Bytes::from("result").into(), Retention::NotKept).await.expect("it is appended");
    assert_eq!(texts(follower).await, ["1", "result"]);
    let again = stage.other.follow(&stage.session, &writer.start()).await.err();
    assert_eq!(again, Some(SessionError::NoStream(writer.start().to_string())));

    // Without a follower, an error takes the place of the answer.
    let mut writer = stage.open().await;
    append(&mut writer, "1").await;
    writer.finish(Bytes::from("result").into(), Retention::NotKept).await.expect("it is appended");
    let messages = texts(stage.follow(&writer.start()).await).await;
    assert_eq!((messages.len(), &*messages[0]), (2, "1"));
    let error = &messages[1];
    assert!(error.contains("\"id\":1") && error.contains("Send the request again"), "{error}");
}

/// The finished streams of a principal have a budget, which is given back when they expire.
pub async fn finished_streams_are_kept_within_a_budget(harness: &dyn Harness) {
    let limits = SessionLimits {
        replay: harness.tick(),
        replay_bytes_per_principal: 1000,
        ..SessionLimits::default()
    };
    let stage = Stage::limited(harness, limits).await;

    let answer = "x".repeat(600);
    let finished = async || {
        let mut writer = stage.open().await;
        writer
            .finish(Bytes::from(answer.clone()).into(), Retention::Kept)
            .await
            .expect("it is appended");
        texts(stage.follow(&writer.start()).await).await.remove(0)
    };

    assert_eq!(finished().await, answer);
    let error = finished().await;
    assert!(error.contains("Send the request again"), "{error}");

    // The budget is free again soon after the streams can no longer be resumed.
    harness.pass(harness.tick()).await;
    in_time(async {
        while finished().await != answer {
            harness.pass(harness.tick()).await;
        }
    })
    .await;
}
