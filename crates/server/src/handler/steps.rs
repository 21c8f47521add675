//! The steps of a call: tools that it calls and resources that a workflow reads. Each counts
//! as a request of the caller.

use std::{fmt, sync::Arc};

use larder_oauth::Identity;
use larder_protocol::{Fault, Method};
use tokio::time::{Duration, Instant};

/// Accounts for the steps of calls. The dispatcher implements this trait, because it is in a
/// higher layer than handlers.
pub trait StepAccounts: fmt::Debug + Send + Sync {
    /// Checks the caller's scopes and limit of requests, and writes the audit log.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`], [`Fault::Limited`].
    fn admit(&self, identity: &Identity, method: Method, target: &str) -> Result<(), Fault>;

    /// Records a step in the metrics. `tool` is absent if no such tool is known.
    fn record(&self, method: Method, tool: Option<&str>, error: &'static str, took: Duration);
}

/// A step that runs. Dropped before its end, it counts as cancelled.
pub(super) struct CountedStep<'a> {
    accounts: Arc<dyn StepAccounts>,
    method: Method,
    tool: Option<&'a str>,
    error: &'static str,
    started: Instant,
}

impl<'a> CountedStep<'a> {
    /// Admits a step.
    ///
    /// # Errors
    /// The errors of [`StepAccounts::admit`].
    pub(super) fn admit(
        accounts: &Arc<dyn StepAccounts>,
        identity: &Identity,
        method: Method,
        target: &'a str,
    ) -> Result<Self, Fault> {
        accounts.admit(identity, method, target)?;
        let accounts = Arc::clone(accounts);
        let tool = (method == Method::CallTool).then_some(target);
        Ok(Self { accounts, method, tool, error: "cancelled", started: Instant::now() })
    }

    /// Ends the step. `error` is empty if it succeeded.
    pub(super) fn end(mut self, error: &'static str) {
        self.error = error;
    }
}

impl Drop for CountedStep<'_> {
    fn drop(&mut self) {
        // The caller may have made up the name. It must not become a label.
        let tool = self.tool.filter(|_| matches!(self.error, "" | "tool_error"));
        self.accounts.record(self.method, tool, self.error, self.started.elapsed());
    }
}
