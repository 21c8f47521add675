//! [`Total`]: the number of keys of one kind in all shards, for a limit on all owners together.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum age of a count that leaves room.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The maximum age of a count that leaves no room.
const MAX_AGE_IF_FULL: Duration = Duration::from_millis(100);

/// An estimate: the last count of all shards, and the additions of this instance since. Several
/// instances exceed a limit at most by their additions within a second.
#[derive(Debug, Default)]
pub(crate) struct Total(Mutex<CountState>);

#[derive(Debug, Default)]
struct CountState {
    /// The start of the last count.
    begun: Option<Instant>,
    counted: u64,
    /// The additions of this instance since the start of the last count.
    added: u64,
}

impl CountState {
    fn has_room(&self, max: usize) -> bool {
        self.counted.saturating_add(self.added) < max as u64
    }

    /// Whether to count now. If so, this call begins the count, and other callers use the previous
    /// count until it ends.
    fn begin_count(&mut self, max: usize) -> bool {
        let max_age = if self.has_room(max) { MAX_AGE } else { MAX_AGE_IF_FULL };
        let is_due = self.begun.is_none_or(|begun| begun.elapsed() >= max_age);

        if is_due {
            self.begun = Some(Instant::now());
        }
        is_due
    }
}

impl Total {
    /// Counts one more key if there is room. `count` counts all shards, and is awaited about once a
    /// second. A `max` of 0 means no limit.
    pub(crate) async fn admit<E>(
        &self,
        max: usize,
        count: impl Future<Output = Result<u64, E>>,
    ) -> Result<Option<Added<'_>>, E> {
        if max == 0 {
            return Ok(Some(Added(self)));
        }

        let before = {
            let mut state = self.0.lock();
            state.begin_count(max).then_some(state.added)
        };
        if let Some(before) = before {
            let counted = count.await?;
            let mut state = self.0.lock();
            state.counted = counted;
            state.added = state.added.saturating_sub(before);
        }

        let mut state = self.0.lock();
        if !state.has_room(max) {
            return Ok(None);
        }

        state.added += 1;
        Ok(Some(Added(self)))
    }
}

/// An addition that counts. Dropping it undoes it, unless [`keep`](Self::keep) is called.
#[derive(Debug)]
#[must_use]
pub(crate) struct Added<'a>(&'a Total);

impl Added<'_> {
    /// Confirms the addition: it counts from now on.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Added<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.added = state.added.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use super::*;

    async fn admits(total: &Total, max: usize, counted: u64) -> bool {
        let Ok(added) = total.admit(max, async { Ok::<_, Infallible>(counted) }).await;
        added.map(Added::keep).is_some()
    }

    /// Admits one more, and panics if the shards are counted.
    async fn admits_uncounted(total: &Total, max: usize) -> bool {
        let count = async { panic!("it counts") };
        let Ok(added) = total.admit::<Infallible>(max, count).await;
        added.map(Added::keep).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_shards_are_counted_once_a_second_and_sooner_where_there_is_no_room() {
        let total = Total::default();
        assert!(admits(&total, 5, 2).await);
        assert!(admits_uncounted(&total, 5).await);

        tokio::time::advance(MAX_AGE_IF_FULL).await;
        assert!(admits_uncounted(&total, 5).await);

        assert!(!admits(&total, 5, 5).await);
        assert!(!admits_uncounted(&total, 5).await);

        tokio::time::advance(MAX_AGE_IF_FULL).await;
        assert!(admits(&total, 5, 4).await);
        assert!(!admits_uncounted(&total, 5).await);

        tokio::time::advance(MAX_AGE).await;
        assert!(admits(&total, 5, 1).await);
        assert!(admits_uncounted(&total, 0).await, "0 means no limit");
    }

    #[tokio::test(start_paused = true)]
    async fn an_addition_that_is_dropped_does_not_count() {
        let total = Total::default();
        assert!(admits(&total, 2, 0).await);
        for _ in 0..3 {
            let Ok(added) = total.admit::<Infallible>(2, pending()).await;
            drop(added.expect("there is room"));
        }

        assert!(admits_uncounted(&total, 2).await);
        assert!(!admits_uncounted(&total, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn additions_during_a_count_still_count_and_a_count_may_be_abandoned() {
        let total = Total::default();
        let counting = total.admit(3, async {
            assert!(admits_uncounted(&total, 3).await);
            Ok::<_, Infallible>(1)
        });

        let Ok(added) = counting.await;
        added.expect("there is room").keep();
        assert!(!admits_uncounted(&total, 3).await, "one is counted, and two were added");

        tokio::time::advance(MAX_AGE).await;
        let abandoned = total.admit::<Infallible>(3, pending());
        tokio::time::timeout(MAX_AGE, abandoned).await.expect_err("it counts for ever");
        assert!(admits(&total, 3, 0).await);
    }
}
