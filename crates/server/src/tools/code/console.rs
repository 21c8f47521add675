//! [`Console`]: the console output of a run, bounded.

/// The console output of one run.
#[derive(Debug, Default)]
pub(super) struct Console {
    text: String,
    is_cut: bool,
}

impl Console {
    /// Adds a line, of which at most `max_bytes` of all output are kept.
    pub(super) fn add(&mut self, line: &str, max_bytes: usize) {
        let left = max_bytes.saturating_sub(self.text.len());
        let end = line.floor_char_boundary(left.min(line.len()));
        self.is_cut |= end < line.len() || left == 0;
        if left > 0 {
            self.text += &line[..end];
            self.text.push('\n');
        }
    }

    /// The paragraph about the output. `None` if there is none.
    pub(super) fn told(&self) -> Option<String> {
        let cut = if self.is_cut { ", cut (code.console_bytes)" } else { "" };
        let text = self.text.trim_end();
        (!text.is_empty()).then(|| format!("console{cut}:\n{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_up_to_its_limit_and_said_to_be_cut() {
        let mut console = Console::default();
        assert_eq!(console.told(), None);

        console.add("one", 10);
        assert_eq!(console.told().as_deref(), Some("console:\none"));

        console.add("äöüßäöüß", 10);
        console.add("more", 10);
        console.add("more", 10);
        assert_eq!(console.told().as_deref(), Some("console, cut (code.console_bytes):\none\näöü"));
    }
}
