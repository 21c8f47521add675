//! The standard error of a child process, for operators: logged at a limited rate, and its last
//! lines again when the process fails. Callers never read it, because it may have secrets.

use std::{collections::VecDeque, sync::Arc};

use larder_protocol::quote::bounded;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, BufReader};

use super::{
    budget::Charge,
    log_rate::LogRate,
    message::{
        Assembly,
        line::{IncomingLine, read_line},
    },
};

/// The most bytes of one line; longer lines are skipped.
const LINE_BYTES: usize = 8 << 10;
/// The most characters of a line that are logged.
const LINE_CHARS: usize = 1_000;
/// How many last lines are kept.
const KEPT_LINES: usize = 5;

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
        let mut rate = LogRate::new();

        loop {
            let line = match read_line(&mut stderr, Assembly::plain(LINE_BYTES, Charge::default()))
                .await
            {
                Ok(IncomingLine::Message(line)) => line,
                Ok(IncomingLine::Refused { .. }) => continue,
                Ok(IncomingLine::End) | Err(_) => return,
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
}
