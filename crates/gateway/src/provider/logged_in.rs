//! Calls at an upstream that asks each caller for a login.

use std::sync::Arc;

use larder_protocol::Fault;
use larder_server::{
    handler::{Context, Elicited, Scope},
    registry::ProvidedTool,
};
use rmcp::model::{self, CallToolResult, JsonObject};

use super::Upstream;
use crate::login::LoginNeeded;
use crate::{catalogue::Catalogue, connections::InUse, error::UpstreamError};

impl Upstream {
    /// Does what [`Upstream::listed`] does, and asks for a login if the upstream asks for one.
    pub(super) async fn logged_in(
        &self,
        scope: &Arc<Scope>,
    ) -> Result<Option<(InUse, Arc<Catalogue>)>, Fault> {
        if let Some(listed) = self.listed(scope).await? {
            return Ok(Some(listed));
        }
        if self.connections.shared.login().is_none() {
            return Ok(None);
        }

        let connection = self.connections.of(scope).await.map_err(UpstreamError::into_fault)?;
        let Some(login) = connection.login_needed() else { return Ok(None) };
        if !ask_to_log_in(&login, scope).await {
            return Err(UpstreamError::Login(login).into_fault());
        }

        connection.link().await.map_err(UpstreamError::into_fault)?;
        let catalogue = connection.known();
        Ok(catalogue.map(|catalogue| (connection, catalogue)))
    }

    /// The tool that is offered while nothing is known of those of the upstream, because the
    /// caller must log in first.
    pub(super) fn login_tool(&self) -> ProvidedTool {
        let upstream = &self.naming.upstream;
        let description = format!("Log in to {upstream}. Its tools are listed after that.");
        let mut schema = JsonObject::new();
        schema.insert("type".into(), "object".into());
        ProvidedTool::new(model::Tool::new(self.login_tool_name(), description, schema), None)
    }

    pub(super) fn login_tool_name(&self) -> String {
        format!("{}__login", self.naming.upstream)
    }

    /// Calls a tool. If the upstream asks for a login and the client can show the user its link,
    /// the call waits for it.
    pub(super) async fn call_logged_in(
        &self,
        name: &str,
        arguments: JsonObject,
        scope: &Arc<Scope>,
    ) -> Result<CallToolResult, UpstreamError> {
        if self.connections.shared.login().is_none() {
            return self.call(name, arguments, scope).await;
        }

        let again = arguments.clone();
        let error = match self.call(name, arguments, scope).await {
            Err(error) if error.login().is_some() => error,
            called => return called,
        };

        match error.login() {
            Some(login) if ask_to_log_in(&login, scope).await => {
                self.call(name, again, scope).await
            }
            _ => Err(error),
        }
    }
}

/// Shows the user the link of a login, if the client can, and waits for the login. Returns
/// whether it has happened.
pub(super) async fn ask_to_log_in(login: &LoginNeeded, scope: &Arc<Scope>) -> bool {
    let context = Context::new(Arc::clone(scope), Arc::new(()));
    if !context.can_elicit_url() {
        return false;
    }

    let key = login.key();
    let message = login.message();
    let asked = context.elicit_url(&key, &message, &login.url).await;
    matches!(asked, Ok(Elicited::Accepted(()))) && login.wait().await
}
