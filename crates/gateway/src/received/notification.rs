//! Notifications of an upstream.

use larder_protocol::{LogLevel, RequestId, SUBSCRIPTION_ID, quote::bounded};
use serde::Deserialize;
use serde_json::Value;

use super::{MESSAGE_CHARS, object::Object};

/// A notification of an upstream.
#[derive(Debug)]
pub(crate) enum Notification {
    Progress {
        /// The request.
        token: i64,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        level: LogLevel,
        logger: Option<String>,
        data: Value,
    },
    /// The upstream no longer waits for the answer to its request.
    Cancelled(RequestId),
    ListChanged,
    /// The resource of this URI has changed.
    ResourceUpdated(String),
    /// The client has done what this question asked for at a URL.
    ElicitationComplete(String),
    /// A modern upstream has taken that subscription.
    Acknowledged(i64),
    /// Anything else, or one that cannot be read: nobody waits for it.
    Other,
}

impl Notification {
    pub(super) fn read(method: &str, params: Value) -> Self {
        Object::of(params, "params")
            .ok()
            .and_then(|params| Self::of(method, params))
            .or_else(|| is_list(method).then_some(Self::ListChanged))
            .unwrap_or(Self::Other)
    }

    fn of(method: &str, mut params: Object) -> Option<Self> {
        Some(match method {
            "notifications/progress" => Self::Progress {
                token: number(&params.take("progressToken")?)?,
                progress: params.take("progress")?.as_f64()?,
                total: params.take("total").and_then(|total| total.as_f64()),
                message: params
                    .text("message")
                    .map(|message| bounded(message, MESSAGE_CHARS).into_owned()),
            },
            "notifications/message" => Self::Log {
                level: level(params.text("level").unwrap_or_default()),
                logger: params.text("logger").map(|name| bounded(name, MESSAGE_CHARS).into_owned()),
                data: params.take("data")?,
            },
            "notifications/cancelled" => {
                Self::Cancelled(RequestId::deserialize(params.take("requestId")?).ok()?)
            }
            "notifications/resources/updated" => Self::ResourceUpdated(params.take_text("uri")?),
            "notifications/elicitation/complete" => {
                Self::ElicitationComplete(params.take_text("elicitationId")?)
            }
            "notifications/subscriptions/acknowledged" => {
                let mut meta = Object::of(params.take("_meta")?, "_meta").ok()?;
                Self::Acknowledged(number(&meta.take(SUBSCRIPTION_ID)?)?)
            }
            _ => return None,
        })
    }
}

fn is_list(method: &str) -> bool {
    matches!(
        method,
        "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
    )
}

/// The level of a log message, also by the names of syslog and of logging libraries. A message at an
/// unknown level is information.
fn level(name: &str) -> LogLevel {
    match name.trim().to_ascii_lowercase().as_str() {
        "debug" => LogLevel::Debug,
        "notice" => LogLevel::Notice,
        "warning" | "warn" => LogLevel::Warning,
        "error" | "err" => LogLevel::Error,
        "critical" | "crit" | "fatal" => LogLevel::Critical,
        "alert" => LogLevel::Alert,
        "emergency" | "emerg" => LogLevel::Emergency,
        _ => LogLevel::Info,
    }
}

/// A number that Larder has sent, which may come back as a text.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_message_at_any_level_is_read() {
        for (sent, level) in [
            (json!("debug"), LogLevel::Debug),
            (json!("warn"), LogLevel::Warning),
            (json!(" WARNING "), LogLevel::Warning),
            (json!("INFO"), LogLevel::Info),
            (json!("Error"), LogLevel::Error),
            (json!("fatal"), LogLevel::Critical),
            (json!("trace"), LogLevel::Info),
            (json!(""), LogLevel::Info),
            (json!(4), LogLevel::Info),
            (json!(null), LogLevel::Info),
        ] {
            let params = json!({ "level": sent, "data": "d" });
            let read = Notification::read("notifications/message", params);
            let Notification::Log { level: read, .. } = read else { panic!("{sent}") };
            assert_eq!(read, level, "{sent}");
        }
        let read = Notification::read("notifications/message", json!({ "data": "d" }));
        assert!(matches!(read, Notification::Log { level: LogLevel::Info, .. }));
    }
}
