//! The errors for callers that reached a limit.

use std::time::Duration;

use super::{LimitLevel, LimitReached};
use crate::{compute::Busy, protocol::Fault};

impl From<LimitReached> for Fault {
    fn from(LimitReached { message, retry_after, level }: LimitReached) -> Self {
        match level {
            LimitLevel::Caller => Self::Limited { message, retry_after },
            LimitLevel::Total => Self::Busy { message, retry_after },
        }
    }
}

/// Work that the request needs cannot wait for a thread.
impl From<Busy> for Fault {
    fn from(busy: Busy) -> Self {
        let (message, retry_after) = (busy.to_string(), Duration::from_secs(1));
        match busy {
            Busy::Owner { .. } => Self::Limited { message, retry_after },
            Busy::All { .. } => Self::Busy { message, retry_after },
        }
    }
}
