//! The contract suite: what every place for sessions does, told by what its
//! users can observe, in one process or in several.
//!
//! Each function is one rule. [`session_contract!`](crate::session_contract)
//! makes a test of each; it needs a [`Harness`] that sets up sessions:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use larder::{
//!     clock::ManualClock,
//!     random::Random,
//!     session::{MemorySessions, SessionLimits, Sessions, contract::Harness},
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
//!         // Memory belongs to one process.
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
//! larder::session_contract!(Memory::default());
//! ```

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

mod announcing;
mod lifetime;
mod streams;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt;

use crate::{
    auth::Principal,
    protocol::{ClientFacts, ProtocolVersion, RequestId},
    session::{
        Deliveries, Delivery, EventId, Session, SessionError, SessionLimits, Sessions, StreamWriter,
    },
};

/// How the suite gets sessions, and how it lets time pass.
#[async_trait]
pub trait Harness: Send + Sync {
    /// No sessions yet, maintained, as two processes see them: what one does
    /// the other finds. Where one process has them for itself, it stands for both.
    async fn processes(&self, limits: SessionLimits) -> [Arc<dyn Sessions>; 2];

    /// Lets that much time pass, and hardly more: by the hands of a clock, or
    /// by waiting.
    async fn pass(&self, span: Duration);

    /// The unit of the life times in the suite, at least a millisecond; they
    /// are a few ticks long. Where time is real, long enough for a few calls
    /// to take less.
    fn tick(&self) -> Duration;
}

/// Makes a test of each rule of the [contract](crate::testing::session). The
/// expression makes a [`Harness`](crate::testing::session::Harness), anew for
/// each test; it may `.await`. The crate that calls it needs tokio.
#[macro_export]
macro_rules! session_contract {
    (@checks $each:ident $($harness:expr)?) => {
        $crate::session_contract! {
            @$each ($($harness)?)
            streams:
                a_follower_sees_what_came_before_and_what_comes,
                a_finished_stream_is_replayed_from_any_event,
                a_long_stream_is_replayed_whole_and_in_order,
                a_foreign_or_invented_event_id_finds_nothing,
                a_trimmed_cursor_is_an_error_and_never_a_gap,
                what_is_too_much_is_trimmed_but_never_the_newest,
                what_is_too_old_is_trimmed_when_more_comes,
                a_finished_stream_ends_with_its_last_message,
                a_new_follower_cuts_the_old_one_off,
                a_writer_can_send_the_connection_away_and_the_stream_goes_on,
                running_streams_are_bounded_and_finished_ones_make_room;
            lifetime:
                a_session_is_what_was_agreed_on,
                an_unknown_session_is_not_found,
                a_session_is_found_by_its_principal_and_nobody_else,
                a_log_level_is_in_force_at_once,
                sessions_of_one_principal_are_bounded,
                living_sessions_are_counted,
                an_idle_session_expires_and_one_in_use_does_not,
                a_session_with_a_running_call_does_not_expire,
                a_finished_stream_can_be_resumed_for_a_while,
                deleting_a_session_ends_its_streams,
                nothing_can_be_done_in_a_session_that_has_ended;
            announcing:
                announcements_wait_for_a_connection,
                a_repetition_is_said_again_only_once_it_was_seen,
                a_connection_without_a_cursor_goes_on_where_the_last_one_was,
                only_what_is_subscribed_to_is_announced,
                a_change_is_announced_once_whoever_hears_of_it,
                what_concerns_all_is_announced_to_all,
                subscriptions_are_bounded,
                who_watches_what_is_shared_is_known_to_all_until_then;
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
    // So that a check that is not in the list is a warning: nothing exports it.
    (@exports () $($group:ident: $($check:ident),+;)+) => {
        $(pub use self::$group::{$($check),+};)+
    };
    ($harness:expr) => {
        $crate::session_contract!(@checks tests $harness);
    };
}

session_contract!(@checks exports);

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// What most checks need: two processes and a session.
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

    /// A stream of these messages, finished; the id before the first.
    async fn finished(&self, messages: &[&str]) -> EventId {
        let mut writer = self.open().await;
        for message in messages {
            append(&mut writer, message).await;
        }
        writer.start()
    }

    /// In the other process.
    async fn follow(&self, after: &EventId) -> Deliveries {
        self.other.follow(&self.session, after).await.expect("it can be followed")
    }

    /// The session's own stream, in the other process.
    async fn listen(&self) -> Deliveries {
        self.other.standalone(&self.session).await.expect("it can be followed").1
    }

    async fn is_there(&self) -> bool {
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

/// The next message, or nothing at the stream's end.
async fn next(deliveries: &mut Deliveries) -> Option<String> {
    patiently(deliveries.next()).await.map(text)
}

/// All to the stream's end.
async fn texts(deliveries: Deliveries) -> Vec<String> {
    patiently(deliveries.map(text).collect()).await
}

async fn patiently<F: Future>(wait: F) -> F::Output {
    tokio::time::timeout(PATIENCE, wait).await.expect("it comes in time")
}
