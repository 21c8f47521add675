//! The outcome of a run, for programs.

use rmcp::model::MetaObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// The key of the outcome in a result's `_meta`.
const META_KEY: &str = "larder/workflow";

/// The outcome of a run.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct RunOutcome {
    /// How it ended.
    #[serde(rename = "outcome")]
    end: RunEnd,
    /// The step that failed or handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether another run may succeed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retryable: bool,
    /// The steps that were reached, in order.
    steps: Vec<StepStatus>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RunEnd {
    #[default]
    Completed,
    Failed,
    Handoff,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct StepStatus {
    name: String,
    status: Status,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Done,
    Skipped,
    Failed,
}

impl RunOutcome {
    pub(super) fn record(&mut self, step: &str, status: Status) {
        self.steps.push(StepStatus { name: step.to_owned(), status });
    }

    pub(super) fn failed(&mut self, step: &str, reason: String, retryable: bool) {
        self.record(step, Status::Failed);
        self.end = RunEnd::Failed;
        (self.step, self.reason, self.retryable) = (Some(step.to_owned()), Some(reason), retryable);
    }

    pub(super) fn handed_over(&mut self, step: &str) {
        (self.end, self.step) = (RunEnd::Handoff, Some(step.to_owned()));
    }

    pub(super) fn is_failure(&self) -> bool {
        self.end == RunEnd::Failed
    }

    /// For a result's `_meta`.
    pub(super) fn to_meta(&self) -> MetaObject {
        let mut meta = MetaObject::new();
        meta.0.insert(META_KEY.to_owned(), json!(self));
        meta
    }
}
