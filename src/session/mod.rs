//! Sessions and stream logs: what the legacy era (2025-03-26 to 2025-11-25)
//! keeps between requests.
//!
//! A session is a small record with a sliding expiry, bound to its principal;
//! no task and no buffer stands for an idle one. A stream is an append-only
//! log of messages with one writer and a closing mark; whoever follows it can
//! lose the connection and go on after the last event it saw.

mod error;
mod event;
mod limits;
mod memory;
#[cfg(feature = "redis")]
mod redis;
mod signal;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;

pub use error::SessionError;
pub use event::{Event, EventId};
pub use limits::SessionLimits;
pub use memory::MemorySessions;
#[cfg(feature = "redis")]
pub use redis::RedisSessions;
pub use signal::{Signal, Signalled, Signals};

use crate::{
    auth::{Owner, Principal},
    protocol::{Announcement, ClientFacts, LogLevel, ProtocolVersion, RequestId},
};

/// What is agreed on, as of one look-up. All but the log level stands while
/// the session lives.
#[derive(Debug, Clone)]
pub struct Session {
    /// 128 random bits in hexadecimal.
    pub id: Arc<str>,
    /// Whose it is; nobody else can use it, even with the id.
    pub principal: Principal,
    /// The protocol revision agreed on.
    pub version: ProtocolVersion,
    /// What the client said of itself.
    pub client: Arc<ClientFacts>,
    /// Which log messages it wants.
    pub log_level: LogLevel,
}

/// What a follower is given, until the stream is closed or somebody else follows it.
pub type Deliveries = Pin<Box<dyn Stream<Item = Result<Delivery, SessionError>> + Send>>;

/// One thing that a follower is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A message.
    Event(Event),
    /// The writer asks for the connection to be closed; the stream goes on
    /// and can be followed again. Nothing comes after this.
    Disconnect {
        /// When the client should come back.
        retry: Duration,
    },
}

/// Who watches a resource of somebody else's, and under which name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Watch {
    /// Whose sessions subscribe to it.
    pub reader: Owner,
    /// The name by which they know it.
    pub link: String,
}

/// Where sessions and their streams are kept. Any error may be
/// [`SessionError::Unavailable`] where that is another process.
#[async_trait]
pub trait Sessions: fmt::Debug + Send + Sync + 'static {
    /// Begins a session.
    ///
    /// # Errors
    /// [`SessionError::TooMany`].
    async fn create(
        &self,
        principal: Principal,
        version: ProtocolVersion,
        client: ClientFacts,
    ) -> Result<Arc<Session>, SessionError>;

    /// The session of that id if it lives and is this principal's; puts its expiry off.
    ///
    /// # Errors
    /// [`SessionError::NotFound`], also for another principal's.
    async fn get(&self, id: &str, principal: &Principal) -> Result<Arc<Session>, SessionError>;

    /// Ends a session and its streams; says whether there was one.
    async fn delete(&self, id: &str, principal: &Principal) -> Result<bool, SessionError>;

    /// Says which log messages the client wants (`logging/setLevel`).
    async fn set_log_level(&self, session: &Session, level: LogLevel) -> Result<(), SessionError>;

    /// Asks for updates of a resource (`resources/subscribe`).
    async fn subscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError>;

    /// Accepts that back.
    async fn unsubscribe(&self, session: &Session, uri: &str) -> Result<(), SessionError>;

    /// Notes for so long that somebody else's sessions subscribe to a resource
    /// of that owner's, under a name of its own.
    async fn watch(
        &self,
        owner: &Owner,
        uri: &str,
        watch: Watch,
        lasting: Duration,
    ) -> Result<(), SessionError>;

    /// Who does, in any order; they may have unsubscribed or gone since.
    async fn watches(&self, owner: &Owner, uri: &str) -> Result<Vec<Watch>, SessionError>;

    /// Opens a stream for the messages of the call of that id. If the process
    /// that writes it dies, whoever follows it is told by an error of that id.
    ///
    /// # Errors
    /// [`SessionError::TooMany`] when too many are open in this session.
    async fn open(
        &self,
        session: &Session,
        call: &RequestId,
    ) -> Result<Box<dyn StreamWriter>, SessionError>;

    /// Follows a stream of this session from after that event. Whoever
    /// followed it before is cut off: a message goes to one connection only
    /// (2025-11-25, transports: Multiple Connections).
    ///
    /// # Errors
    /// [`SessionError::NoStream`] for an id that is not this session's;
    /// [`SessionError::Trimmed`] when what came after it is no longer kept.
    async fn follow(&self, session: &Session, after: &EventId) -> Result<Deliveries, SessionError>;

    /// Follows the session's own stream, which carries what belongs to no
    /// call, from the first message that no connection has been given yet;
    /// with the id that stands before it.
    async fn standalone(&self, session: &Session) -> Result<(EventId, Deliveries), SessionError>;

    /// Appends an announcement to the own streams of all sessions of that
    /// owner that want it. Where several processes hear of the same change and
    /// give it the same name, each session is told once.
    async fn announce(&self, owner: &Owner, announcement: &Announcement, change: Option<&str>);

    /// The same for everybody's sessions.
    async fn announce_to_all(&self, announcement: &Announcement);

    /// Tells the other processes that serve this session. [`Sessions::delete`]
    /// does so by itself.
    async fn signal(&self, session: &Session, signal: Signal) -> Result<(), SessionError>;

    /// What other processes say from now on.
    fn signals(&self) -> Signals;

    /// Where they are kept, if other processes may keep theirs there, too: the
    /// same words in all of those, without what opens it. Nothing where they
    /// are this process's own.
    fn shared(&self) -> Option<String>;

    /// How many there are. Metrics ask every few seconds, so it must cost next
    /// to nothing; one that has expired a moment ago may still count.
    async fn count(&self) -> Result<u64, SessionError>;

    /// Removes what has expired, until dropped.
    async fn maintain(&self);
}

/// The one writer of a stream. Dropping it closes the stream.
#[async_trait]
pub trait StreamWriter: Send {
    /// The id that stands before the first message.
    fn start(&self) -> EventId;

    /// Appends one JSON-RPC message.
    async fn append(&mut self, message: Bytes) -> Result<(), SessionError>;

    /// Appends the last message and closes the stream in one step, so that the
    /// stream of a call that has ended never looks as if it had not.
    async fn finish(&mut self, message: Bytes) -> Result<(), SessionError>;

    /// Asks whoever follows to disconnect, once everything appended so far
    /// has been delivered.
    async fn disconnect(&mut self, retry: Duration) -> Result<(), SessionError>;
}
