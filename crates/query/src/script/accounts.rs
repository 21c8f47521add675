//! [`Accounts`]: what a worker has asked for and got, against the limits.

use std::collections::BTreeSet;

use super::{ScriptError, ScriptLimits, ScriptMessage};

/// The most console lines of one script: a worker sends no line that would not be kept.
const MAX_LINES: u64 = 10_000;

/// The accounts of one script.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    calls: u64,
    lines: u64,
    bytes_in: u64,
    /// The calls that have no answer yet.
    open: BTreeSet<u64>,
}

impl Accounts {
    /// Counts a message.
    ///
    /// # Errors
    /// The limit that it exceeds; [`ScriptError::Failed`] if a worker that is as it should be does
    /// not send it.
    pub(super) fn receive(
        &mut self,
        message: &ScriptMessage,
        limits: &ScriptLimits,
    ) -> Result<(), ScriptError> {
        match message {
            ScriptMessage::Call { id, .. } | ScriptMessage::Handle { id, .. } => {
                if self.calls >= limits.calls {
                    return Err(ScriptError::Calls { limit: limits.calls });
                }
                if *id != self.calls + 1 || self.open.len() >= limits.calls_at_once.max(1) {
                    return Err(ScriptError::Failed);
                }

                self.calls += 1;
                self.open.insert(*id);
                Ok(())
            }
            ScriptMessage::Log { .. } => {
                self.lines += 1;
                if self.lines > MAX_LINES { Err(ScriptError::Failed) } else { Ok(()) }
            }
            ScriptMessage::Done { .. } | ScriptMessage::Failed { .. } => Ok(()),
        }
    }

    /// Counts an answer of so many bytes.
    ///
    /// # Errors
    /// The limit that it exceeds.
    pub(super) fn answer(
        &mut self,
        id: u64,
        bytes: usize,
        limits: &ScriptLimits,
    ) -> Result<(), ScriptError> {
        self.open.remove(&id);
        self.bytes_in = self.bytes_in.saturating_add(bytes as u64);
        if self.bytes_in > limits.bytes_in {
            return Err(ScriptError::BytesIn { limit: limits.bytes_in });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: u64) -> ScriptMessage {
        let text = format!(r#"{{"handle":{{"id":{id},"operation":{{"open":{{"uri":"x:1"}}}}}}}}"#);
        ScriptMessage::parse(text.as_bytes()).expect("a message")
    }

    #[test]
    fn a_worker_that_breaks_the_rules_is_not_answered() {
        let limits =
            ScriptLimits { calls: 3, calls_at_once: 2, bytes_in: 10, ..ScriptLimits::default() };
        let failed = Err(ScriptError::Failed);

        let mut accounts = Accounts::default();
        assert_eq!(accounts.receive(&call(2), &limits), failed, "the first call is call 1");
        assert_eq!(accounts.receive(&call(1), &limits), Ok(()));
        assert_eq!(accounts.receive(&call(1), &limits), failed, "a number is used once");
        assert_eq!(accounts.receive(&call(2), &limits), Ok(()));
        assert_eq!(accounts.receive(&call(3), &limits), failed, "two calls are open");

        assert_eq!(accounts.answer(1, 10, &limits), Ok(()));
        assert_eq!(accounts.receive(&call(3), &limits), Ok(()));
        assert_eq!(accounts.answer(2, 1, &limits), Err(ScriptError::BytesIn { limit: 10 }));
        assert_eq!(accounts.receive(&call(4), &limits), Err(ScriptError::Calls { limit: 3 }));
    }

    #[test]
    fn console_lines_are_bounded_whatever_the_worker_sends() {
        let limits = ScriptLimits::default();
        let mut accounts = Accounts::default();
        let line = ScriptMessage::Log { text: String::new() };
        let received = (0..=MAX_LINES).map(|_| accounts.receive(&line, &limits));
        assert_eq!(received.last(), Some(Err(ScriptError::Failed)));
    }
}
