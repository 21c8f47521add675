//! How sessions begin and end.

use futures_util::StreamExt;

use super::{Harness, Stage, append, begin, call, patiently, texts};
use crate::{
    auth::Principal,
    protocol::{ClientFacts, LogLevel, ProtocolVersion},
    session::{SessionError, SessionLimits},
};

/// In every process.
pub async fn a_session_is_what_was_agreed_on(harness: &dyn Harness) {
    let [one, other] = harness.processes(SessionLimits::default()).await;
    let client: ClientFacts = ClientFacts {
        info: serde_json::from_str(r#"{"name":"me","version":"7"}"#).ok(),
        capabilities: serde_json::from_str(r#"{"sampling":{}}"#).expect("capabilities"),
    };
    let version = ProtocolVersion::V2025_06_18;
    let made = one.create(Principal::Local, version, client.clone()).await.expect("it begins");
    let found = other.get(&made.id, &Principal::Local).await.expect("it is found");
    assert_eq!((&found.id, found.version), (&made.id, version));
    assert_eq!(found.principal, Principal::Local);
    assert_eq!(found.log_level, LogLevel::Info);
    let shown = |facts: &ClientFacts| {
        serde_json::json!([facts.info.as_ref(), facts.capabilities]).to_string()
    };
    assert_eq!(shown(&found.client), shown(&client));
}

/// Whatever the id is made of.
pub async fn an_unknown_session_is_not_found(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    for id in ["", "0", "*", "a:b", &"f".repeat(32), "\u{fffd}{}"] {
        let refused = stage.other.get(id, &Principal::Local).await.err();
        assert_eq!(refused, Some(SessionError::NotFound), "{id}");
        assert_eq!(stage.other.delete(id, &Principal::Local).await, Ok(false), "{id}");
    }
}

/// With the right id, too; and it goes on for whom it belongs to.
pub async fn a_session_is_found_by_its_principal_and_nobody_else(harness: &dyn Harness) {
    let [one, other] = harness.processes(SessionLimits::default()).await;
    let user = |subject: &str| {
        let (issuer, subject) = ("https://issuer".into(), subject.into());
        Principal::User { issuer, subject }
    };
    let (alice, version) = (user("alice"), ProtocolVersion::LATEST_LEGACY);
    let session = one.create(alice.clone(), version, ClientFacts::default()).await;
    let session = session.expect("it begins");
    for sessions in [&one, &other] {
        let found = sessions.get(&session.id, &alice).await.expect("it is hers");
        assert_eq!(found.principal, alice);
        for thief in [Principal::Local, user("mallory")] {
            let refused = sessions.get(&session.id, &thief).await.err();
            assert_eq!(refused, Some(SessionError::NotFound), "{thief}");
            assert_eq!(sessions.delete(&session.id, &thief).await, Ok(false), "{thief}");
        }
        sessions.get(&session.id, &alice).await.expect("it is still hers");
    }
}

/// Whichever process takes the next request.
pub async fn a_log_level_is_in_force_at_once(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let id = &stage.session.id;
    for level in [LogLevel::Debug, LogLevel::Emergency, LogLevel::Info] {
        stage.one.get(id, &Principal::Local).await.expect("it is there");
        stage.other.get(id, &Principal::Local).await.expect("it is there");
        stage.other.set_log_level(&stage.session, level).await.expect("it can be set");
        for sessions in [&stage.one, &stage.other] {
            let session = sessions.get(id, &Principal::Local).await.expect("it is there");
            assert_eq!(session.log_level, level);
        }
    }
}

/// Wherever they began; one that has ended makes room.
pub async fn sessions_of_one_principal_are_bounded(harness: &dyn Harness) {
    let limits = SessionLimits { sessions_per_principal: 2, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    begin(&stage.other).await.expect("there is room");
    let refused = begin(&stage.one).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany(_))), "{refused:?}");
    assert_eq!(stage.other.delete(&stage.session.id, &Principal::Local).await, Ok(true));
    begin(&stage.one).await.expect("there is room again");
}

/// In every process alike, whoever's they are.
pub async fn living_sessions_are_counted(harness: &dyn Harness) {
    let limits = SessionLimits { idle: harness.tick() * 6, ..SessionLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    begin(&stage.other).await.expect("it begins");
    let (version, facts) = (ProtocolVersion::LATEST_LEGACY, ClientFacts::default());
    let bob = Principal::Machine { issuer: "a".into(), client: "bob".into() };
    stage.one.create(bob, version, facts).await.expect("it begins");
    for sessions in [&stage.one, &stage.other] {
        assert_eq!(sessions.count().await, Ok(3));
    }
    assert_eq!(stage.one.delete(&stage.session.id, &Principal::Local).await, Ok(true));
    assert_eq!(stage.other.count().await, Ok(2));
    harness.pass(harness.tick() * 7).await;
    // Where it takes somebody to remove them, that may still be at it.
    patiently(async {
        while stage.one.count().await != Ok(0) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    begin(&stage.one).await.expect("it begins");
    assert_eq!(stage.other.count().await, Ok(1));
}

/// A request or a connection keeps it.
pub async fn an_idle_session_expires_and_one_in_use_does_not(harness: &dyn Harness) {
    let limits = SessionLimits { idle: harness.tick() * 6, ..SessionLimits::default() };
    let idle = Stage::limited(harness, limits).await;
    let touched = begin(&idle.one).await.expect("it begins");
    let used = begin(&idle.one).await.expect("it begins");
    let connection = idle.other.standalone(&used).await.expect("it is there");
    for _ in 0..2 {
        harness.pass(harness.tick() * 4).await;
        idle.other.get(&touched.id, &Principal::Local).await.expect("it was touched");
    }
    assert!(!idle.is_there().await);
    idle.one.get(&used.id, &Principal::Local).await.expect("it is connected");
    drop(connection);
    harness.pass(harness.tick() * 10).await;
    for session in [touched, used] {
        let gone = idle.one.get(&session.id, &Principal::Local).await.err();
        assert_eq!(gone, Some(SessionError::NotFound));
    }
}

/// However long it runs.
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
    assert!(stage.is_there().await);
    assert_eq!(texts(stage.follow(&start).await).await, ["result"]);
}

/// And no longer.
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

/// In every process, at once.
pub async fn deleting_a_session_ends_its_streams(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let mut events = stage.listen().await;
    let mut writer = stage.open().await;
    let mut call = stage.follow(&writer.start()).await;
    assert!(stage.is_there().await);
    assert_eq!(stage.other.delete(&stage.session.id, &Principal::Local).await, Ok(true));
    assert!(!stage.is_there().await);
    assert!(patiently(events.next()).await.is_none());
    assert!(patiently(call.next()).await.is_none());
    // Whoever runs the call may not have heard yet; it reaches nobody.
    let _ = writer.append("too late".into()).await;
    assert_eq!(stage.one.delete(&stage.session.id, &Principal::Local).await, Ok(false));
}

/// Not even by one who has looked it up before.
pub async fn nothing_can_be_done_in_a_session_that_has_ended(harness: &dyn Harness) {
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
    ];
    assert_eq!(refused, [const { Some(SessionError::NotFound) }; 6]);
}
