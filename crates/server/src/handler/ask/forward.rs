//! Requests of another server, passed on to the client.

use rmcp::model::ClientCapabilities;
use serde_json::Value;

use super::{capability::Capability, request::AskError};
use crate::handler::Context;

/// A request that another server may send to its client.
struct Forwarded {
    method: &'static str,
    capability: Capability,
}

impl Forwarded {
    /// The request of this method; `None` if clients have no such method.
    fn parse(method: &str, params: &Value) -> Option<Self> {
        let (method, capability) = match method {
            "elicitation/create" if params["mode"] == "url" => {
                ("elicitation/create", Capability::UrlElicitation)
            }
            "elicitation/create" => ("elicitation/create", Capability::FormElicitation),
            "sampling/createMessage" => ("sampling/createMessage", Capability::Sampling),
            "roots/list" => ("roots/list", Capability::Roots),
            _ => return None,
        };
        Some(Self { method, capability })
    }
}

/// Whether a client with these capabilities can be sent this request.
pub fn can_be_asked(capabilities: &ClientCapabilities, method: &str, params: &Value) -> bool {
    let forwarded = Forwarded::parse(method, params);
    forwarded.is_some_and(|forwarded| forwarded.capability.is_declared_in(capabilities))
}

impl<S> Context<S> {
    /// Sends the client a request of another server as it is, while the call runs. `key`
    /// differs from the keys of the call's other requests.
    ///
    /// # Errors
    /// The errors of [`Context::elicit`]. A client that does not declare the capability is not asked.
    pub async fn forward(&self, key: &str, method: &str, params: Value) -> Result<Value, AskError> {
        let Some(Forwarded { method, capability }) = Forwarded::parse(method, &params) else {
            return Err(AskError::Unsupported("The client has no such method.".into()));
        };

        if !capability.is_declared_in(&self.client().capabilities) {
            return Err(AskError::Unsupported(format!(
                "The client does not declare the capability {}.",
                capability.declaration()
            )));
        }

        self.ask(key, capability, method, params, Ok).await
    }
}
