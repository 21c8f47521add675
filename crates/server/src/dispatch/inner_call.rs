//! Calls of tools that are not listed: a request for `call_tool` becomes one for the tool that
//! it names, so scopes, limits, audit, references and spilling are those of that tool.

use larder_protocol::{Member, Method, Params};

use super::{Call, Dispatcher};
use crate::registry::CALL_TOOL;

impl Dispatcher {
    /// The parameters of the call that a call contains. `None` for other calls, for invalid
    /// arguments, and for callers who may not use `call_tool`.
    pub(super) fn inner_call(&self, call: &Call) -> Option<Params> {
        if call.method != Method::CallTool || !self.registry.hides_provided_tools() {
            return None;
        }

        let is_call_tool = |params: &Params| {
            params.text(Member::Name).is_ok_and(|name| name.as_deref() == Some(CALL_TOOL))
        };

        if !is_call_tool(&call.params) || !self.registry.offers(call.identity.grant(), CALL_TOOL) {
            return None;
        }
        call.params.inner_call().filter(|inner| !is_call_tool(inner))
    }

    /// The parameters of a call that names a tool as the server behind this one does, with the name
    /// under which the tool is offered: pages of that server know no other name. `None` if a tool
    /// is offered under the name in the call, or if several servers have such a tool.
    pub(super) fn page_call(&self, call: &Call) -> Option<Params> {
        if call.method != Method::CallTool || self.registry.has_no_providers() {
            return None;
        }
        let name = call.params.text(Member::Name).ok()??;
        let offered = self.registry.offered_tool(&name)?;
        call.params.with_name(&offered)
    }
}
