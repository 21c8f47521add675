//! Arbitrary values of `Last-Event-ID`: no panic, and a session receives nothing but the
//! events of its own streams, each once and in order.
//!
//! `$OWN` in an input stands for the name of a stream of the session, `$OTHER` for one of
//! another session.

#![no_main]

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures_util::StreamExt;
use larder::{
    auth::Principal,
    clock::ManualClock,
    protocol::{ClientFacts, ProtocolVersion, RequestId},
    random::Random,
    session::{Delivery, EventId, MemorySessions, Retention, Session, SessionLimits, Sessions},
};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

const MESSAGES: u64 = 5;

struct Streams {
    runtime: Runtime,
    sessions: MemorySessions,
    session: Arc<Session>,
    own: String,
    other: String,
}

static STREAMS: LazyLock<Streams> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let clock = Arc::new(ManualClock::new());
    let sessions = MemorySessions::new(clock, Random::counting(), SessionLimits::default());
    let (session, own, other) = runtime.block_on(async {
        let (_, other) = session(&sessions, "other").await;
        let (session, own) = session(&sessions, "own").await;
        (session, own, other)
    });
    Streams { runtime, sessions, session, own, other }
});

/// A session with a finished stream.
async fn session(sessions: &MemorySessions, name: &str) -> (Arc<Session>, String) {
    let principal = Principal::Static { name: name.into() };
    let (version, client) = (ProtocolVersion::V2025_11_25, ClientFacts::default());
    let session = sessions.create(principal, version, client).await.unwrap();
    let mut writer = sessions.open(&session, &RequestId::Number(1)).await.unwrap();
    let stream = writer.start().stream.to_string();
    for position in 1..MESSAGES {
        writer.append(format!("{name}-{position}").into()).await.unwrap();
    }
    let last = Bytes::from(format!("{name}-{MESSAGES}"));
    writer.finish(last.into(), Retention::Kept).await.unwrap();
    (session, stream)
}

fuzz_target!(|input: &str| {
    let Streams { runtime, sessions, session, own, other } = &*STREAMS;
    let text = input.replace("$OWN", own).replace("$OTHER", other);
    let Some(after) = EventId::parse(&text) else { return };
    assert_eq!(EventId::parse(&after.to_string()).as_ref(), Some(&after));
    runtime.block_on(async {
        let Ok(mut deliveries) = sessions.follow(session, &after).await else {
            assert!(*after.stream != **own || after.position > MESSAGES, "{text:?} is refused");
            return;
        };
        assert_eq!(*after.stream, **own, "{text:?} is a stream of the session");
        for position in after.position + 1..=MESSAGES {
            let Some(Ok(Delivery::Event(event))) = deliveries.next().await else {
                panic!("event {position} after {text:?} is missing");
            };
            assert_eq!(event.id, EventId { stream: own.as_str().into(), position });
            assert_eq!(event.data, Bytes::from(format!("own-{position}")));
        }
        assert!(deliveries.next().await.is_none());
    });
});
