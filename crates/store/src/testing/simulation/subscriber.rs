//! [`Subscriber`]: checks the changes that a subscriber of one owner receives.

use std::collections::VecDeque;

use futures_util::FutureExt;

use super::model::Announced;
use crate::store::{Changes, MissedChanges};

/// How far a subscriber may fall behind, in changes, as in [`ChangeFeed`](crate::store::ChangeFeed).
const BACKLOG: usize = 256;

/// A subscriber, and the changes that it has not received.
#[derive(Debug)]
pub(super) struct Subscriber {
    changes: Changes,
    /// The last changes that were published since the last check, at most [`BACKLOG`].
    expected: VecDeque<Announced>,
    has_missed: bool,
    /// Whether the subscriber receives only at the end.
    pub(super) is_slow: bool,
}

impl Subscriber {
    pub(super) fn new(changes: Changes, is_slow: bool) -> Self {
        Self { changes, expected: VecDeque::new(), has_missed: false, is_slow }
    }

    pub(super) fn expect(&mut self, change: Announced) {
        if self.expected.len() == BACKLOG {
            self.expected.pop_front();
            self.has_missed = true;
        }
        self.expected.push_back(change);
    }

    /// Receives all published changes, and checks that each arrives once and in order, after an error
    /// if there were too many. Returns whether there were too many.
    pub(super) fn check(&mut self, uri_of: impl Fn(u8) -> String, at: &str) -> bool {
        if self.has_missed {
            assert_eq!(self.next(), Some(Err(MissedChanges)), "the overflow is reported; {at}");
        }

        for (kind, slot) in self.expected.drain(..).collect::<Vec<_>>() {
            assert_eq!(self.next(), Some(Ok((kind, uri_of(slot)))), "{at}");
        }

        assert_eq!(self.next(), None, "nothing else is announced; {at}");
        std::mem::take(&mut self.has_missed)
    }

    /// The next change, if there is one.
    fn next(&mut self) -> Option<Result<(crate::store::ChangeKind, String), MissedChanges>> {
        // Without `unconstrained`, tokio makes a task that receives much wait for others.
        let next = tokio::task::unconstrained(self.changes.next()).now_or_never()?;
        Some(next.map(|change| {
            let change = change.expect("the feed exists");
            (change.kind, change.uri.as_str().to_owned())
        }))
    }
}
