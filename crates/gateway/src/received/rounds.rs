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
    /// The state that the upstream wants to get back.
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
        if requests.is_empty() && state.is_none() {
            // Without either, the next request would be the same as this one, and so on without end.
            let expected = "a result that requires input must have inputRequests or requestState";
            return Err(Problem::of(expected, &required.into_value()));
        }
        Ok(Round::Asks(InputRequired { requests, state }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::repair::Repaired, *};

    #[test]
    fn a_round_that_asks_nothing_and_has_no_state_is_a_problem() {
        let round = |mut result: Value| {
            result["resultType"] = json!("input_required");
            let result = RawResult::of_json(&result.to_string(), Repaired::default());
            result.expect("it is JSON").round()
        };

        for sent in [
            json!({}),
            json!({ "inputRequests": {} }),
            json!({ "inputRequests": null, "requestState": null }),
        ] {
            let problem = round(sent.clone()).err().expect("it is a problem").to_string();
            assert!(problem.contains("inputRequests or requestState"), "{problem}");
        }
        for sent in [
            json!({ "requestState": "" }),
            json!({ "inputRequests": { "q": { "method": "roots/list" } } }),
        ] {
            assert!(matches!(round(sent), Ok(Round::Asks(_))));
        }
    }
}
