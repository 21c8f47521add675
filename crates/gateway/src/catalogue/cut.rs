//! Why a part of an upstream's lists is not offered.

use std::{fmt, time::Duration};

use super::{MAX_ITEMS, MAX_PAGES};
use crate::{
    error::{UpstreamError, bytes},
    received::{List, Problem, ToolList},
};

/// The name of all lists together, in the place of a method.
const ALL_LISTS: &str = "all lists";

/// A list that is not offered to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutList {
    pub(super) method: &'static str,
    pub(super) why: Cut,
}

/// Why a list is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    Items,
    Pages,
    /// A cursor has come again.
    Circle,
    /// A cursor is none, for this reason.
    Cursor(Problem),
    /// With the other lists, it has more bytes than that.
    Bytes(usize),
    /// Listing took longer than that.
    Time(Duration),
    /// The memory for messages has no room for it.
    NoRoom(usize),
    /// A request for a part of it failed.
    Failed(FailedList),
}

/// Why a list was not read to its end.
pub(super) enum Unread {
    /// The items up to there are offered.
    Cut(Cut),
    /// A request for a page has failed.
    Failed(UpstreamError),
}

impl From<Cut> for Unread {
    fn from(cut: Cut) -> Self {
        Self::Cut(cut)
    }
}

impl From<UpstreamError> for Unread {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

/// Why a request for a list failed.
#[derive(Debug, Clone)]
pub(crate) struct FailedList {
    error: UpstreamError,
}

impl PartialEq for FailedList {
    fn eq(&self, other: &Self) -> bool {
        self.error.to_string() == other.error.to_string()
    }
}

impl Eq for FailedList {}

/// The reader of the reason why a list is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasonReader {
    /// An operator, who reads the error itself.
    Operator,
    /// Anybody. An error may have data of callers, so they read its class alone.
    Anybody,
}

impl CutList {
    pub(super) fn failed(method: &'static str, error: UpstreamError) -> Self {
        Self { method, why: Cut::Failed(FailedList { error }) }
    }

    /// No list can be read, for this reason.
    pub(crate) fn of_all(error: UpstreamError) -> Self {
        Self::failed(ALL_LISTS, error)
    }

    /// Whether the list may be read to its end later.
    pub(crate) fn is_transient(&self) -> bool {
        match &self.why {
            Cut::NoRoom(_) | Cut::Time(_) => true,
            Cut::Failed(failed) => !failed.is_final(),
            Cut::Items | Cut::Pages | Cut::Circle | Cut::Cursor(_) | Cut::Bytes(_) => false,
        }
    }

    /// Whether the upstream has answered with an error that may be another one now.
    pub(crate) fn may_be_asked_again(&self) -> bool {
        match &self.why {
            Cut::Failed(failed) => {
                !failed.is_final() && !matches!(failed.error, UpstreamError::TimedOut { .. })
            }
            _ => false,
        }
    }

    /// Why no tool may be known: the reading of their list has failed.
    pub(super) fn of_tools(&self) -> Option<String> {
        match &self.why {
            _ if self.method != ToolList::METHOD => None,
            Cut::Failed(failed) => Some(failed.error.to_string()),
            Cut::Time(_) | Cut::Cursor(_) => Some(self.to_string()),
            _ => None,
        }
    }

    /// Why the list is cut, for that reader.
    pub(crate) fn show(&self, reader: ReasonReader) -> String {
        match (&self.why, reader) {
            (Cut::Failed(failed), ReasonReader::Operator) => {
                format!("{} cannot be read: {}", self.method, failed.error)
            }
            _ => self.to_string(),
        }
    }
}

impl FailedList {
    /// Whether the upstream does not have the list that it has declared.
    fn is_final(&self) -> bool {
        self.error.is_unknown_method()
    }
}

impl fmt::Display for CutList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Cut::Failed(FailedList { error }) => {
                return write!(f, "{} cannot be read ({})", self.method, error.kind());
            }
            _ => write!(f, "{} is cut: ", self.method)?,
        }

        match &self.why {
            Cut::Items => write!(f, "it has more than {MAX_ITEMS} items"),
            Cut::Pages => write!(f, "it has more than {MAX_PAGES} pages"),
            Cut::Circle => f.write_str("one of its cursors comes again"),
            Cut::Cursor(problem) => write!(f, "{problem}"),
            Cut::Bytes(max) => {
                write!(f, "all lists are over {} (upstreams.max_catalogue)", bytes(*max))
            }
            Cut::Time(after) => {
                write!(f, "it took over {} s, and is read again later", after.as_secs_f64())
            }
            Cut::NoRoom(max) => write!(
                f,
                "there is no room beside other lists and messages, of {} (limits.upstream_bytes)",
                bytes(*max)
            ),
            Cut::Failed(_) => Ok(()),
        }
    }
}
