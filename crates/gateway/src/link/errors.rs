//! The errors of a link, which name its upstream.

use std::sync::Arc;

use super::Link;
use crate::{error::UpstreamError, message::MessageRefusal, received::MAX_BATCH};

impl Link {
    /// The error for what the upstream should not have sent.
    pub(crate) fn invalid(&self, problem: &str) -> UpstreamError {
        UpstreamError::Invalid { name: Arc::clone(&self.name), problem: problem.to_owned() }
    }

    /// The error for a request without an answer.
    pub(crate) fn no_answer(&self, problem: &str) -> UpstreamError {
        UpstreamError::NoAnswer { name: Arc::clone(&self.name), problem: problem.to_owned() }
    }

    /// The error for a request at the end of its stream or body, with what came there instead of
    /// its answer.
    pub(crate) fn unanswered(&self, request: Option<i64>, end: &str) -> UpstreamError {
        let state = self.state.lock();
        let running = request.and_then(|id| state.running.get(&id));
        let problem = running.and_then(|running| running.problem.as_ref());
        let problem = problem.map(|problem| format!("{end}: {problem}"));
        drop(state);
        self.no_answer(problem.as_deref().unwrap_or(end))
    }

    /// The error for a request that the upstream has not processed.
    pub(crate) fn not_processed(&self, reason: &str) -> UpstreamError {
        UpstreamError::NotProcessed { name: Arc::clone(&self.name), reason: reason.to_owned() }
    }

    /// The error for a message that was discarded.
    pub(crate) fn refusal_error(&self, why: MessageRefusal) -> UpstreamError {
        let name = Arc::clone(&self.name);
        match why {
            MessageRefusal::TooLong => {
                UpstreamError::TooLong { name, max: self.settings.max_message }
            }
            MessageRefusal::NoRoom => UpstreamError::NoRoom { name, max: self.budget.max() },
            MessageRefusal::TooManyValues => {
                UpstreamError::TooManyValues { name, max: self.settings.max_values }
            }
            MessageRefusal::TooManyMessages => {
                UpstreamError::TooManyMessages { name, max: MAX_BATCH }
            }
            MessageRefusal::NotJson => {
                UpstreamError::Invalid { name, problem: "a text in it is not JSON".to_owned() }
            }
        }
    }

    /// The error for a request during which the upstream ended.
    pub(crate) fn ended_during(&self, what: &str) -> UpstreamError {
        let how = self.state.lock().ended.clone();
        let name = Arc::clone(&self.name);
        let request = what.to_owned();
        UpstreamError::Ended { name, how: how.unwrap_or_else(|| "closed".into()), request }
    }

    /// The error for a request that took too long.
    pub(crate) fn timed_out(&self) -> UpstreamError {
        let name = Arc::clone(&self.name);
        UpstreamError::TimedOut { name, after: self.settings.call_timeout }
    }
}
