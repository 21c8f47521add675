//! [`Pace`]: how soon lists are read again that are announced as changed again and again.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest pause, within which each change is seen.
const LONGEST: Duration = Duration::from_secs(60);
/// After so much time without a change, the next one is seen at once.
const QUIET: Duration = Duration::from_secs(10);

/// The pauses before the lists of an upstream are read again. They grow as long as changes follow
/// each other, because an upstream may announce one after each reading.
pub(super) struct Pace {
    pause: Duration,
    read_at: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { pause: Duration::ZERO, read_at: Instant::now() }
    }

    /// The lists have been read.
    pub(super) fn read(&mut self) {
        self.read_at = Instant::now();
    }

    /// The lists are announced as changed. Returns the pause before they are read again.
    pub(super) fn changed(&mut self) -> Duration {
        self.pause = if self.read_at.elapsed() >= QUIET {
            Duration::ZERO
        } else {
            (self.pause * 2).clamp(SHORTEST, LONGEST)
        };
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_minute_until_it_is_quiet() {
        let mut pace = Pace::new();
        let pauses: Vec<_> = (0..12)
            .map(|_| {
                pace.read();
                pace.changed().as_millis()
            })
            .collect();
        let growing = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200];
        assert_eq!(pauses[..10], growing);
        assert_eq!(pauses[10..], [60_000, 60_000]);

        pace.read();
        tokio::time::advance(QUIET).await;
        assert_eq!(pace.changed(), Duration::ZERO);
        assert_eq!(pace.changed(), Duration::ZERO, "the lists have not been read since");
        pace.read();
        assert_eq!(pace.changed(), SHORTEST);
    }
}
