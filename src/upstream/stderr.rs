//! The standard error of a child process: logged, and its last lines kept for
//! errors.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, BufReader};

use super::{
    budget::Charge,
    message::{
        Assembly,
        line::{Incoming, read_line},
    },
};

/// The most bytes of one line; longer lines are skipped.
const LINE_BYTES: usize = 8 << 10;
/// How many last lines are kept.
const KEPT_LINES: usize = 5;
/// The most characters of the kept lines that an error shows.
const SHOWN_CHARS: usize = 500;

/// The last lines of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    /// The last lines, in one.
    pub(super) fn show(&self) -> String {
        let lines = self.0.lock();
        let joined = lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ");
        let skipped = joined.chars().count().saturating_sub(SHOWN_CHARS);
        joined.chars().skip(skipped).collect()
    }

    /// Reads lines until the end.
    pub(super) async fn read(self, upstream: Arc<str>, stderr: impl AsyncRead + Unpin) {
        let mut stderr = BufReader::new(stderr);
        loop {
            match read_line(&mut stderr, Assembly::plain(LINE_BYTES, Charge::default())).await {
                Ok(Incoming::Message(line)) => {
                    let line = String::from_utf8_lossy(&line.bytes).trim_end().to_owned();
                    if line.is_empty() {
                        continue;
                    }
                    tracing::info!(%upstream, "{line}");
                    let mut lines = self.0.lock();
                    if lines.len() == KEPT_LINES {
                        lines.pop_front();
                    }
                    lines.push_back(line);
                }
                Ok(Incoming::Refused { .. }) => {}
                Ok(Incoming::End) | Err(_) => return,
            }
        }
    }
}
