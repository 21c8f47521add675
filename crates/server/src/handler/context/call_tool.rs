//! Steps of a handler: calling a tool, and reading a resource as a request would.

use std::sync::Arc;

use larder_protocol::{Fault, Method, quote::shortened};
use larder_store::store::StoredResource;
use rmcp::model::CallToolResult;
use serde_json::{Value, value::RawValue};

use super::Context;
use crate::handler::{AskMode, Polled, Scope, steps::CountedStep};

impl<S> Context<S> {
    /// Calls another tool of this server as the same caller, with the same
    /// checks: it counts as a request, in the caller's limits, the audit log and
    /// the metrics. The called tool sends no progress and cannot ask the client.
    ///
    /// # Errors
    /// The error that the caller would get; [`Fault::Internal`] if calls are
    /// nested more than 4 deep.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<CallToolResult, Fault> {
        self.call_exactly(name, arguments).await.map(|(result, _)| result)
    }

    /// Calls another tool as [`Context::call_tool`] does. Returns also the JSON of the structured
    /// content as it was sent, where a value does not keep its numbers.
    ///
    /// # Errors
    /// The errors of [`Context::call_tool`].
    pub(crate) async fn call_exactly(
        &self,
        name: &str,
        arguments: Value,
    ) -> Result<(CallToolResult, Option<Box<RawValue>>), Fault> {
        let step = self.step(Method::CallTool, name)?;
        let result = self.nested_call(name, arguments).await;
        step.end(match &result {
            Ok((result, _)) if result.is_error == Some(true) => "tool_error",
            Ok(_) => "",
            Err(_) => "error",
        });
        result
    }

    /// Finds resources as [`Context::find_all`] does, as a request like [`Context::call_tool`].
    pub(crate) async fn read_step(&self, uri: &str) -> Result<Vec<StoredResource>, Fault> {
        let step = self.step(Method::ReadResource, uri)?;
        let found = self.find_all(uri).await;
        step.end(if found.is_ok() { "" } else { "error" });
        found
    }

    fn step<'a>(&self, method: Method, target: &'a str) -> Result<CountedStep<'a>, Fault> {
        let scope = self.scope();
        CountedStep::admit(&scope.steps, &scope.identity, method, target)
    }

    async fn nested_call(
        &self,
        name: &str,
        arguments: Value,
    ) -> Result<(CallToolResult, Option<Box<RawValue>>), Fault> {
        let control = Arc::new(self.scope().control.nested()?);
        let asking = AskMode::Unavailable("A tool that another tool calls cannot ask the client.");
        let scope = Arc::new(Scope {
            progress_token: None,
            asking: asking.clone(),
            control: Arc::clone(&control),
            ..Scope::clone(self.scope())
        });

        // Boxed, because calls can be nested.
        let mut call = Box::pin(self.scope().server.call_tool(name, Some(arguments), scope));
        match control.run(&asking, call.as_mut()).await {
            Polled::Returned(result) => result.map(|result| {
                let exact = control.exact_content(result.structured_content.as_ref());
                (result, exact)
            }),
            Polled::Failed(fault) => Err(fault),
            // Without requests to the client, a call never becomes a task.
            Polled::Suspended(_) => {
                Err(Fault::Internal(format!("The tool {} did not finish.", shortened(name))))
            }
        }
    }
}
