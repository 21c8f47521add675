//! The calls of tools that code makes: each as the caller, with the rules of a call.

use larder_query::ScriptOutcome;
use serde_json::{Value, value::RawValue};

use super::{
    super::projection_value::ResultValue,
    NAME,
    outcome::{CallError, value_or_handle},
    run::Run,
};
use crate::{
    registry::{CALL_TOOL, RESERVED, Registry, ResolvedArguments, Spill, count_references},
    tools::BUILT_IN_TOOLS,
};

impl Run<'_> {
    /// Calls a tool.
    ///
    /// # Errors
    /// The reason why the tool was not called, or the tool's own error.
    pub(super) async fn call_tool(
        &self,
        tool: &str,
        arguments: &RawValue,
        handles: usize,
    ) -> Result<ScriptOutcome, CallError> {
        let arguments = serde_json::from_str::<Value>(arguments.get())
            .map_err(|error| CallError::new(format!("{tool} was not called: {error}")))?;
        let arguments = self.checked(tool, arguments, handles).await?;

        let ctx = self.ctx();
        let (result, exact) = ctx.call_exactly(tool, arguments).await?;
        let registry = Registry::from_scope(ctx.scope());
        ctx.resource_store().add_origins(registry.origin_of(tool));

        let is_error = result.is_error == Some(true);
        let value = ResultValue::of(result, exact);
        if is_error {
            let text = value.text();
            let max = ctx.output_bytes().min(text.len());
            let json = value.json();
            let json = if json.len() <= ctx.output_bytes() { &*json } else { "null" };
            return Err(CallError::of_tool(&text[..text.floor_char_boundary(max)], json));
        }

        // Tools of this server bound their results themselves.
        let is_own = BUILT_IN_TOOLS.contains(&tool);
        let may_be_stored = is_own || registry.spill_of(tool) != Some(Spill::Never);
        value_or_handle(ctx, tool, value.json().into_owned(), may_be_stored).await
    }

    /// The arguments with the content of handles in its places, if the tool may be called.
    async fn checked(
        &self,
        tool: &str,
        arguments: Value,
        handles: usize,
    ) -> Result<Value, CallError> {
        let refused = |why: &str| CallError::new(format!("{tool} was not called: {why}"));
        if tool == NAME || tool == CALL_TOOL {
            return Err(refused("code calls tools by their own names."));
        }
        if !arguments.is_object() {
            return Err(refused("its arguments must be one object."));
        }
        if arguments.get(RESERVED).is_some() {
            return Err(refused(
                "_larder is for calls outside of code: use the methods of a handle.",
            ));
        }

        let ctx = self.ctx();
        let registry = Registry::from_scope(ctx.scope());
        if let Some(why) = self.refusal(tool) {
            // A tool of which there is none is told as such.
            registry
                .fitted_arguments(tool, arguments, ctx.scope())
                .await
                .map_err(CallError::new)?;
            return Err(CallError::new(why));
        }
        if let Some(origin) = registry.refused_origin(tool, &self.origins()) {
            return Err(refused(&format!(
                "this run has read content of {origin}, from which this tool takes none (upstreams.refs.accept)."
            )));
        }

        let arguments = if handles == 0 {
            arguments
        } else {
            self.with_content(tool, arguments, handles).await?
        };
        registry.fitted_arguments(tool, arguments, ctx.scope()).await.map_err(CallError::new)
    }

    /// The arguments with the content that their handles refer to. Content must not choose what is
    /// read, so nothing else may be a reference.
    async fn with_content(
        &self,
        tool: &str,
        arguments: Value,
        handles: usize,
    ) -> Result<Value, CallError> {
        if count_references(&arguments) != handles {
            return Err(CallError::new(format!(
                "{tool} was not called: beside handles its arguments have other references, which code must not pass on."
            )));
        }

        let scope = self.ctx().scope();
        let registry = Registry::from_scope(scope);
        let max_bytes = self.coding().ref_bytes;
        match registry.resolve_references(tool, arguments, scope, max_bytes).await? {
            ResolvedArguments::Ready(arguments) => Ok(arguments),
            ResolvedArguments::Refused(problem) => Err(CallError::new(problem)),
        }
    }
}
