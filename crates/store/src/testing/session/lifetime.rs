//! Creating, looking up and ending sessions.

use std::sync::Arc;

use futures_util::StreamExt;
use larder_identity::Principal;
use larder_protocol::{ClientFacts, LogLevel, ProtocolVersion};

use super::{Harness, Stage, append, begin, call, in_time, texts};
use crate::session::{SessionError, SessionLimits, Sessions};

/// Both processes find a session with the details with which it was created.
pub async fn a_session_is_found_as_it_was_created(harness: &dyn Harness) {
    let [one, other] = harness.processes(SessionLimits::default()).await;
    let client: ClientFacts = ClientFacts {
        info: serde_json::from_str(r#"{"name":"me","version":"7"}"#).ok(),
        capabilities: serde_json::from_str(r#"{"sampling":{}}"#).expect("capabilities"),
    };
    let version = ProtocolVersion::V2025_06_18;

    let created = one
        .create(Principal::Local, version, client.clone())
        .await
        .expect("the session is created");

    let found = other.get(&created.id, &Principal::Local).await.expect("it is found");
    assert_eq!((&found.id, found.version), (&created.id, version));
    assert_eq!(found.principal, Principal::Local);
    assert_eq!(found.log_level, LogLevel::Info);

    let encoded = |facts: &ClientFacts| {
        serde_json::json!([facts.info.as_ref(), facts.capabilities]).to_string()
    };
    assert_eq!(encoded(&found.client), encoded(&client));
}

/// Any text may be an id; only ids of sessions are found.
pub async fn an_unknown_session_is_not_found(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    for id in ["", "0", "*", "a:b", &"f".repeat(32), "\u{fffd}{}"] {
        let refused = stage.other.get(id, &Principal::Local).await.err();
        assert_eq!(refused, Some(SessionError::NotFound), "{id}");
        assert_eq!(stage.other.delete(id, &Principal::Local).await, Ok(false), "{id}");
    }
}

/// Another principal does not find a session, even with its id. The session continues.
pub async fn a_session_is_found_by_its_principal_alone(harness: &dyn Harness) {
    let [one, other] = harness.processes(SessionLimits::default()).await;
    let user = |subject: &str| {
        let issuer = "https://issuer".into();
        Principal::User { issuer, subject: subject.into() }
    };
    let alice = user("alice");
    let version = ProtocolVersion::LATEST_LEGACY;

    let session = one.create(alice.clone(), version, ClientFacts::default()).await;
    let session = session.expect("the session is created");

    for sessions in [&one, &other] {
        let found = sessions.get(&session.id, &alice).await.expect("the session is found");
        assert_eq!(found.principal, alice);
        for other in [Principal::Local, user("mallory")] {
            let refused = sessions.get(&session.id, &other).await.err();
            assert_eq!(refused, Some(SessionError::NotFound), "{other}");
            assert_eq!(sessions.delete(&session.id, &other).await, Ok(false), "{other}");
        }
        sessions.get(&session.id, &alice).await.expect("the session still exists");
    }
}

/// Both processes apply a new log level at once.
pub async fn a_log_level_applies_at_once(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let id = &stage.session.id;
    for level in [LogLevel::Debug, LogLevel::Emergency, LogLevel::Info] {
        stage.one.get(id, &Principal::Local).await.expect("the session exists");
        stage.other.get(id, &Principal::Local).await.expect("the session exists");
        stage.other.set_log_level(&stage.session, level).await.expect("it can be set");

        for sessions in [&stage.one, &stage.other] {
            let session = sessions.get(id, &Principal::Local).await.expect("the session exists");
            assert_eq!(session.log_level, level);
        }
    }
}

/// All processes share the limit. A session that has ended makes room.
pub async fn sessions_of_one_principal_are_limited(harness: &dyn Harness) {
    let limits = SessionLimits { sessions_per_principal: 2, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;

    begin(&stage.other).await.expect("there is room");
    let refused = begin(&stage.one).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany(_))), "{refused:?}");

    assert_eq!(stage.other.delete(&stage.session.id, &Principal::Local).await, Ok(true));
    begin(&stage.one).await.expect("there is room again");
}

/// All processes share the limit. A session that has ended makes room.
pub async fn sessions_of_all_principals_are_limited(harness: &dyn Harness) {
    let limits = SessionLimits { sessions_total: 2, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;

    let start = async |sessions: &Arc<dyn Sessions>, name: &str| {
        let principal = Principal::Machine { issuer: "a".into(), client: name.into() };
        let version = ProtocolVersion::LATEST_LEGACY;
        sessions.create(principal, version, ClientFacts::default()).await
    };

    start(&stage.other, "bob").await.expect("there is room");
    let refused = start(&stage.other, "carol").await.expect_err("two have begun");
    assert!(matches!(&refused, SessionError::Full(text) if text.contains("sessions.total")));

    assert_eq!(stage.one.delete(&stage.session.id, &Principal::Local).await, Ok(true));
    in_time(async {
        while start(&stage.other, "carol").await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Both processes count the live sessions of all owners.
pub async fn living_sessions_are_counted(harness: &dyn Harness) {
    let limits = SessionLimits { idle: harness.tick() * 6, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    begin(&stage.other).await.expect("the session is created");
    let version = ProtocolVersion::LATEST_LEGACY;
    let facts = ClientFacts::default();
    let bob = Principal::Machine { issuer: "a".into(), client: "bob".into() };
    stage.one.create(bob, version, facts).await.expect("the session is created");

    for sessions in [&stage.one, &stage.other] {
        assert_eq!(sessions.count().await, Ok(3));
    }

    assert_eq!(stage.one.delete(&stage.session.id, &Principal::Local).await, Ok(true));
    assert_eq!(stage.other.count().await, Ok(2));

    harness.pass(harness.tick() * 7).await;
    // The maintenance task may still be removing them.
    in_time(async {
        while stage.one.count().await != Ok(0) {
            tokio::task::yield_now().await;
        }
    })
    .await;

    begin(&stage.one).await.expect("the session is created");
    assert_eq!(stage.other.count().await, Ok(1));
}

/// A request or a connection extends the expiry of a session.
pub async fn an_idle_session_expires_and_one_in_use_does_not(harness: &dyn Harness) {
    let limits = SessionLimits { idle: harness.tick() * 6, ..SessionLimits::default() };
    let idle = Stage::limited(harness, limits).await;

    let touched = begin(&idle.one).await.expect("the session is created");
    let used = begin(&idle.one).await.expect("the session is created");
    let connection = idle.other.standalone(&used).await.expect("the session exists");

    for _ in 0..2 {
        harness.pass(harness.tick() * 4).await;
        idle.other.get(&touched.id, &Principal::Local).await.expect("it was touched");
    }
    assert!(!idle.exists().await);
    idle.one.get(&used.id, &Principal::Local).await.expect("it is connected");

    drop(connection);
    harness.pass(harness.tick() * 10).await;
    for session in [touched, used] {
        let gone = idle.one.get(&session.id, &Principal::Local).await.err();
        assert_eq!(gone, Some(SessionError::NotFound));
    }
}

/// Asking whether a session exists tells so for its principal, and does not extend its expiry.
pub async fn asking_for_a_session_does_not_extend_its_expiry(harness: &dyn Harness) {
    let limits = SessionLimits { idle: harness.tick() * 6, ..SessionLimits::default() };
    let Stage { one, other, session } = Stage::limited(harness, limits).await;
    let stranger = Principal::Static { name: "stranger".into() };

    for sessions in [&one, &other] {
        assert_eq!(sessions.exists(&session.id, &Principal::Local).await, Ok(true));
        assert_eq!(sessions.exists(&session.id, &stranger).await, Ok(false));
        assert_eq!(sessions.exists("unknown", &Principal::Local).await, Ok(false));
    }
    for _ in 0..2 {
        harness.pass(harness.tick() * 4).await;
        let _ = one.exists(&session.id, &Principal::Local).await;
    }
    assert_eq!(other.exists(&session.id, &Principal::Local).await, Ok(false));
}

/// A running call extends the expiry of its session, for as long as it runs.
pub async fn a_session_with_a_running_call_does_not_expire(harness: &dyn Harness) {
    let tick = harness.tick();
    let limits = SessionLimits { idle: tick * 6, replay: tick * 3, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;

    let mut writer = stage.open().await;
    for _ in 0..3 {
        harness.pass(tick * 4).await;
    }

    append(&mut writer, "result").await;
    let start = writer.start();
    drop(writer);
    assert!(stage.exists().await);
    assert_eq!(texts(stage.follow(&start).await).await, ["result"]);
}

/// A finished stream can be resumed until the replay time has passed.
pub async fn a_finished_stream_can_be_resumed_for_a_while(harness: &dyn Harness) {
    let limits = SessionLimits { replay: harness.tick() * 6, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let start = stage.finished(&["result"]).await;

    harness.pass(harness.tick() * 4).await;
    assert_eq!(texts(stage.follow(&start).await).await, ["result"]);

    harness.pass(harness.tick() * 4).await;
    let gone = stage.other.follow(&stage.session, &start).await.err();
    assert_eq!(gone, Some(SessionError::NoStream(start.to_string())));
}

/// Both processes end the streams of a deleted session at once.
pub async fn deleting_a_session_ends_its_streams(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut events = stage.standalone().await;
    let mut writer = stage.open().await;
    let mut call = stage.follow(&writer.start()).await;

    assert!(stage.exists().await);
    assert_eq!(stage.other.delete(&stage.session.id, &Principal::Local).await, Ok(true));
    assert!(!stage.exists().await);
    assert!(in_time(events.next()).await.is_none());
    assert!(in_time(call.next()).await.is_none());

    // The writer may not have received the notice yet; the message reaches no follower.
    let _ = writer.append("too late".into()).await;
    assert_eq!(stage.one.delete(&stage.session.id, &Principal::Local).await, Ok(false));
}

/// All methods refuse a session that has ended, even if it was looked up before.
pub async fn every_method_fails_in_a_session_that_has_ended(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let start = stage.finished(&["result"]).await;
    let Stage { one, other, session } = &stage;
    assert_eq!(one.delete(&session.id, &Principal::Local).await, Ok(true));

    let refused = [
        other.get(&session.id, &Principal::Local).await.err(),
        other.set_log_level(session, LogLevel::Debug).await.err(),
        other.subscribe(session, "a:1").await.err(),
        other.open(session, &call()).await.err(),
        other.follow(session, &start).await.err(),
        other.standalone(session).await.err(),
        other.send_now(session, "a".into()).await.err(),
    ];
    assert_eq!(refused, [const { Some(SessionError::NotFound) }; 7]);
}
