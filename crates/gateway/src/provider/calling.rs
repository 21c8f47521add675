//! `tools/call` of an upstream's tool.

use std::sync::Arc;

use larder_protocol::ErrorResponse;
use larder_server::handler::Scope;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::{Value, json};

use super::Upstream;
use crate::{
    connections::repeats,
    error::UpstreamError,
    received::{CallAnswer, RawResult},
    tasks, wire,
};

/// How a call has begun.
enum Begun {
    /// The call was sent: its result, with a note about the process for the caller.
    Sent(RawResult, Option<String>),
    /// The call was of the tool that logs in, and the caller is logged in.
    LoggedIn,
}

impl Upstream {
    /// Calls a tool, or goes on with the call that an earlier round has begun.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        scope: &Arc<Scope>,
    ) -> Result<CallToolResult, UpstreamError> {
        let (result, note) = match self.requests.resume(scope).await {
            Some(resumed) => (resumed?, None),
            None => match self.begin_call(name, arguments, scope).await? {
                Begun::Sent(result, note) => (result, note),
                Begun::LoggedIn => {
                    let done = format!("You are logged in to {}.", self.naming.upstream);
                    return Ok(CallToolResult::success(vec![ContentBlock::text(done)]));
                }
            },
        };

        let (mut result, exact) = match self.read_result(result)? {
            CallAnswer::Done { result, exact } => (result, exact),
            CallAnswer::Task(task) => {
                let connection = self.connections.of(scope).await?;
                let link = connection.link().await?;
                let requests = &self.requests;
                let finished = tasks::finish(task, requests, &connection, &link, name, scope);
                match self.read_result(finished.await?)? {
                    CallAnswer::Done { result, exact } => (result, exact),
                    CallAnswer::Task(_) => {
                        return Err(self.invalid("the result of a task must not be a task"));
                    }
                }
            }
        };

        self.naming.offer_blocks(&mut result.content);
        self.naming.offer_meta(&mut result.meta);
        result.content.extend(note.map(ContentBlock::text));
        scope.control.set_exact_content(exact);
        Ok(*result)
    }

    fn read_result(&self, result: RawResult) -> Result<CallAnswer, UpstreamError> {
        result.read().map_err(|problem| self.invalid(&problem.to_string()))
    }

    /// Sends a call. One that has no lasting effect is sent again if the upstream
    /// ends meanwhile.
    async fn begin_call(
        &self,
        name: &str,
        arguments: JsonObject,
        scope: &Arc<Scope>,
    ) -> Result<Begun, UpstreamError> {
        let connection = self.connections.of(scope).await?;
        let mut arguments = Some(Value::Object(arguments));

        for is_last in [false, true] {
            let link = connection.link().await?;
            let catalogue = connection.known();
            let tool = catalogue.as_ref().and_then(|catalogue| catalogue.tool(name));
            let Some(tool) = tool else {
                if self.connections.shared.login().is_some() && name == self.login_tool_name() {
                    return Ok(Begun::LoggedIn);
                }
                return Err(connection.unlisted().unwrap_or_else(|| unknown_tool(name)));
            };

            let mut params = json!({ "name": tool.own_name });
            let may_repeat = !is_last && (repeats(tool) || self.is_remote);
            if tool.is_task {
                wire::add_param(&mut params, "task", tasks::request());
            }
            let sent = if may_repeat { arguments.clone() } else { arguments.take() };
            wire::add_param(&mut params, "arguments", sent.unwrap_or_default());

            let own_name = &tool.own_name;
            connection.begins_call();
            let sent =
                self.requests.send(&connection, &link, "tools/call", params, own_name, scope);
            match sent.await {
                Err(UpstreamError::NotProcessed { .. }) if may_repeat => {}
                Err(UpstreamError::Ended { .. }) if may_repeat && repeats(tool) => {}
                Err(error) => return Err(error),
                Ok(result) => return Ok(Begun::Sent(result, connection.take_anew())),
            }
        }

        Err(unknown_tool(name))
    }
}

fn unknown_tool(name: &str) -> UpstreamError {
    let message = format!("Unknown tool: {name}");
    UpstreamError::Refused(ErrorResponse { code: -32602, message, data: None })
}
