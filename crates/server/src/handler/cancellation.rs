//! The cancellation of a call.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use tokio_util::sync::CancellationToken;

/// Whether a call is cancelled. Its token is created when a handler asks for it, because most
/// do not. Cheap to clone; all clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_cancelled: AtomicBool,
    token: OnceLock<CancellationToken>,
}

impl Cancellation {
    /// The token that is cancelled with the call.
    pub(super) fn token(&self) -> &CancellationToken {
        let token = self.0.token.get_or_init(CancellationToken::new);
        // Read after the token is visible to `cancel`, so that at least one side cancels it.
        if self.is_cancelled() {
            token.cancel();
        }
        token
    }

    /// Cancels the call.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, SeqCst);
        if let Some(token) = self.0.token.get() {
            token.cancel();
        }
    }

    /// Whether the call is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_made_before_and_after_the_cancellation_are_cancelled() {
        let early = Cancellation::default();
        let late = Cancellation::default();
        let token = early.token().clone();
        assert!(!token.is_cancelled());

        early.cancel();
        late.cancel();

        assert!(token.is_cancelled() && late.token().is_cancelled());
    }
}
