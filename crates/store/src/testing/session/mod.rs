//! The contract suite for implementations of [`Sessions`]: the behaviour that users can observe, in
//! one process or in several.
//!
//! Each function is one rule, and [`session_contract!`](crate::session_contract) makes a test of
//! each. It needs a [`Harness`] that sets up the sessions:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use larder_runtime::{clock::ManualClock, random::Random};
//! use larder_store::{
//!     session::{MemorySessions, SessionLimits, Sessions},
//!     testing::session::Harness,
//! };
//!
//! #[derive(Default)]
//! struct Memory(ManualClock);
//!
//! #[async_trait::async_trait]
//! impl Harness for Memory {
//!     async fn processes(&self, limits: SessionLimits) -> [Arc<dyn Sessions>; 2] {
//!         let clock = Arc::new(self.0.clone());
//!         let sessions = Arc::new(MemorySessions::new(clock, Random::counting(), limits));
//!         let maintained = Arc::clone(&sessions);
//!         tokio::spawn(async move { maintained.maintain().await });
//!         // Memory is not shared between processes, so both are the same.
//!         [sessions.clone(), sessions]
//!     }
//!
//!     async fn pass(&self, span: Duration) {
//!         self.0.advance(span);
//!         tokio::time::sleep(Duration::from_millis(1)).await;
//!     }
//!
//!     fn tick(&self) -> Duration {
//!         Duration::from_millis(1)
//!     }
//! }
//!
//! larder_store::session_contract!(Memory::default());
//! ```

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

mod announcing;
mod lifetime;
mod streams;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt;
use larder_identity::Principal;
use larder_protocol::{ClientFacts, ProtocolVersion, RequestId};

use crate::session::{
    Deliveries, Delivery, EventId, Session, SessionError, SessionLimits, Sessions, StreamWriter,
};

/// Sets up sessions for the suite, and lets time pass.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Two handles to one empty storage, as in two processes, with maintenance running. If the
    /// storage belongs to one process, both may be one handle.
    async fn processes(&self, limits: SessionLimits) -> [Arc<dyn Sessions>; 2];

    /// Lets `span` pass, and little more, by moving a clock or by waiting.
    async fn pass(&self, span: Duration);

    /// The unit of lifetimes in the suite, which are a few ticks long. At least a millisecond; with
    /// a real clock, longer than a few calls take.
    fn tick(&self) -> Duration;
}

/// Makes a test of each rule of the [contract](crate::testing::session). The expression creates a
/// [`Harness`](crate::testing::session::Harness) for each test and may `.await`. The calling crate
/// needs tokio.
#[macro_export]
macro_rules! session_contract {
    (@checks $each:ident $($harness:expr)?) => {
        $crate::session_contract! {
            @$each ($($harness)?)
            streams:
                a_follower_receives_existing_and_new_messages,
                a_finished_stream_is_replayed_from_any_event,
                a_long_stream_is_replayed_whole_and_in_order,
                a_foreign_or_invented_event_id_finds_nothing,
                a_trimmed_cursor_is_an_error_and_never_a_gap,
                the_oldest_messages_are_trimmed_but_never_the_newest,
                old_messages_are_trimmed_when_new_ones_arrive,
                a_finished_stream_ends_with_its_last_message,
                a_new_follower_cuts_the_old_one_off,
                a_writer_can_disconnect_the_follower_and_the_stream_continues,
                running_streams_are_limited_and_finished_ones_make_room,
                an_answer_that_is_not_kept_reaches_the_present_follower_alone,
                finished_streams_are_kept_within_a_budget;
            lifetime:
                a_session_is_found_as_it_was_created,
                an_unknown_session_is_not_found,
                a_session_is_found_by_its_principal_alone,
                a_log_level_applies_at_once,
                sessions_of_one_principal_are_limited,
                sessions_of_all_principals_are_limited,
                living_sessions_are_counted,
                an_idle_session_expires_and_one_in_use_does_not,
                asking_for_a_session_does_not_extend_its_expiry,
                a_session_with_a_running_call_does_not_expire,
                a_finished_stream_can_be_resumed_for_a_while,
                deleting_a_session_ends_its_streams,
                every_method_fails_in_a_session_that_has_ended;
            announcing:
                announcements_wait_for_a_connection,
                a_message_is_sent_to_a_present_connection_alone,
                a_repeated_announcement_waits_until_the_first_is_delivered,
                a_connection_without_a_cursor_continues_where_the_last_one_stopped,
                only_subscribed_resources_are_announced,
                a_change_is_announced_once_by_several_processes,
                an_announcement_to_all_reaches_every_session,
                subscriptions_are_limited,
                watches_are_found_by_all_processes_until_they_expire;
        }
    };
    (@tests ($harness:expr) $($group:ident: $($check:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                $crate::testing::session::$check(&$harness).await;
            }
        )+)+
    };
    // Only listed checks are exported, so the compiler warns of an unlisted one.
    (@exports () $($group:ident: $($check:ident),+;)+) => {
        $(pub use self::$group::{$($check),+};)+
    };
    ($harness:expr) => {
        $crate::session_contract!(@checks tests $harness);
    };
}

session_contract!(@checks exports);

/// The most time of a step in the suite.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A session, and two processes that serve it.
struct Stage {
    one: Arc<dyn Sessions>,
    other: Arc<dyn Sessions>,
    session: Arc<Session>,
}

impl Stage {
    async fn new(harness: &dyn Harness) -> Self {
        Self::limited(harness, SessionLimits::default()).await
    }

    async fn limited(harness: &dyn Harness, limits: SessionLimits) -> Self {
        let [one, other] = harness.processes(limits).await;
        let session = begin(&one).await.expect("a session begins");
        Self { one, other, session }
    }

    async fn open(&self) -> Box<dyn StreamWriter> {
        self.one.open(&self.session, &call()).await.expect("a stream opens")
    }

    /// Writes and closes a stream. Returns the event id before its first message.
    async fn finished(&self, messages: &[&str]) -> EventId {
        let mut writer = self.open().await;
        for message in messages {
            append(&mut writer, message).await;
        }
        writer.start()
    }

    /// Follows a stream in the other process.
    async fn follow(&self, after: &EventId) -> Deliveries {
        self.other.follow(&self.session, after).await.expect("it can be followed")
    }

    /// Follows the standalone stream in the other process.
    async fn standalone(&self) -> Deliveries {
        self.other.standalone(&self.session).await.expect("it can be followed").1
    }

    async fn exists(&self) -> bool {
        self.one.get(&self.session.id, &Principal::Local).await.is_ok()
    }
}

async fn begin(sessions: &Arc<dyn Sessions>) -> Result<Arc<Session>, SessionError> {
    let version = ProtocolVersion::LATEST_LEGACY;
    sessions.create(Principal::Local, version, ClientFacts::default()).await
}

fn call() -> RequestId {
    RequestId::Number(1)
}

async fn append(writer: &mut Box<dyn StreamWriter>, message: &str) {
    writer.append(message.to_owned().into()).await.expect("it is appended");
}

fn text(delivery: Result<Delivery, SessionError>) -> String {
    match delivery.expect("a delivery") {
        Delivery::Event(event) => String::from_utf8(event.data.to_vec()).expect("it is text"),
        Delivery::Disconnect { .. } => "disconnect".to_owned(),
    }
}

/// The next message, or `None` at the end of the stream.
async fn next(deliveries: &mut Deliveries) -> Option<String> {
    in_time(deliveries.next()).await.map(text)
}

/// All messages up to the end of the stream.
async fn texts(deliveries: Deliveries) -> Vec<String> {
    in_time(deliveries.map(text).collect()).await
}

async fn in_time<F: Future>(wait: F) -> F::Output {
    tokio::time::timeout(TEST_TIMEOUT, wait).await.expect("it comes in time")
}
