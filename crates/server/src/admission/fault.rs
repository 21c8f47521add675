//! The errors for callers that reached a limit.

use larder_protocol::Fault;

use super::{LimitLevel, LimitReached};

impl From<LimitReached> for Fault {
    fn from(LimitReached { message, retry_after, level }: LimitReached) -> Self {
        match level {
            LimitLevel::Caller => Self::Limited { message, retry_after },
            LimitLevel::Total => Self::Busy { message, retry_after },
        }
    }
}
