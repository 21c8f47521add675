//! [`Prompt`]: a typed handler that returns messages.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::{
    Fault, describe,
    schema::{self, Validator},
};
use rmcp::model::{self, GetPromptResult, JsonObject, PromptArgument};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    annotations::check_icons,
    complete::{self, Completers, CompletionInput},
    item::{Item, catch_panic, check_name, common_setters},
    scope_rules,
};
use crate::handler::{Context, IntoPromptResult, Scope, ToolError};

type Outcome = Result<GetPromptResult, ToolError>;
/// The handler's future, or the fault of its arguments.
type Started = Result<BoxFuture<'static, Outcome>, Fault>;
type Handler<S> = Box<dyn Fn(Context<S>, Value) -> Started + Send + Sync>;

/// A prompt: a handler and its definition.
///
/// The argument struct's name, doc comment and
/// fields are the prompt's name, description and arguments. Clients send
/// arguments as strings; fields can be strings, numbers or booleans. Arguments
/// that do not match never reach the handler.
///
/// ```
/// use larder_server::{Context, Prompt, Registry};
///
/// /// Greets the user by name.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greeting {
///     /// The user's name.
///     username: String,
/// }
///
/// let greeting = Prompt::new(|_: Context, args: Greeting| async move {
///     format!("Say hello to the user using their name: {}", args.username)
/// });
/// let registry = Registry::builder("greeter").prompt(greeting).build()?;
/// assert_eq!(registry.prompts(None)?.items[0].name, "greeting");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Prompt<S = ()> {
    listed: model::Prompt,
    scopes: Vec<String>,
    origin: Option<&'static str>,
    schema: JsonObject,
    handler: Handler<S>,
    completers: Completers<S>,
}

impl<S: Send + Sync + 'static> Prompt<S> {
    /// A prompt with this handler.
    pub fn new<A, F, Fut, R>(handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(Context<S>, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoPromptResult + 'static,
    {
        let described = schema::describe::<A>();
        let is_unit = described.is_unit;
        let handler: Handler<S> = Box::new(move |context, arguments| {
            let given = if is_unit { Value::Null } else { arguments };
            // The schema allows some values that do not deserialize, such as a
            // number that is too large.
            let arguments = serde_json::from_value::<A>(given).map_err(|error| {
                Fault::invalid_params(format!("Invalid arguments: {}", describe(&error)))
            })?;

            Ok(handler(context, arguments).map(R::into_prompt_result).boxed())
        });

        let listed = model::Prompt::new(described.name, described.description, None);
        Self {
            listed,
            scopes: Vec::new(),
            origin: None,
            schema: described.schema,
            handler,
            completers: Completers::default(),
        }
    }

    /// The name. Default: the struct's name in snake case.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.listed.name = name.into();
        self
    }

    /// The description. Default: the struct's doc comment.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(description.into());
        self
    }

    /// The arguments: the properties of an object schema (JSON Schema 2020-12).
    /// Default: derived from the struct.
    #[must_use]
    pub fn input_schema(mut self, schema: JsonObject) -> Self {
        self.schema = schema;
        self
    }

    /// Completes an argument: the handler suggests values for the text that the user has
    /// typed.
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(Context<S>, CompletionInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.add(argument, suggest);
        self
    }

    common_setters!();

    pub(super) fn register(self, state: &Arc<S>, problems: &mut Vec<String>) -> RegisteredPrompt {
        let mut listed = self.listed;
        let item = format!("Prompt {:?}", listed.name);
        check_name(&item, &listed.name, problems);
        check_icons(&item, listed.icons.as_deref().unwrap_or_default(), problems);

        let properties =
            self.schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let required: Vec<_> =
            self.schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();

        let arguments: Vec<_> = properties
            .iter()
            .map(|(argument, schema)| {
                let mut listed = PromptArgument::new(argument);
                listed.description =
                    schema.get("description").and_then(Value::as_str).map(str::to_owned);
                listed.required = Some(required.iter().any(|r| r == argument));
                listed
            })
            .collect();

        self.completers.check(&item, &properties.keys(), problems);
        listed.arguments = (!arguments.is_empty()).then_some(arguments);

        let validator = Validator::new(self.schema)
            .map_err(|problem| problems.push(format!("{item}: {problem}")))
            .ok();
        let scopes = scope_rules::parse(&item, &self.scopes, problems);
        let completers = self.completers.register(state);

        let state = Arc::clone(state);
        let handler = self.handler;
        let run =
            move |scope, arguments| handler(Context::new(scope, Arc::clone(&state)), arguments);
        let body = PromptBody { validator, completers, run: Box::new(run) };
        Item { listed, scopes, origin: self.origin, body }
    }
}

/// The error for a prompt that does not exist.
pub(super) fn unknown(name: &str) -> Fault {
    Fault::invalid_params(format!("Unknown prompt: {}", larder_protocol::quote::shortened(name)))
}

pub(super) type RegisteredPrompt = Item<model::Prompt, PromptBody>;

pub(super) struct PromptBody {
    pub(super) completers: complete::RegisteredCompleters,
    /// `None` only in a definition that does not build.
    validator: Option<Validator>,
    run: Box<dyn Fn(Arc<Scope>, Value) -> Started + Send + Sync>,
}

impl RegisteredPrompt {
    pub(super) async fn get(
        &self,
        arguments: JsonObject,
        scope: Arc<Scope>,
    ) -> Result<GetPromptResult, Fault> {
        let name = &self.listed.name;
        let body = &self.body;
        let mut arguments = Value::Object(arguments);

        if let Some(validator) = &body.validator {
            validator.fit(&mut arguments);
            validator.check(&arguments).map_err(Fault::invalid_params)?;
        }

        let request_id = Arc::clone(&scope.request_id);
        let run = || async { Ok((body.run)(scope, arguments)?.await) };

        match catch_panic("prompt", name, &request_id, run).await {
            Ok(Err(refused)) => Err(refused),
            Ok(Ok(Ok(mut result))) => {
                if result.description.is_none() {
                    result.description.clone_from(&self.listed.description);
                }
                Ok(result)
            }
            Ok(Ok(Err(error))) => {
                error.log();
                Err(Fault::Internal(error.message().to_owned()))
            }
            Err(_) => Err(Fault::Internal(format!(
                "The prompt {name} failed with an internal error (request {request_id})."
            ))),
        }
    }
}
