//! Calls with the reserved argument: what their results are projected to.

use std::sync::Arc;

use larder_protocol::Fault;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::Value;

use super::{
    definition::Registry,
    projection::{InputReferences, Paging, Projection, RESERVED, not_called},
};
use crate::handler::Scope;

/// The most calls around a call that calls a tool several times: `call_tool` is one.
const MAX_FAN_OUT_DEPTH: u8 = 1;

impl Registry {
    /// Takes the reserved argument out of the arguments of a call; else what the operator has chosen
    /// for the tool.
    ///
    /// # Errors
    /// The fault of the argument, for the model: the tool must not be called.
    pub(crate) fn take_projection(
        &self,
        tool: &str,
        arguments: &mut Option<Value>,
    ) -> Result<Option<Projection>, String> {
        if !self.takes_reserved(tool) {
            return Ok(None);
        }

        let members = arguments.as_mut().and_then(Value::as_object_mut);
        let given = members.and_then(|members| members.shift_remove(RESERVED));
        let wanted = given.map_or(Ok(None), Projection::read)?;

        Ok(wanted.or_else(|| {
            let filter = self.known_tool(tool)?.project.clone()?;
            Some(Projection::by_default(&filter))
        }))
    }

    /// Whether the argument is Larder's, and not the tool's own. An unknown tool may have an
    /// argument of this name.
    pub(crate) fn takes_reserved(&self, tool: &str) -> bool {
        if self.definition.projector.is_none() {
            return false;
        }
        match self.catalog().tools.get(tool) {
            Some(registered) => registered.body.is_projectable,
            None => self.known_tool(tool).is_some_and(|known| known.projectable_input.is_some()),
        }
    }

    /// Checks a projection before the tool is called.
    ///
    /// # Errors
    /// The fault, for the model.
    pub(crate) async fn check_projection(
        &self,
        tool: &str,
        projection: &Projection,
        scope: &Arc<Scope>,
    ) -> Result<(), String> {
        match &self.definition.projector {
            Some(projector) => projector.check(tool, projection, scope).await,
            None => Ok(()),
        }
    }

    /// Calls a tool for several arguments or pages, if the caller wants that. `None` otherwise.
    pub(crate) async fn fan_out(
        &self,
        tool: &str,
        arguments: Option<&Value>,
        projection: Option<&Projection>,
        references: InputReferences,
        scope: &Arc<Scope>,
    ) -> Option<CallToolResult> {
        let projection = projection
            .filter(|projection| projection.each.is_some() || projection.pages.is_some())?;
        let projector = self.definition.projector.as_ref()?;
        if !self.may_fan_out(tool) {
            return Some(not_called(
                tool,
                "_larder: each and pages are for tools that only read (readOnlyHint); others need each = \"all\" of their upstream: call it once for each.",
            ));
        }

        let common = arguments.and_then(Value::as_object).cloned().unwrap_or_default();
        let paging = self.paging_of(tool);
        Some(projector.fan_out(tool, common, projection, paging, references, scope).await)
    }

    /// The argument by which a tool takes the cursor of a page.
    fn paging_of(&self, tool: &str) -> Paging {
        let known = self.known_tool(tool);
        let schema = match self.catalog().input_schema(tool) {
            Some(own) => Some(own),
            None => known.as_ref().map(|known| Arc::clone(&known.listed.input_schema)),
        };
        let properties = schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        let arguments = properties.into_iter().flat_map(JsonObject::keys).cloned().collect();

        let start_of = |name: &str| {
            let argument = properties?.get(name)?;
            let default = argument.get("default").and_then(Value::as_u64);
            // An argument that may be 0 need not be 0 where it is not given.
            let least = argument.get("minimum").and_then(Value::as_u64).filter(|least| *least > 0);
            Some((name.to_owned(), default.or(least)?))
        };
        let starts = ["page", "offset"].into_iter().filter_map(start_of).collect();
        Paging { arguments, configured: known.and_then(|known| known.cursor.clone()), starts }
    }

    /// Whether one call may run the tool several times.
    fn may_fan_out(&self, tool: &str) -> bool {
        let is_read_only = |tool: &rmcp::model::Tool| {
            let hints = tool.annotations.as_ref();
            hints.and_then(|hints| hints.read_only_hint) == Some(true)
        };
        match self.catalog().tools.get(tool) {
            Some(registered) => is_read_only(&registered.listed),
            None => self
                .known_tool(tool)
                .is_some_and(|known| known.fans_out || is_read_only(&known.listed)),
        }
    }

    /// Stores the result of a call, and returns the part that the caller wants.
    pub(crate) async fn project(
        &self,
        tool: &str,
        projection: &Projection,
        result: CallToolResult,
        scope: &Arc<Scope>,
    ) -> CallToolResult {
        match &self.definition.projector {
            Some(projector) => projector.project(tool, projection, result, scope).await,
            None => result,
        }
    }

    /// Calls a tool for another tool, which may give the reserved argument as well.
    pub(super) async fn call_nested(
        &self,
        name: &str,
        mut arguments: Option<Value>,
        scope: Arc<Scope>,
    ) -> Result<CallToolResult, Fault> {
        let projection = match self.take_projection(name, &mut arguments) {
            Ok(None) => return self.call_tool(name, arguments, scope).await,
            Ok(Some(projection)) => projection,
            Err(problem) => return Ok(not_called(name, &problem)),
        };

        // Other tools and workflows read whole results.
        if projection.is_default {
            return self.call_tool(name, arguments, scope).await;
        }
        if let Err(problem) = self.check_projection(name, &projection, &scope).await {
            return Ok(not_called(name, &problem));
        }

        // Calls within calls would multiply.
        let repeats = projection.each.is_some() || projection.pages.is_some();
        if repeats && scope.control.depth() > MAX_FAN_OUT_DEPTH {
            let problem = "_larder: each and pages are not for calls within calls";
            return Ok(not_called(name, problem));
        }

        // The arguments of a call that a tool makes may be content.
        let references = InputReferences::Content;
        let given = arguments.as_ref();
        let fanned = self.fan_out(name, given, Some(&projection), references, &scope);
        if let Some(answer) = Box::pin(fanned).await {
            return Ok(answer);
        }
        let result = self.call_tool(name, arguments, Arc::clone(&scope)).await?;
        Ok(self.project(name, &projection, result, &scope).await)
    }

    /// Learns of a provider's tool before its call, if nothing is known of it yet.
    pub(crate) async fn learn(&self, tool: &str, scope: &Arc<Scope>) {
        if !self.may_be_provided(tool) || self.known_tool(tool).is_some() {
            return;
        }
        for provider in &self.definition.providers {
            // The call says what is wrong.
            if !matches!(provider.tool(tool, scope).await, Ok(None)) {
                return;
            }
        }
    }
}
