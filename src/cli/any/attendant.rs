//! [`Terminal`]: the person at the terminal, who sees progress and log messages while a request
//! runs, and answers the server's questions.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use async_trait::async_trait;
use console::Style;
use indicatif::{ProgressBar, ProgressStyle};
use larder_gateway::direct::Attendant;
use larder_protocol::{LogLevel, quote::visible};
use serde_json::{Value, json};

use super::elicitation;
use crate::cli::client::ClientError;

/// The most pages that a person is asked to visit for one request.
const MAX_PAGES: usize = 8;

/// The person at the terminal.
pub(super) struct Terminal {
    /// The name of the server, for its questions.
    server: String,
    bar: ProgressBar,
    log_level: Option<LogLevel>,
    may_ask: bool,
}

impl Terminal {
    pub(super) fn new(server: String, log_level: Option<LogLevel>, may_ask: bool) -> Self {
        // Hidden unless standard error is a terminal.
        let bar = ProgressBar::new_spinner();
        // The questions are on standard error, the answers on standard input.
        let may_ask = may_ask && io::stdin().is_terminal() && io::stderr().is_terminal();
        Self { server, bar, log_level, may_ask }
    }

    /// The client capabilities of a person at a terminal.
    pub(super) fn capabilities(&self) -> Value {
        if self.may_ask { json!({ "elicitation": { "form": {}, "url": {} } }) } else { json!({}) }
    }

    /// Removes the progress from the terminal.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Runs a request until Ctrl-C: then it is dropped, which cancels it at the server.
    pub(super) async fn until_interrupted<T>(
        &self,
        request: impl Future<Output = T>,
    ) -> Result<T, ClientError> {
        tokio::select! {
            done = request => Ok(done),
            _ = tokio::signal::ctrl_c() => {
                self.clear();
                // The notification goes out while the process still runs.
                tokio::time::sleep(Duration::from_millis(200)).await;
                Err(ClientError::Interrupted)
            }
        }
    }

    /// Asks the person to visit the pages without which the server refuses a request, and to say
    /// when that is done. Returns whether it is.
    pub(super) async fn visits(&self, elicitations: &Value) -> bool {
        let pages = elicitations.as_array().map(Vec::as_slice).unwrap_or_default();
        if pages.is_empty() || pages.len() > MAX_PAGES {
            return false;
        }

        for page in pages {
            match self.answer("elicitation/create", page).await {
                Ok(answer) if answer["action"] == "accept" => {}
                Ok(_) | Err(_) => return false,
            }
        }
        self.asked(elicitation::is_done).await.unwrap_or(false)
    }

    /// Asks the person, with the progress out of the way. Reading a line blocks the thread.
    async fn asked<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&str) -> T + Send + 'static,
    ) -> Option<T> {
        let server = self.server.clone();
        let bar = self.bar.clone();
        let asked = tokio::task::spawn_blocking(move || bar.suspend(|| ask(&server)));
        asked.await.ok()
    }
}

/// A number of steps as the bar counts them.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
fn steps(number: f64) -> u64 {
    number.clamp(0.0, 1e15).round() as u64
}

#[async_trait]
impl Attendant for Terminal {
    fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let template = match total {
            Some(_) => "{bar:32} {pos}/{len} {msg}",
            None => "{spinner} {pos} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }

        // A fraction of one would not move a bar of whole steps.
        let scale = if total.is_some_and(|total| total <= 1.0) { 100.0 } else { 1.0 };
        if let Some(total) = total {
            self.bar.set_length(steps(total * scale));
        }
        // A request may be sent again, after the person has visited pages.
        if self.bar.is_finished() {
            self.bar.reset();
        }
        self.bar.set_message(visible(message.unwrap_or_default()).into_owned());
        self.bar.set_position(steps(progress * scale));
        self.bar.tick();
    }

    fn log(&self, level: LogLevel, logger: Option<&str>, data: &Value) {
        let style = match level {
            LogLevel::Debug => Style::new().dim(),
            LogLevel::Info | LogLevel::Notice => Style::new().cyan(),
            LogLevel::Warning => Style::new().yellow(),
            _ => Style::new().red(),
        };

        let name = json!(level);
        let name = style.for_stderr().apply_to(name.as_str().unwrap_or_default());
        let logger = logger.map(|logger| format!("{}: ", visible(logger))).unwrap_or_default();
        let text = match data {
            Value::String(text) => visible(text).into_owned(),
            other => visible(&other.to_string()).into_owned(),
        };

        self.bar.suspend(|| {
            // Without standard error there is nobody to tell.
            let _ = writeln!(io::stderr(), "{name}: {logger}{text}");
        });
    }

    async fn answer(&self, method: &str, params: &Value) -> Result<Value, String> {
        if method != "elicitation/create" || !self.may_ask {
            return Err("There is nobody who can be asked that.".into());
        }

        let params = params.clone();
        let asked = self.asked(move |server| elicitation::ask(server, &params)).await;
        asked.ok_or_else(|| "The question could not be asked.".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_is_shown_again_after_it_was_removed() {
        let terminal = Terminal::new("a server".into(), None, false);
        terminal.progress(1.0, Some(2.0), None);
        terminal.clear();
        assert!(terminal.bar.is_finished());

        terminal.progress(1.0, Some(2.0), None);
        assert!(!terminal.bar.is_finished());
    }
}
