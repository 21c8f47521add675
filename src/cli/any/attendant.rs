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

/// The person at the terminal.
pub(super) struct Terminal {
    bar: ProgressBar,
    log_level: Option<LogLevel>,
    may_ask: bool,
}

impl Terminal {
    pub(super) fn new(log_level: Option<LogLevel>, may_ask: bool) -> Self {
        // Hidden unless standard error is a terminal.
        let bar = ProgressBar::new_spinner();
        Self { bar, log_level, may_ask: may_ask && io::stdin().is_terminal() }
    }

    /// What the person can be asked for.
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
                Err(ClientError::Failed("Interrupted.".into()))
            }
        }
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

        self.bar.finish_and_clear();
        let params = params.clone();
        // Reading a line blocks the thread.
        let asked = tokio::task::spawn_blocking(move || elicitation::ask(&params)).await;
        asked.map_err(|_| "The question could not be asked.".to_owned())
    }
}
