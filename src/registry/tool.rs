//! Tools: a typed handler is one registration.

use std::{borrow::Cow, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::{self, CallToolResult, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    HeaderParameter, Spill, access,
    checked::{Output, RegisteredOutput},
    headers,
    item::{Item, check_name, common_setters, guarded},
    marks, spilled_schema,
};
use crate::{
    handler::{Context, IntoToolResult, Scope, ToolError},
    schema::{self, Validator},
};

/// Is told whether structured content is wanted.
type Handler<S> =
    Box<dyn Fn(Context<S>, Value, bool) -> BoxFuture<'static, CallToolResult> + Send + Sync>;

/// A tool: a handler, and what the model is told of it.
///
/// The handler takes a [`Context`] and one struct of arguments. The struct's
/// name gives the tool's name (`SearchLogs`: `search_logs`), its doc comment
/// the description, its fields and their doc comments the input schema.
/// Arguments that do not fit never reach the handler.
pub struct Tool<S = ()> {
    listed: model::Tool,
    scopes: Vec<String>,
    schema: JsonObject,
    output: Output,
    spill: Spill,
    handler: Handler<S>,
}

impl<S: Send + Sync + 'static> Tool<S> {
    /// A tool that this handler runs.
    pub fn new<A, F, Fut, R>(handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(Context<S>, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult + 'static,
    {
        let described = schema::describe::<A>();
        let unit = described.is_unit;
        let handler: Handler<S> = Box::new(move |context, arguments, structured| {
            // A unit struct, for a tool without arguments, reads from null.
            let arguments = if unit { Value::Null } else { arguments };
            let dress = if structured { R::into_structured_result } else { R::into_tool_result };
            match serde_json::from_value::<A>(arguments) {
                Ok(arguments) => handler(context, arguments).map(dress).boxed(),
                Err(error) => {
                    let refused = ToolError::new(format!("Invalid arguments: {error}"));
                    std::future::ready(refused.into_tool_result()).boxed()
                }
            }
        });
        let mut listed = model::Tool::default();
        listed.name = described.name.into();
        listed.description = described.description.map(Cow::Owned);
        Self {
            listed,
            scopes: Vec::new(),
            schema: described.schema,
            output: Output { structure: R::structure(), ..Output::default() },
            spill: Spill::default(),
            handler,
        }
    }

    /// Another name than the struct's.
    #[must_use]
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.listed.name = name.into();
        self
    }

    /// Another description than the struct's doc comment.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(Cow::Owned(description.into()));
        self
    }

    /// Another input schema than the struct's (JSON Schema 2020-12).
    #[must_use]
    pub fn input_schema(mut self, schema: JsonObject) -> Self {
        self.schema = schema;
        self
    }

    /// What the structured content looks like (JSON Schema 2020-12, of an
    /// object), instead of what the return type says. Results are held against
    /// it: one that does not fit is sent as a failure of the tool's.
    #[must_use]
    pub fn output_schema(mut self, schema: JsonObject) -> Self {
        self.output.schema = Some(schema);
        self
    }

    /// Whether there is structured content at all: always (then the return
    /// type must offer some), or never. By default
    /// [`Structured`](super::Structured) gives it and other types do not.
    #[must_use]
    pub fn structured_output(mut self, wanted: bool) -> Self {
        self.output.wanted = Some(wanted);
        self
    }

    /// Hints on what the tool does to its surroundings.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.listed.annotations = Some(annotations);
        self
    }

    common_setters!();

    /// When its results are put by as resources and replaced by a preview:
    /// when they are larger than an answer may be, by default. The
    /// configuration has the last word (`tools.spill`).
    #[must_use]
    pub fn spill(mut self, spill: Spill) -> Self {
        self.spill = spill;
        self
    }

    pub(super) fn register(self, state: &Arc<S>, faults: &mut Vec<String>) -> Registered {
        let mut listed = self.listed;
        let item = format!("Tool {:?}", listed.name);
        check_name(&item, &listed.name, faults);
        if listed.description.as_deref().is_none_or(|d| d.trim().is_empty()) {
            faults.push(format!(
                "{item}: it needs a description: a doc comment on its argument struct"
            ));
        }
        let headers = headers::of(&self.schema).unwrap_or_else(|fault| {
            faults.push(format!("{item}: {fault}"));
            Vec::new()
        });
        let validator = Validator::new(self.schema)
            .map_err(|fault| faults.push(format!("{item}: {fault}")))
            .ok();
        let scopes = access::read(&item, &self.scopes, faults);
        marks::check_icons(&item, listed.icons.as_deref().unwrap_or_default(), faults);
        let output = self.output.register().unwrap_or_else(|fault| {
            faults.push(format!("{item}: {fault}"));
            None
        });
        let structured = output.is_some();
        listed.input_schema = validator.as_ref().map(|v| Arc::clone(&v.schema)).unwrap_or_default();
        listed.output_schema = output.as_ref().map(|o| Arc::clone(&o.validator.schema));
        let (state, handler) = (Arc::clone(state), self.handler);
        let run = move |scope, arguments| {
            handler(Context::new(scope, Arc::clone(&state)), arguments, structured)
        };
        let admits_spilled =
            listed.output_schema.as_deref().map(|own| Arc::new(spilled_schema::admit(own)));
        let (spill, run) = (self.spill, Box::new(run));
        let body = Body { headers, validator, output, spill, admits_spilled, run };
        Item { listed, scopes, body }
    }
}

pub(super) type Registered = Item<model::Tool, Body>;

pub(super) struct Body {
    pub(super) headers: Vec<HeaderParameter>,
    /// Missing only in a definition that does not build.
    validator: Option<Validator>,
    output: Option<RegisteredOutput>,
    pub(super) spill: Spill,
    /// The output schema, for where results may be put by.
    pub(super) admits_spilled: Option<Arc<JsonObject>>,
    run: Box<dyn Fn(Arc<Scope>, Value) -> BoxFuture<'static, CallToolResult> + Send + Sync>,
}

impl Registered {
    pub(super) async fn call(&self, arguments: Option<Value>, scope: Arc<Scope>) -> CallToolResult {
        let (name, body) = (&self.listed.name, &self.body);
        let arguments = arguments.unwrap_or_else(|| Value::Object(JsonObject::new()));
        if let Some(validator) = &body.validator
            && let Err(refused) = validator.check(&arguments)
        {
            return ToolError::new(refused).into_tool_result();
        }
        let request_id = Arc::clone(&scope.request_id);
        let run = || (body.run)(scope, arguments);
        match (guarded("tool", name, &request_id, run).await, &body.output) {
            (Ok(result), Some(output)) => output.checked(name, result),
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
