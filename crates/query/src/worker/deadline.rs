//! [`Deadline`]: the time by which a question must be answered.

use std::time::Duration;

use larder_runtime::clock::{Clock, SystemClock, Timestamp};

use crate::{QueryError, Question, wire::Progress};

/// The end of the time for a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Timestamp,
    seconds: u64,
}

impl Deadline {
    pub(super) fn new(question: &Question) -> Self {
        let seconds = question.seconds;
        Self { at: SystemClock.now().saturating_add(Duration::from_secs(seconds)), seconds }
    }

    /// The deadline in milliseconds since 1970, for [`Deadline::has_passed`].
    pub(super) fn as_millis(&self) -> u64 {
        self.at.as_millis()
    }

    pub(super) fn has_passed(millis: u64) -> bool {
        SystemClock.now() >= Timestamp::from_millis(millis)
    }

    /// Fails after the deadline.
    ///
    /// # Errors
    /// [`QueryError::Time`].
    pub(super) fn check(&self, progress: Progress) -> Result<(), QueryError> {
        if Self::has_passed(self.as_millis()) { Err(self.error(progress)) } else { Ok(()) }
    }

    pub(super) fn error(&self, Progress { read, total }: Progress) -> QueryError {
        QueryError::Time { seconds: self.seconds, read, total }
    }
}
