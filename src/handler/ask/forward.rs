//! Requests of another server, passed on to the client.

use serde_json::Value;

use super::{capability::Capability, request::AskError};
use crate::handler::{AskMode, Context};

impl<S> Context<S> {
    /// Sends the client a request of another server as it is, on the call's
    /// stream: `elicitation/create`, `sampling/createMessage` or `roots/list`.
    ///
    /// # Errors
    /// As [`Context::elicit`].
    pub(crate) async fn forward(&self, method: &str, params: Value) -> Result<Value, AskError> {
        let (method, capability) = match method {
            "elicitation/create" if params["mode"] == "url" => {
                ("elicitation/create", Capability::UrlElicitation)
            }
            "elicitation/create" => ("elicitation/create", Capability::FormElicitation),
            "sampling/createMessage" => ("sampling/createMessage", Capability::Sampling),
            "roots/list" => ("roots/list", Capability::Roots),
            _ => return Err(AskError::Unsupported("The client has no such method.".into())),
        };
        if !matches!(self.scope().asking, AskMode::OnStream(_)) {
            let reason = "The client can only be asked on the stream of a call.";
            return Err(AskError::Unsupported(reason.into()));
        }
        self.ask("forwarded", capability, method, params, Ok).await
    }
}
