//! Sessions and stream logs: the state that the legacy protocol revisions (2025-03-26 to
//! 2025-11-25) keep between requests.
//!
//! A session is a small record with a sliding expiry, bound to its principal. An idle session has
//! no task and no buffer. A stream is an append-only log of messages with one writer and a closing
//! mark. A follower that loses its connection resumes after the last event it received.

mod budget;
mod claims;
mod error;
mod event;
mod limits;
mod memory;
mod redis;
mod signal;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use larder_identity::{Owner, Principal};
use larder_protocol::{Announcement, ClientFacts, LogLevel, ProtocolVersion, RequestId};
use larder_runtime::held::HeldBytes;
use serde_json::json;

pub use claims::{Claims, Notes, SharedParts};
pub use error::SessionError;
pub use event::{Event, EventId};
pub use limits::SessionLimits;
pub use memory::MemorySessions;
pub use redis::{RedisClaims, RedisNotes, RedisSessions, SessionOwnerPage};
pub use signal::{SessionSignal, Signal, Signals};

/// A snapshot of a session. Only the log level can change later.
#[derive(Debug, Clone)]
pub struct Session {
    /// The session's id: 128 random bits in hexadecimal.
    pub id: Arc<str>,
    /// The owner. No other principal can use the session, even with its id.
    pub principal: Principal,
    /// The negotiated protocol revision.
    pub version: ProtocolVersion,
    /// The client's implementation info and capabilities.
    pub client: Arc<ClientFacts>,
    /// The minimum level of log messages for the client.
    pub log_level: LogLevel,
}

/// The items that a follower receives. They end when the stream is closed or another follower takes
/// over.
pub type Deliveries = Pin<Box<dyn Stream<Item = Result<Delivery, SessionError>> + Send>>;

/// An item for a follower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A message.
    Event(Event),
    /// The writer asks the client to reconnect. This is the last item; the stream itself continues
    /// and can be followed again.
    Disconnect {
        /// How long the client should wait before it reconnects.
        retry: Duration,
    },
}

/// A subscriber of a shared resource, and the link to which it subscribed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Watch {
    /// The owner of the subscribed sessions.
    pub reader: Owner,
    /// The URI of the link that the sessions subscribed to.
    pub link: String,
}

/// Storage of sessions and their streams. If the storage is another process, any method may fail
/// with [`SessionError::Unavailable`].
#[async_trait]
pub trait Sessions: fmt::Debug + Send + Sync + 'static {
    /// Creates a session.
    ///
    /// # Errors
    /// [`SessionError::TooMany`] if the principal has too many sessions, [`SessionError::Full`] if
    /// all principals together have too many.
    async fn create(
        &self,
        principal: Principal,
        version: ProtocolVersion,
        client: ClientFacts,
    ) -> Result<Arc<Session>, SessionError>;

    /// Looks up a session of this principal and extends its expiry.
    ///
    /// # Errors
    /// [`SessionError::NotFound`], also for another principal's session.
    async fn get(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, SessionError>;

    /// Whether there is a session of this principal. Does not extend its expiry.
    async fn exists(&self, id: &str, principal: &Principal) -> Result<bool, SessionError>;

    /// Ends a session and its streams. Returns whether it existed.
    async fn delete(&self, id: &str, principal: &Principal) -> Result<bool, SessionError>;

    /// Sets the log level (`logging/setLevel`).
    async fn set_log_level(&self, session: &Session, level: LogLevel) -> Result<(), SessionError>;

    /// Subscribes to updates of a resource (`resources/subscribe`).
    async fn subscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError>;

    /// Removes a subscription (`resources/unsubscribe`).
    async fn unsubscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError>;

    /// Records that sessions of another owner subscribe to a resource of `owner` through a link.
    /// The record expires after `ttl`.
    async fn watch(
        &self,
        owner: &Owner,
        uri: &str,
        watch: Watch,
        ttl: Duration,
    ) -> Result<(), SessionError>;

    /// The recorded watches of a resource, in any order. Their sessions may have unsubscribed or
    /// ended since.
    async fn watches(&self, owner: &Owner, uri: &str) -> Result<Vec<Watch>, SessionError>;

    /// Opens a stream for the messages of a call. If the writing process dies, followers receive an
    /// error response with the call's id.
    ///
    /// # Errors
    /// [`SessionError::TooMany`] if the session has too many open streams,
    /// [`SessionError::NotFound`] if the session has ended.
    async fn open(
        &self,
        session: &Session,
        call: &RequestId,
    ) -> Result<Box<dyn StreamWriter>, SessionError>;

    /// Follows a stream of this session from after an event. Disconnects the previous follower,
    /// because a message goes to one connection only (2025-11-25, transports: Multiple
    /// Connections).
    ///
    /// # Errors
    /// [`SessionError::NoStream`] for an id of another session;
    /// [`SessionError::Trimmed`] if later events are no longer kept.
    async fn follow(&self, session: &Session, after: &EventId) -> Result<Deliveries, SessionError>;

    /// Follows the session's standalone stream, which carries messages that belong to no call, from
    /// the first message that no connection has received. Also returns the event id before that
    /// message.
    async fn standalone(&self, session: &Session) -> Result<(EventId, Deliveries), SessionError>;

    /// Appends a message to the session's standalone stream, if a connection follows the stream
    /// now. Returns whether one does.
    async fn send_now(&self, session: &Session, message: Bytes) -> Result<bool, SessionError>;

    /// Appends an announcement to the standalone streams of the owner's sessions; an updated
    /// resource only where the session subscribes to it. `changes` are the IDs of the announced
    /// changes, oldest first: if several processes announce equal changes, each session receives
    /// the announcement once.
    async fn announce(&self, owner: &Owner, announcement: &Announcement, changes: &[Arc<str>]);

    /// Appends an announcement to the standalone streams of all sessions.
    async fn announce_to_all(&self, announcement: &Announcement);

    /// Sends a signal to the other processes that serve this session. [`Sessions::delete`] itself
    /// sends [`Signal::Ended`].
    async fn signal(&self, session: &Session, signal: Signal) -> Result<(), SessionError>;

    /// The signals that other processes send from this call on.
    fn signals(&self) -> Signals;

    /// The identity of the storage, equal in all processes that share it, without credentials.
    /// `None` if the sessions belong to this process alone.
    fn shared_location(&self) -> Option<String>;

    /// The number of sessions, which may include recently expired ones. Cheap, because metrics call
    /// this every few seconds.
    async fn count(&self) -> Result<u64, SessionError>;

    /// Removes expired sessions and streams, until dropped.
    async fn maintain(&self);
}

/// Whether the last message of a stream is kept for followers that come later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// The message is kept for the replay time, if there is room.
    Kept,
    /// Only the present follower receives it, because the client can send the request again.
    NotKept,
}

/// The error response (JSON) in place of an answer that is not kept.
fn unkept_answer_error(call: &RequestId) -> String {
    let message = "The connection was lost before the answer was sent, and the answer is not kept. Send the request again.";
    json!({ "jsonrpc": "2.0", "id": call, "error": { "code": -32603, "message": message } })
        .to_string()
}

/// The one writer of a stream. Dropping it closes the stream.
#[async_trait]
pub trait StreamWriter: Send {
    /// The event id that precedes the first message.
    fn start(&self) -> EventId;

    /// Appends one JSON-RPC message.
    async fn append(&mut self, message: Bytes) -> Result<(), SessionError>;

    /// Appends the last message and closes the stream atomically, so that a finished call is never
    /// mistaken for a call whose process died.
    ///
    /// If the message is not kept, or the budget of kept streams has no room for it, only the
    /// present follower receives it. Without a follower, the stream then ends with an error
    /// response that asks the client to send the request again.
    ///
    /// The memory of the message counts until no follower has it any more, unless it counts as
    /// kept.
    async fn finish(
        &mut self,
        message: HeldBytes,
        retention: Retention,
    ) -> Result<(), SessionError>;

    /// Asks the follower to reconnect once everything appended so far is delivered.
    async fn disconnect(&mut self, retry: Duration) -> Result<(), SessionError>;
}
