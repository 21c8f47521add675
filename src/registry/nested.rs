//! Calling a tool from a handler, as if the caller itself had called it.

use std::sync::Arc;

use rmcp::model::CallToolResult;
use serde_json::Value;

use super::{Asking, Context, Control, Scope};
use crate::protocol::Fault;

impl<S> Context<S> {
    /// Calls another tool of this server: by the same caller, with the same
    /// checks, and with its own progress and questions kept from the client.
    ///
    /// # Errors
    /// As the caller would see it.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<CallToolResult, Fault> {
        let control = Arc::new(Control::default());
        let asking = Asking::No("A step of another call cannot ask the client.");
        let scope = Scope {
            progress_token: None,
            asking: asking.clone(),
            control: Arc::clone(&control),
            ..self.scope().clone()
        };
        let call = std::pin::pin!(self.registry().call_tool(name, Some(arguments), scope));
        match control.run(&asking, call).await? {
            Ok(result) => result,
            // Without a client to follow it, a call never becomes a task.
            Err(_) => Err(Fault::Internal(format!("The tool {name} did not come to an end."))),
        }
    }
}
