//! The encoding of tasks in Redis.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use larder_protocol::Fault;
use larder_runtime::clock::Timestamp;
use serde_json::Value;

use crate::task::{TaskEnd, TaskState, TaskView};

/// A task in the form in which Redis stores it.
pub(super) struct StoredTask {
    created: Timestamp,
    updated: Timestamp,
    ttl: Duration,
    message: Option<String>,
    questions: BTreeMap<String, Value>,
    pub(super) answers: Vec<(String, Value)>,
    end: Option<TaskEnd>,
    pub(super) runner: String,
    /// Whether the runner was missing in an earlier check.
    pub(super) suspect: bool,
}

impl StoredTask {
    /// Decodes the fields of the task's hash. `None` if there are no fields.
    pub(super) fn decode(mut fields: HashMap<String, String>) -> Result<Option<Self>, Fault> {
        if fields.is_empty() {
            return Ok(None);
        }

        let end = fields.remove("end").map(|end| serde_json::from_str(&end)).transpose();
        let mut questions = BTreeMap::new();
        let mut answers = Vec::new();
        for (field, value) in &fields {
            let json = || serde_json::from_str(value).map_err(|_| damaged());
            if let Some(key) = field.strip_prefix("question:") {
                questions.insert(key.to_owned(), json()?);
            } else if let Some(key) = field.strip_prefix("answer:") {
                answers.push((key.to_owned(), json()?));
            }
        }

        let number = |field| fields.get(field).and_then(|n| n.parse().ok()).ok_or_else(damaged);

        Ok(Some(Self {
            created: Timestamp::from_millis(number("created")?),
            updated: Timestamp::from_millis(number("updated")?),
            ttl: Duration::from_millis(number("ttl")?),
            message: fields.get("message").cloned(),
            questions,
            answers,
            end: end.map_err(|_| damaged())?,
            runner: fields.get("runner").cloned().ok_or_else(damaged)?,
            suspect: fields.contains_key("doubted"),
        }))
    }

    pub(super) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    pub(super) fn view(self, id: &str, poll_interval: Duration) -> TaskView {
        let Self { created, updated, ttl, message, questions, end, .. } = self;
        let state = match end {
            Some(end) => TaskState::Ended(end),
            None if questions.is_empty() => TaskState::Working,
            None => TaskState::InputRequired(questions),
        };

        TaskView { id: id.into(), state, message, created, updated, ttl, poll_interval }
    }
}

pub(super) fn encode_end(end: &TaskEnd) -> String {
    // An end consists of JSON values and strings, which can always be encoded.
    serde_json::to_string(end).unwrap_or_default()
}

pub(super) fn damaged() -> Fault {
    tracing::error!("cannot decode a task in Redis");
    Fault::Internal("This task is corrupt. Call the tool again.".into())
}
