//! The client capabilities that requests need.

use rmcp::model::ClientCapabilities;
use serde_json::{Value, json};

use crate::handler::{AskMode, Context};

/// A capability that the client must declare before it is sent a request.
#[derive(Clone, Copy)]
pub(super) enum Capability {
    FormElicitation,
    UrlElicitation,
    Sampling,
    Roots,
}

impl Capability {
    pub(super) fn is_declared_in(self, capabilities: &ClientCapabilities) -> bool {
        let declared = serde_json::to_value(capabilities).unwrap_or_default();
        let elicitation = declared.get("elicitation");

        match self {
            // An empty declaration means forms (2025-11-25, client: Elicitation).
            Self::FormElicitation => {
                elicitation.is_some_and(|e| e.get("form").is_some() || e.get("url").is_none())
            }
            Self::UrlElicitation => elicitation.is_some_and(|e| e.get("url").is_some()),
            Self::Sampling => declared.get("sampling").is_some(),
            Self::Roots => declared.get("roots").is_some(),
        }
    }

    /// The declaration as a client writes it.
    pub(super) fn declaration(self) -> Value {
        match self {
            Self::FormElicitation => json!({ "elicitation": { "form": {} } }),
            Self::UrlElicitation => json!({ "elicitation": { "url": {} } }),
            Self::Sampling => json!({ "sampling": {} }),
            Self::Roots => json!({ "roots": {} }),
        }
    }
}

impl<S> Context<S> {
    /// Whether the client supports form elicitation.
    pub fn can_elicit(&self) -> bool {
        Capability::FormElicitation.is_declared_in(&self.client().capabilities)
    }

    /// Whether the client can show a URL to its user, and be asked to.
    pub fn can_elicit_url(&self) -> bool {
        !matches!(self.scope().asking, AskMode::Unavailable(_))
            && Capability::UrlElicitation.is_declared_in(&self.client().capabilities)
    }

    /// Whether the client supports sampling.
    pub fn can_sample(&self) -> bool {
        Capability::Sampling.is_declared_in(&self.client().capabilities)
    }

    /// Whether the client supports roots.
    pub fn can_list_roots(&self) -> bool {
        Capability::Roots.is_declared_in(&self.client().capabilities)
    }
}
