//! Calling a tool from a handler, as if the caller itself had called it.

use std::sync::Arc;

use rmcp::model::CallToolResult;
use serde_json::Value;

use super::{Asking, Context, Scope};
use crate::protocol::Fault;

impl<S> Context<S> {
    /// Calls another tool of this server: by the same caller, with the same
    /// checks, and with its own progress and questions kept from the client.
    ///
    /// # Errors
    /// As the caller would see it; [`Fault::Internal`] when calls lie more than
    /// 4 deep within each other.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<CallToolResult, Fault> {
        let control = Arc::new(self.scope().control.nested()?);
        let asking = Asking::No("A step of another call cannot ask the client.");
        let scope = Arc::new(Scope {
            progress_token: None,
            asking: asking.clone(),
            control: Arc::clone(&control),
            ..Scope::clone(self.scope())
        });
        // On the heap, since calls may lie within each other.
        let mut call = Box::pin(self.scope().server.call_tool(name, Some(arguments), scope));
        match control.run(&asking, call.as_mut()).await? {
            Ok(result) => result,
            // Without a client to follow it, a call never becomes a task.
            Err(_) => Err(Fault::Internal(format!("The tool {name} did not come to an end."))),
        }
    }
}
