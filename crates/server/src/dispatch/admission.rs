//! Checks scopes and the caller's limits before any part of a response is sent.

use std::{borrow::Cow, fmt, time::Duration};

use larder_oauth::{Grant, Identity, Principal, audit};
use larder_protocol::{Fault, Member, Method, Params};
use rmcp::model::Reference;

use super::{Call, Dispatcher, End, access_log, instrument};
use crate::{
    admission::{Limits, Permit},
    registry::{ListedBy, Registry},
};

impl Dispatcher {
    /// The caller of a line in the access log, if calls are logged.
    pub(super) fn logged_caller(
        &self,
        call: &Call,
        tool: Option<&str>,
    ) -> Option<access_log::Caller> {
        let is_own = || {
            tool.is_none_or(|tool| matches!(self.registry.listed_by(tool), Some(ListedBy::Server)))
        };
        self.traffic.access().caller(&call.identity, call.method, &call.params, is_own)
    }

    /// Logs a call that ends before it runs.
    pub(super) fn log_refused(&self, call: &Call, fault: &Fault) {
        let tool = instrument::tool(call.method, &call.params);
        let Some(caller) = self.logged_caller(call, tool.as_deref()) else { return };

        let ended = access_log::EndedCall {
            method: call.method,
            tool: tool.as_deref(),
            end: End::of_fault(fault),
            bytes_in: call.params.as_bytes().len() as u64,
            bytes_out: None,
            took: Duration::ZERO,
        };
        self.traffic.access().ended(&caller, &ended);
    }

    /// The limits on what each caller uses.
    pub fn caller_limits(&self) -> &Limits {
        &self.caller_limits
    }

    /// Checks that the caller has the scopes that a request needs, and writes the decision
    /// to the audit log.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`] with all required scopes.
    pub fn authorize(
        &self,
        method: Method,
        params: &Params,
        identity: &Identity,
    ) -> Result<(), Fault> {
        if is_unlimited(identity) {
            return Ok(());
        }
        authorize(&self.registry, method, target(method, params).as_deref(), identity)
    }

    /// Checks the permission to read a URI, without an MCP message.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`].
    pub(crate) fn authorize_read(&self, uri: &str, identity: &Identity) -> Result<(), Fault> {
        authorize(&self.registry, Method::ReadResource, Some(uri), identity)
    }

    /// Checks the permission for what a tool does, without an MCP message.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`].
    pub(crate) fn authorize_tool(&self, tool: &str, identity: &Identity) -> Result<(), Fault> {
        authorize(&self.registry, Method::CallTool, Some(tool), identity)
    }

    /// Checks the permission of notifications, responses, streams and the end of a session.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`].
    pub fn authorize_other(&self, action: &str, identity: &Identity) -> Result<(), Fault> {
        if is_unlimited(identity) {
            return Ok(());
        }
        check_scopes(
            identity,
            &self.registry.required_scopes(Method::Ping, None),
            &AuditedAction(action, None),
        )
    }

    /// Admits the call to the caller's concurrent calls. `ping` is always admitted.
    pub(super) fn permit(
        &self,
        method: Method,
        identity: &Identity,
    ) -> Result<Option<Permit>, Fault> {
        if method == Method::Ping {
            return Ok(None);
        }

        let permit = self.caller_limits.call(identity);
        permit.map(Some).map_err(|limited| {
            audit::refused(identity, &method.as_str(), &limited);
            limited.into()
        })
    }
}

/// Without authentication all is allowed, and nothing is audited.
fn is_unlimited(identity: &Identity) -> bool {
    *identity.principal() == Principal::Local && *identity.grant() == Grant::All
}

/// Checks that the caller has the scopes that a method needs for its target.
pub(super) fn authorize(
    registry: &Registry,
    method: Method,
    target: Option<&str>,
    identity: &Identity,
) -> Result<(), Fault> {
    if is_unlimited(identity) {
        return Ok(());
    }

    let required = registry.required_scopes(method, target);
    // The call of an unknown tool is refused later, which is its one line.
    let is_unknown =
        method == Method::CallTool && target.is_some_and(|tool| registry.is_unknown_tool(tool));
    if is_unknown && identity.allows(&required) {
        return Ok(());
    }

    check_scopes(identity, &required, &AuditedAction(method.as_str(), target))
}

/// A method and its target, for the audit log.
pub(super) fn audited(method: Method, target: &str) -> impl fmt::Display + '_ {
    AuditedAction(method.as_str(), Some(target))
}

fn check_scopes(
    identity: &Identity,
    required: &larder_oauth::Scopes,
    action: &AuditedAction<'_>,
) -> Result<(), Fault> {
    if identity.allows(required) {
        audit::allowed(identity, action);
        return Ok(());
    }

    let fault =
        Fault::InsufficientScope { required: required.names().map(str::to_owned).collect() };
    audit::refused(identity, action, &fault);
    Err(fault)
}

/// The tool or prompt name or the URI that a request names. If it cannot be read, the
/// method itself reports the error.
fn target(method: Method, params: &Params) -> Option<Cow<'_, str>> {
    let text = |member| params.text(member).ok().flatten();

    match method {
        Method::CallTool | Method::GetPrompt => text(Member::Name),
        Method::ReadResource | Method::Subscribe => text(Member::Uri),
        Method::Complete => {
            let reference: Reference = params.read(Member::Ref).ok()??;
            let name = reference.as_prompt_name().or(reference.as_resource_uri());
            name.map(|name| name.to_string().into())
        }
        _ => None,
    }
}

/// An entry of the audit log, such as `tools/call read_resource`.
struct AuditedAction<'a>(&'a str, Option<&'a str>);

impl fmt::Display for AuditedAction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)?;
        self.1.map_or(Ok(()), |target| write!(f, " {target}"))
    }
}
