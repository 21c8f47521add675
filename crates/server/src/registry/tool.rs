//! [`Tool`]: a typed handler with its definition.

use std::{borrow::Cow, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::{
    describe,
    schema::{self, Validator},
    size_up_to,
};
use larder_runtime::compute::{Compute, INLINE_BYTES};
use rmcp::model::{self, CallToolResult, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    annotations::check_icons,
    headers::{self, HeaderParameter},
    item::{Item, catch_panic, check_name, common_setters},
    output_rules::Spill,
    projection::{RESERVED, has_reserved},
    scope_rules,
    spilled_schema::allow_spilled,
    structured_output::{OutputDefinition, RegisteredOutput},
    tool_set::{self, BuiltIn},
};
use crate::handler::{Context, IntoToolResult, Scope, ToolError, form};

/// Runs a call. The last argument says whether to return structured content.
type Handler<S> =
    Box<dyn Fn(Context<S>, Value, bool) -> BoxFuture<'static, CallToolResult> + Send + Sync>;

/// A tool: a handler and its definition.
///
/// The handler takes a [`Context`] and a struct of arguments. The struct's name
/// is the tool's name in snake case (`SearchLogs`: `search_logs`), its doc
/// comment is the description, and its fields are the input schema. Arguments
/// that do not match the schema never reach the handler.
pub struct Tool<S = ()> {
    listed: model::Tool,
    scopes: Vec<String>,
    origin: Option<&'static str>,
    schema: JsonObject,
    output: OutputDefinition,
    spill: Spill,
    stored: Vec<&'static str>,
    built_in: Option<BuiltIn>,
    is_projectable: bool,
    /// Problems of the forms that the tool shows.
    form_problems: Vec<String>,
    handler: Handler<S>,
}

impl<S: Send + Sync + 'static> Tool<S> {
    /// A tool with this handler.
    pub fn new<A, F, Fut, R>(handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(Context<S>, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult + 'static,
    {
        let described = schema::describe::<A>();
        let is_unit = described.is_unit;

        let shared = Arc::new(handler);
        let handler: Handler<S> = Box::new(move |context, arguments, structured| {
            // A unit struct (a tool without arguments) deserializes from null.
            let arguments = if is_unit { Value::Null } else { arguments };
            let convert = if structured { R::into_structured_result } else { R::into_tool_result };
            let handler = Arc::clone(&shared);

            let run = async move {
                let parse = serde_json::from_value::<A>;
                match with_arguments(context.scope(), arguments, parse).await {
                    Ok(Ok(arguments)) => convert(handler(context, arguments).await),
                    Ok(Err(error)) => {
                        let error = format!("Invalid arguments: {}", describe(&error));
                        ToolError::permanent(error).into_tool_result()
                    }
                    Err(busy) => busy.into_tool_result(),
                }
            };

            run.boxed()
        });

        let mut listed = model::Tool::default();
        listed.name = described.name.into();
        listed.description = described.description.map(Cow::Owned);

        Self {
            listed,
            scopes: Vec::new(),
            origin: None,
            schema: described.schema,
            output: OutputDefinition { structure: R::structure(), ..OutputDefinition::default() },
            spill: Spill::default(),
            stored: Vec::new(),
            built_in: None,
            is_projectable: false,
            form_problems: Vec::new(),
            handler,
        }
    }

    /// The name. Default: the struct's name in snake case.
    #[must_use]
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.listed.name = name.into();
        self
    }

    /// The description. Default: the struct's doc comment.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(Cow::Owned(description.into()));
        self
    }

    /// The input schema (JSON Schema 2020-12). Default: derived from the struct.
    #[must_use]
    pub fn input_schema(mut self, schema: JsonObject) -> Self {
        self.schema = schema;
        self
    }

    /// The output schema (JSON Schema 2020-12, of an object). Default: derived
    /// from the return type. A result that does not match it is sent as an error
    /// of the tool.
    #[must_use]
    pub fn output_schema(mut self, schema: JsonObject) -> Self {
        self.output.schema = Some(schema);
        self
    }

    /// Whether the tool returns structured content. `true` needs a return type
    /// that can give it. By default, [`Structured`](crate::Structured) does and
    /// other types do not.
    #[must_use]
    pub fn structured_output(mut self, is_enabled: bool) -> Self {
        self.output.is_enabled = Some(is_enabled);
        self
    }

    /// Hints about the tool's behaviour, such as `readOnlyHint`.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.listed.annotations = Some(annotations);
        self
    }

    common_setters!();

    /// The rule by which results are stored as resources and replaced by a preview. Default:
    /// [`Spill::Auto`]. The configuration (`tools.spill`) overrides it.
    #[must_use]
    pub fn spill(mut self, spill: Spill) -> Self {
        self.spill = spill;
        self
    }

    /// Lets callers ask for a part of the result in the same call, by the reserved argument `_larder`,
    /// where the server computes parts ([`tools::projecting`](crate::tools::projecting)). The handler
    /// never sees the argument.
    #[must_use]
    pub fn projectable(mut self) -> Self {
        self.is_projectable = true;
        self
    }

    /// Names a form that the tool shows with [`Context::elicit`]. A server whose form clients
    /// cannot show does not build. Can be called several times.
    #[must_use]
    pub fn form<T: JsonSchema>(mut self) -> Self {
        self.form_problems.extend(form::problem_of::<T>());
        self
    }

    /// Passes an argument to the handler as the JSON text that arrived, for a field
    /// of the type [`StoredJson`](super::StoredJson).
    pub(crate) fn stored_argument(mut self, name: &'static str) -> Self {
        self.stored.push(name);
        self
    }

    /// Marks a tool of this crate, which a [`ToolSet`](super::ToolSet) may leave out of the list.
    pub(crate) fn built_in(mut self, part: BuiltIn) -> Self {
        self.built_in = Some(part);
        self
    }

    pub(super) fn register(self, state: &Arc<S>, problems: &mut Vec<String>) -> RegisteredTool {
        let mut listed = self.listed;
        let item = format!("Tool {:?}", listed.name);
        check_name(&item, &listed.name, problems);
        if listed.description.as_deref().is_none_or(|d| d.trim().is_empty()) {
            problems.push(format!(
                "{item}: it needs a description: add a doc comment to its argument struct"
            ));
        }

        problems.extend(self.form_problems.iter().map(|problem| format!("{item}: {problem}")));
        let headers = headers::from_schema(&self.schema).unwrap_or_else(|problem| {
            problems.push(format!("{item}: {problem}"));
            Vec::new()
        });

        let is_projectable = self.is_projectable && !has_reserved(&self.schema);
        if self.is_projectable && !is_projectable {
            problems.push(format!(
                "{item}: it cannot be projectable, because it has an argument {RESERVED}"
            ));
        }

        let validator = Validator::new(self.schema)
            .map_err(|problem| problems.push(format!("{item}: {problem}")))
            .ok();

        let scopes = scope_rules::parse(&item, &self.scopes, problems);
        check_icons(&item, listed.icons.as_deref().unwrap_or_default(), problems);
        let output = self.output.register().unwrap_or_else(|problem| {
            problems.push(format!("{item}: {problem}"));
            None
        });

        let structured = output.is_some();
        listed.input_schema = listed_arguments(validator.as_ref(), self.built_in.is_some());
        listed.output_schema = output.as_ref().map(|o| Arc::clone(&o.validator.schema));

        let state = Arc::clone(state);
        let handler = self.handler;
        let run = move |scope, arguments| {
            handler(Context::new(scope, Arc::clone(&state)), arguments, structured)
        };

        let spillable_schema =
            listed.output_schema.as_deref().map(|own| Arc::new(allow_spilled(own)));
        let body = ToolBody {
            headers,
            validator,
            output,
            spill: self.spill,
            stored: self.stored,
            built_in: self.built_in,
            is_projectable,
            spillable_schema,
            run: Box::new(run),
        };

        Item { listed, scopes, origin: self.origin, body }
    }
}

/// The schema of arguments in the list.
fn listed_arguments(validator: Option<&Validator>, is_built_in: bool) -> Arc<JsonObject> {
    let plain = validator.map(|validator| schema::listed_arguments(&validator.schema));
    let mut plain = plain.unwrap_or_default();
    if is_built_in {
        tool_set::shorten(&mut plain);
    }
    Arc::new(plain)
}

/// Does work on arguments, off the runtime's workers if they are large.
///
/// # Errors
/// The server is busy with other callers.
async fn with_arguments<T: Send + 'static>(
    scope: &Scope,
    arguments: Value,
    work: impl FnOnce(Value) -> T + Send + 'static,
) -> Result<T, ToolError> {
    let bytes = size_up_to(&arguments, INLINE_BYTES + 1);
    let work = Compute::run(scope.identity.owner().as_str(), bytes, move || work(arguments));
    work.done().await.map_err(|busy| ToolError::new(busy.to_string()))
}

pub(super) type RegisteredTool = Item<model::Tool, ToolBody>;

pub(super) struct ToolBody {
    pub(super) headers: Vec<HeaderParameter>,
    /// `None` only in a definition that does not build.
    validator: Option<Validator>,
    output: Option<RegisteredOutput>,
    pub(super) spill: Spill,
    /// The arguments that the tool stores as they are.
    pub(super) stored: Vec<&'static str>,
    /// The part of a tool of this crate.
    pub(super) built_in: Option<BuiltIn>,
    /// Whether callers may give the reserved argument.
    pub(super) is_projectable: bool,
    /// The output schema that also allows a preview.
    pub(super) spillable_schema: Option<Arc<JsonObject>>,
    run: Box<dyn Fn(Arc<Scope>, Value) -> BoxFuture<'static, CallToolResult> + Send + Sync>,
}

impl RegisteredTool {
    /// The schema by which arguments are checked.
    pub(super) fn input_schema(&self) -> Arc<JsonObject> {
        match &self.body.validator {
            Some(validator) => Arc::clone(&validator.schema),
            None => Arc::clone(&self.listed.input_schema),
        }
    }

    /// The arguments as the tool expects them, if they fit the schema.
    async fn checked(
        self: &Arc<Self>,
        arguments: Value,
        scope: &Scope,
    ) -> Result<Value, ToolError> {
        let tool = Arc::clone(self);
        let check = move |mut arguments: Value| {
            if let Some(validator) = &tool.body.validator {
                validator.fit(&mut arguments);
                validator.check(&arguments).map_err(ToolError::permanent)?;
            }
            Ok(arguments)
        };
        with_arguments(scope, arguments, check).await?
    }

    pub(super) async fn call(
        self: &Arc<Self>,
        arguments: Option<Value>,
        scope: Arc<Scope>,
    ) -> CallToolResult {
        let name = &self.listed.name;
        let body = &self.body;

        let given = arguments.unwrap_or_else(|| Value::Object(JsonObject::new()));
        let arguments = match self.checked(given, &scope).await {
            Ok(arguments) => arguments,
            Err(refused) => return refused.into_tool_result(),
        };

        let request_id = Arc::clone(&scope.request_id);
        let run = || (body.run)(scope, arguments);

        match (catch_panic("tool", name, &request_id, run).await, &body.output) {
            (Ok(result), Some(output)) => output.finish(name, result),
            (Ok(result), None) => result,
            (Err(_), _) => {
                let message = format!(
                    "The tool {name} failed with an internal error (request {request_id}). Other calls are not affected."
                );
                ToolError::new(message).into_tool_result()
            }
        }
    }
}
