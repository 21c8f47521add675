//! [`LogRate`]: limits how many lines of the log an upstream causes.

use std::time::Duration;

use tokio::time::Instant;

/// How many lines are logged at once.
const BURST: u32 = 50;
/// After which time another line may be logged.
const INTERVAL: Duration = Duration::from_millis(200);

/// Limits how many lines are logged.
pub(super) struct LogRate {
    left: u32,
    since: Instant,
    /// How many lines were not logged since the last one that was.
    skipped: u64,
}

impl LogRate {
    pub(super) fn new() -> Self {
        Self { left: BURST, since: Instant::now(), skipped: 0 }
    }

    /// Whether a line may be logged: then how many were not before it.
    pub(super) fn take(&mut self) -> Option<u64> {
        let intervals = self.since.elapsed().as_nanos() / INTERVAL.as_nanos();
        if intervals > 0 {
            self.since = Instant::now();
            self.left =
                u32::try_from(intervals).unwrap_or(BURST).saturating_add(self.left).min(BURST);
        }

        if self.left == 0 {
            self.skipped += 1;
            return None;
        }

        self.left -= 1;
        Some(std::mem::take(&mut self.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_lines_is_logged_in_part() {
        let mut rate = LogRate::new();

        let logged = (0..1_000).filter_map(|_| rate.take()).count();
        assert_eq!(logged, 50);

        tokio::time::advance(INTERVAL).await;
        assert_eq!((rate.take(), rate.take()), (Some(950), None));
    }
}
