//! The cancellation of a call.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use tokio_util::sync::CancellationToken;

/// Whether a call is cancelled. Its token is created when a handler asks for it, because most
/// do not. Cheap to clone; all clones are one.
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
        // After the token is visible to `cancel`, so that one of both cancels it.
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
    fn a_token_is_cancelled_whether_it_was_there_before_or_not() {
        let (early, late) = (Cancellation::default(), Cancellation::default());
        let token = early.token().clone();
        assert!(!token.is_cancelled());
        early.cancel();
        late.cancel();
        assert!(token.is_cancelled() && late.token().is_cancelled());
    }
}
