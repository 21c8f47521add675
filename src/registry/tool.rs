//! Tools: a typed handler is one registration.

use std::{borrow::Cow, marker::PhantomData, panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model::{self, CallToolResult, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Context, HeaderParameter, IntoToolResult, Scope, ToolError, access,
    checked::{Output, RegisteredOutput},
    collection::Item,
    headers, marks,
    schema::{self, Validator},
};
use crate::auth::Scopes;

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
    name: Cow<'static, str>,
    title: Option<String>,
    description: Option<String>,
    schema: JsonObject,
    output: Output,
    annotations: Option<ToolAnnotations>,
    icons: Vec<model::Icon>,
    meta: Option<model::MetaObject>,
    scopes: Vec<String>,
    handler: Handler<S>,
    state: PhantomData<S>,
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
        Self {
            name: described.name.into(),
            title: None,
            description: described.description,
            schema: described.schema,
            output: Output { structure: R::structure(), ..Output::default() },
            annotations: None,
            icons: Vec::new(),
            meta: None,
            scopes: Vec::new(),
            handler,
            state: PhantomData,
        }
    }

    /// Another name than the struct's.
    #[must_use]
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Another description than the struct's doc comment.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
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

    /// A picture for people; may be said several times.
    #[must_use]
    pub fn icon(mut self, icon: model::Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Hints on what the tool does to its surroundings.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Data for particular hosts, under their own keys.
    #[must_use]
    pub fn meta(mut self, meta: model::MetaObject) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Only for callers whose token has that scope: to others it is not
    /// listed, and refused with the scopes that it takes. Once for each scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    pub(super) fn register(self, state: &Arc<S>, faults: &mut Vec<String>) -> Registered {
        let name = &self.name;
        if !is_tool_name(name) {
            faults.push(format!(
                "Tool {name:?}: a name has 1 to 128 of the characters A-Z a-z 0-9 _ - ."
            ));
        }
        if self.description.as_deref().is_none_or(|d| d.trim().is_empty()) {
            faults.push(format!(
                "Tool {name:?}: it needs a description: a doc comment on its argument struct"
            ));
        }
        let headers = headers::of(&self.schema).unwrap_or_else(|fault| {
            faults.push(format!("Tool {name:?}: {fault}"));
            Vec::new()
        });
        let validator = Validator::new(self.schema)
            .map_err(|fault| faults.push(format!("Tool {name:?}: {fault}")))
            .ok();
        let scopes = access::read(&format!("Tool {name:?}"), &self.scopes, faults);
        marks::check_icons(&format!("Tool {name:?}"), &self.icons, faults);
        let output = self.output.register().unwrap_or_else(|fault| {
            faults.push(format!("Tool {name:?}: {fault}"));
            None
        });
        let structured = output.is_some();
        let mut listed = model::Tool::default();
        listed.name = self.name;
        listed.title = self.title;
        listed.description = self.description.map(Cow::Owned);
        listed.input_schema = validator.as_ref().map(|v| Arc::clone(&v.schema)).unwrap_or_default();
        listed.output_schema = output.as_ref().map(|o| Arc::clone(&o.validator.schema));
        listed.annotations = self.annotations;
        listed.icons = (!self.icons.is_empty()).then_some(self.icons);
        listed.meta = self.meta;
        let (state, handler) = (Arc::clone(state), self.handler);
        let run = move |scope, arguments| {
            handler(Context::new(scope, Arc::clone(&state)), arguments, structured)
        };
        Registered { listed, scopes, headers, validator, output, run: Box::new(run) }
    }
}

/// 2025-11-25 and later, tools: Tool Names.
pub(super) fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

pub(super) struct Registered {
    pub(super) listed: model::Tool,
    pub(super) scopes: Scopes,
    pub(super) headers: Vec<HeaderParameter>,
    /// Missing only in a definition that does not build.
    validator: Option<Validator>,
    output: Option<RegisteredOutput>,
    run: Box<dyn Fn(Scope, Value) -> BoxFuture<'static, CallToolResult> + Send + Sync>,
}

impl Item for Registered {
    type Listed = model::Tool;
    const WHAT: &'static str = "Tool";
    const LIST: &'static str = "tools";

    fn listed(&self) -> &model::Tool {
        &self.listed
    }

    fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    fn key(&self) -> &str {
        &self.listed.name
    }
}

impl Registered {
    pub(super) async fn call(&self, arguments: Option<Value>, scope: Scope) -> CallToolResult {
        let arguments = arguments.unwrap_or_else(|| Value::Object(JsonObject::new()));
        if let Some(validator) = &self.validator
            && let Err(refused) = validator.check(&arguments)
        {
            return ToolError::new(refused).into_tool_result();
        }
        let request_id = Arc::clone(&scope.request_id);
        // Both making the future and running it are the handler's own code.
        let run = AssertUnwindSafe(async { (self.run)(scope, arguments).await });
        let name = &self.listed.name;
        match (run.catch_unwind().await, &self.output) {
            (Ok(result), Some(output)) => output.checked(name, result),
            (Ok(result), None) => result,
            (Err(_), _) => {
                tracing::error!(tool = %name, %request_id, "the tool's handler panicked");
                let message = format!(
                    "The tool {name} failed with an internal error (request {request_id}). Other calls are not affected."
                );
                ToolError::new(message).into_tool_result()
            }
        }
    }
}
