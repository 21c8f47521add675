//! Calling a tool from a handler.

use std::sync::Arc;

use rmcp::model::CallToolResult;
use serde_json::Value;

use super::Context;
use crate::{
    handler::{AskMode, Scope},
    protocol::Fault,
};

impl<S> Context<S> {
    /// Calls another tool of this server as the same caller, with the same
    /// checks. The called tool sends no progress and cannot ask the client.
    ///
    /// # Errors
    /// The error that the caller would get; [`Fault::Internal`] if calls are
    /// nested more than 4 deep.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<CallToolResult, Fault> {
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
        match control.run(&asking, call.as_mut()).await? {
            Ok(result) => result,
            // Without requests to the client, a call never becomes a task.
            Err(_) => Err(Fault::Internal(format!("The tool {name} did not finish."))),
        }
    }
}
