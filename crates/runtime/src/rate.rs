//! The rate limit of a caller.

use std::time::Duration;

use crate::clock::Timestamp;

/// A token bucket that starts full and refills over the window.
#[derive(Debug)]
pub struct Bucket {
    tokens: f64,
    updated: Timestamp,
}

impl Bucket {
    /// A bucket that holds all its requests.
    pub fn full(requests: u32, now: Timestamp) -> Self {
        Self { tokens: f64::from(requests), updated: now }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The time until there is one.
    pub fn take(
        &mut self,
        requests: u32,
        window: Duration,
        now: Timestamp,
    ) -> Result<(), Duration> {
        let rate = f64::from(requests) / window.as_secs_f64();
        let elapsed = now.since(self.updated).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate).min(f64::from(requests));
        self.updated = now;

        if self.tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.tokens) / rate));
        }

        self.tokens -= 1.0;
        Ok(())
    }

    /// Whether nothing was taken within the window, so that a new bucket is the same.
    pub fn is_idle(&self, window: Duration, now: Timestamp) -> bool {
        now.since(self.updated) >= window
    }
}
