//! [`MessageRefusal`]: why a message is discarded.

/// Why a message was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRefusal {
    /// The message is longer than allowed.
    TooLong,
    /// There is no room for it beside the messages of all upstreams.
    NoRoom,
    /// The message has more JSON values than allowed.
    TooManyValues,
    /// A batch has more messages than allowed.
    TooManyMessages,
    /// A string in it is not JSON.
    NotJson,
}
