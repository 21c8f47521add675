//! The rules for the flow of content from servers into tools.

use std::fmt;
#[cfg(feature = "query")]
use std::sync::Arc;

use larder_oauth::audit;
use larder_store::store::Origins;

use super::form::Reference;
use crate::{handler::Scope, registry::definition::Registry};

/// Content on its way into an argument.
pub(super) struct Flow<'a> {
    pub(super) reference: &'a Reference,
    /// The members and indexes that lead to the argument.
    pub(super) path: &'a [String],
    pub(super) tool: &'a str,
    /// The upstreams that the content comes from. Empty for content that callers and this server have
    /// stored.
    pub(super) origins: Origins,
}

impl fmt::Display for Flow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reference, path, tool, origins } = self;
        write!(f, "{}", reference.uri)?;

        let names = origins.names();
        if !names.is_empty() {
            write!(f, " (from {})", names.join(", "))?;
        }
        write!(f, " as arguments.{} of {tool}", path.join("."))
    }
}

impl Registry {
    /// The first of these servers from which the tool takes no content. `None` if there is none.
    #[cfg(feature = "query")]
    pub(crate) fn refused_origin(&self, tool: &str, origins: &[Arc<str>]) -> Option<Arc<str>> {
        let provider = self.provider_of(tool)?;
        let own = provider.origin();
        let mut others = origins.iter().filter(|origin| own.as_ref() != Some(*origin));
        others.find(|origin| !provider.accepts(Some(&***origin))).cloned()
    }

    /// Decides on content for an argument, and writes both sides to the audit log.
    ///
    /// # Errors
    /// The reason why the content must not flow there, for the model.
    pub(super) fn admit(&self, flow: &Flow<'_>, scope: &Scope) -> Result<(), String> {
        let provider = self.provider_of(flow.tool);
        let accepts = |origin: Option<&str>| {
            provider.as_ref().is_none_or(|provider| provider.accepts(origin))
        };

        let names = flow.origins.names();
        let refused = if names.is_empty() {
            (!accepts(None)).then_some("larder")
        } else {
            names.iter().map(|name| &**name).find(|name| !accepts(Some(*name)))
        };

        if let Some(origin) = refused {
            let why = format!(
                "its content comes from {origin}, from which this tool takes no references (upstreams.refs.accept)."
            );
            audit::refused(&scope.identity, flow, &why);
            return Err(why);
        }

        audit::allowed(&scope.identity, flow);
        scope.store.add_origins(names.iter().cloned());
        Ok(())
    }
}
