//! Why a part of an upstream's lists is not offered.

use std::{fmt, time::Duration};

use super::{MAX_ITEMS, MAX_PAGES};
use crate::error::bytes;

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
    /// With the other lists, it has more bytes than that.
    Bytes(usize),
    /// It took longer than that.
    Time(Duration),
    /// The memory for messages has no room for it.
    NoRoom(usize),
    /// A request for a part of it failed with an error of this class. The error may have data of
    /// callers, so only the log has it.
    Failed(&'static str),
}

impl CutList {
    /// Whether there may be room for the list later.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.why, Cut::NoRoom(_) | Cut::Time(_) | Cut::Failed(_))
    }
}

impl fmt::Display for CutList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is cut: ", self.method)?;

        match &self.why {
            Cut::Items => write!(f, "it has more than {MAX_ITEMS} items"),
            Cut::Pages => write!(f, "it has more than {MAX_PAGES} pages"),
            Cut::Circle => f.write_str("one of its cursors comes again"),
            Cut::Bytes(max) => {
                write!(f, "all lists are over {} (upstreams.max_catalogue)", bytes(*max))
            }
            Cut::Time(after) => {
                write!(f, "it took over {} s (upstreams.call_timeout)", after.as_secs_f64())
            }
            Cut::NoRoom(max) => write!(
                f,
                "there is no room beside other lists and messages, of {} (limits.upstream_bytes)",
                bytes(*max)
            ),
            Cut::Failed(kind) => write!(f, "a request for it failed ({kind}), as the log says"),
        }
    }
}
