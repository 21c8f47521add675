//! The standard error of a child process, for operators: logged at a limited rate, and its last lines
//! again when the process fails. Callers never read it, because it may have secrets.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, BufReader},
    time::Instant,
};

use super::{
    budget::Charge,
    message::{
        Assembly,
        line::{Incoming, read_line},
    },
};
use crate::quote::bounded;

/// The most bytes of one line; longer lines are skipped.
const LINE_BYTES: usize = 8 << 10;
/// The most characters of a line that are logged.
const LINE_CHARS: usize = 1_000;
/// How many last lines are kept.
const KEPT_LINES: usize = 5;
/// How many lines are logged at once.
const BURST: u32 = 50;
/// After which time another line may be logged.
const INTERVAL: Duration = Duration::from_millis(200);

/// The last lines of a process, escaped.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// The last lines, in one.
    pub(super) fn show(&self) -> String {
        let lines = self.0.lock();
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Reads lines until the end.
    pub(super) async fn read(self, upstream: Arc<str>, stderr: impl AsyncRead + Unpin) {
        let mut stderr = BufReader::new(stderr);
        let mut rate = Rate::new();

        loop {
            let line = match read_line(&mut stderr, Assembly::plain(LINE_BYTES, Charge::default()))
                .await
            {
                Ok(Incoming::Message(line)) => line,
                Ok(Incoming::Refused { .. }) => continue,
                Ok(Incoming::End) | Err(_) => return,
            };

            let line = String::from_utf8_lossy(&line.bytes);
            // Escaped, so that a line of standard error is a single line of the log.
            let line = bounded(line.trim_end(), LINE_CHARS).replace('\n', "\\n");
            if line.is_empty() {
                continue;
            }

            match rate.take() {
                Some(0) => tracing::info!(%upstream, "{line}"),
                Some(skipped) => tracing::info!(%upstream, skipped, "{line}"),
                None => {}
            }

            let mut lines = self.0.lock();
            if lines.len() == KEPT_LINES {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }
}

/// Limits how many lines are logged.
struct Rate {
    left: u32,
    since: Instant,
    /// How many lines were not logged since the last one that was.
    skipped: u64,
}

impl Rate {
    fn new() -> Self {
        Self { left: BURST, since: Instant::now(), skipped: 0 }
    }

    /// Whether a line may be logged: then how many were not before it.
    fn take(&mut self) -> Option<u64> {
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

    #[tokio::test]
    async fn the_last_lines_are_escaped() {
        let lines = LastLines::default();
        let long = "x".repeat(5_000);
        let text = format!("first\n\nred \u{1b}[31m\u{202e}\n{long}\n");

        lines.clone().read("odd".into(), text.as_bytes()).await;
        let shown = lines.show();

        assert!(shown.starts_with(r"first | red \u{1b}[31m\u{202e} | xxx"), "{shown}");
        assert!(shown.chars().count() < 1_100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_lines_is_logged_in_part() {
        let mut rate = Rate::new();

        let logged = (0..1_000).filter_map(|_| rate.take()).count();
        assert_eq!(logged, 50);

        tokio::time::advance(INTERVAL).await;
        assert_eq!((rate.take(), rate.take()), (Some(950), None));
    }
}
