//! Whether a modern upstream has answered a request, or asks its client first (2026-07-28, patterns:
//! Multi Round-Trip Requests).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    object::Object,
    problem::Problem,
    question::{self, InputRequest},
    result::RawResult,
};

/// The result of one round.
pub(crate) enum Round {
    Complete(RawResult),
    Asks(InputRequired),
}

/// The questions of a round.
pub(crate) struct InputRequired {
    pub(crate) requests: BTreeMap<String, InputRequest>,
    /// What the upstream wants to get back.
    pub(crate) state: Option<String>,
}

impl RawResult {
    /// Whether the request is complete.
    ///
    /// # Errors
    /// It asks, but its questions cannot be read.
    pub(crate) fn round(self) -> Result<Round, Problem> {
        let kind = self.value.get("resultType").and_then(Value::as_str);
        if kind != Some("input_required") {
            return Ok(Round::Complete(self));
        }

        let mut required = Object::of(self.value, "the result")?;
        let requests = question::read_all(required.take("inputRequests"))?;
        let state = match required.take("requestState") {
            None => None,
            Some(Value::String(state)) => Some(state),
            Some(other) => return Err(Problem::of("requestState must be a text", &other)),
        };
        Ok(Round::Asks(InputRequired { requests, state }))
    }
}
