//! Who may do what, decided before anything of an answer goes out.

use std::{borrow::Cow, fmt};

use rmcp::model::Reference;

use super::Dispatcher;
use crate::{
    admission::{LimitReached, Limits, Permit},
    auth::{Grant, Identity, Principal, audit},
    protocol::{Fault, Member, Method, Params},
};

impl Dispatcher {
    /// Bounds on what one caller uses.
    pub fn principals(&self) -> &Limits {
        &self.principals
    }

    /// Whether the caller may do that: says so in the audit log.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`] with all that it takes.
    pub fn authorize(
        &self,
        method: Method,
        params: &Params,
        identity: &Identity,
    ) -> Result<(), Fault> {
        if *identity.principal() == Principal::Local && *identity.grant() == Grant::All {
            return Ok(());
        }
        let target = target(method, params);
        let required = self.registry.required(method, target.as_deref());
        decide(identity, &required, &What(method.as_str(), target.as_deref()))
    }

    /// The same for what is no request: a notification, a stream, an end.
    ///
    /// # Errors
    /// [`Fault::InsufficientScope`].
    pub fn authorize_other(&self, what: &str, identity: &Identity) -> Result<(), Fault> {
        if *identity.principal() == Principal::Local && *identity.grant() == Grant::All {
            return Ok(());
        }
        decide(identity, &self.registry.required(Method::Ping, None), &What(what, None))
    }

    /// A place among the caller's calls. Asking whether anybody is there takes none.
    pub(super) fn permit(
        &self,
        method: Method,
        identity: &Identity,
    ) -> Result<Option<Permit>, Fault> {
        if method == Method::Ping {
            return Ok(None);
        }
        let permit = self.principals.call(identity);
        permit.map(Some).map_err(|limited| {
            audit::refused(identity, &method.as_str(), &limited);
            limited.into()
        })
    }
}

fn decide(
    identity: &Identity,
    required: &crate::auth::Scopes,
    what: &What<'_>,
) -> Result<(), Fault> {
    if identity.allows(required) {
        audit::allowed(identity, what);
        return Ok(());
    }
    let fault =
        Fault::InsufficientScope { required: required.names().map(str::to_owned).collect() };
    audit::refused(identity, what, &fault);
    Err(fault)
}

impl From<LimitReached> for Fault {
    fn from(LimitReached { message, retry_after }: LimitReached) -> Self {
        Self::Limited { message, retry_after }
    }
}

/// What a request is about: a tool's or prompt's name, or a URI. What cannot
/// be read is the method's own to complain of.
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

/// For the audit log: `tools/call read_resource`.
struct What<'a>(&'a str, Option<&'a str>);

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)?;
        self.1.map_or(Ok(()), |target| write!(f, " {target}"))
    }
}
