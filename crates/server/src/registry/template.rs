//! [`Template`]: the resources whose URIs match a URI template.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use larder_protocol::{
    Fault,
    schema::{self, Validator},
    uri_template::{UriTemplate, Variables},
};
use rmcp::model;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    annotations::{check_annotations, check_icons},
    complete::{self, Completers, CompletionInput},
    item::{Item, annotation_setters, common_setters},
    resource::{self, CacheRule},
    scope_rules,
};
use crate::handler::{Contents, Context, IntoContents, ResourceError, Scope};

type ReadResult = Result<Contents, ResourceError>;
type Handler<S> =
    Box<dyn Fn(Context<S>, Variables) -> BoxFuture<'static, ReadResult> + Send + Sync>;

/// The resources whose URIs match a template such as `logs://{service}/{date}`.
///
/// A variable matches one path segment: any characters but `/`, `?` and `#`.
/// The handler gets it percent-decoded, so `a%2Fb` is `a/b`. To prevent path
/// traversal in handlers that use the value as a path, a value does not match if it
/// decodes to nothing, begins with a slash, or has a NUL or a segment `.` or `..`
/// (`\` separates segments, too). A variable written `{+path}` matches one or more
/// segments, none of them empty, without `\`.
///
/// ```
/// use larder_server::{Context, Registry, Template};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Page {
///     book: String,
///     page: u32,
/// }
///
/// let pages = Template::typed(
///     "books://{book}/{page}",
///     "page",
///     |_: Context, page: Page| async move { format!("Page {} of {}", page.page, page.book) },
/// );
/// assert!(Registry::builder("library").template(pages).build().is_ok());
/// ```
pub struct Template<S = ()> {
    listed: model::ResourceTemplate,
    scopes: Vec<String>,
    origin: Option<&'static str>,
    /// The schema of the variables' struct, if typed.
    typed: Option<model::JsonObject>,
    handler: Handler<S>,
    completers: Completers<S>,
    cache: Option<CacheRule>,
}

impl<S: Send + Sync + 'static> Template<S> {
    /// A template with this handler.
    pub fn new<F, Fut, R>(uri_template: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        F: Fn(Context<S>, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents + 'static,
    {
        Self {
            listed: model::ResourceTemplate::new(uri_template, name),
            typed: None,
            scopes: Vec::new(),
            origin: None,
            handler: Box::new(move |context, variables| {
                read(context, variables).then(R::into_contents).boxed()
            }),
            completers: Completers::default(),
            cache: None,
        }
    }

    /// A template whose variables are deserialized into a struct, whose fields
    /// can be strings, numbers or booleans. A URI whose variables do not match
    /// is not found.
    pub fn typed<V, F, Fut, R>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Self
    where
        V: DeserializeOwned + JsonSchema,
        F: Fn(Context<S>, V) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents + 'static,
    {
        let described = schema::describe::<V>();
        // An invalid schema is reported when the template is registered.
        let validator = Validator::new(described.schema.clone()).ok();

        Self {
            listed: model::ResourceTemplate::new(uri_template, name),
            typed: Some(described.schema),
            handler: Box::new(move |context, variables| {
                let mut variables: Value = variables.into_iter().collect();
                if let Some(validator) = &validator {
                    validator.fit(&mut variables);
                    if validator.check(&variables).is_err() {
                        return std::future::ready(Err(ResourceError::NotFound)).boxed();
                    }
                }

                match serde_json::from_value::<V>(variables) {
                    Ok(variables) => read(context, variables).then(R::into_contents).boxed(),
                    Err(_) => std::future::ready(Err(ResourceError::NotFound)).boxed(),
                }
            }),
            scopes: Vec::new(),
            origin: None,
            completers: Completers::default(),
            cache: None,
        }
    }

    /// A description of the resources.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(description.into());
        self
    }

    /// The media type of all these resources.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.listed.mime_type = Some(mime_type.into());
        self
    }

    /// Completes a variable: the handler suggests values for the text that the user has
    /// typed. By default, the values in the URIs of the caller's resources are
    /// suggested.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(Context<S>, CompletionInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.add(variable, suggest);
        self
    }

    common_setters!();
    annotation_setters!();

    pub(super) fn register(
        self,
        state: &Arc<S>,
        problems: &mut Vec<String>,
    ) -> Option<RegisteredTemplate> {
        let template = match UriTemplate::parse(&self.listed.uri_template) {
            Ok(template) => template,
            Err(problem) => {
                let template = &self.listed.uri_template;
                problems.push(format!("Resource template {template:?}: {problem}"));
                return None;
            }
        };

        let item = format!("Resource template {:?}", self.listed.uri_template);
        check_icons(&item, self.listed.icons.as_deref().unwrap_or_default(), problems);
        check_annotations(&item, self.listed.annotations.as_ref(), problems);

        if let Some(schema) = self.typed {
            check_fields(&item, schema, &template, problems);
        }
        self.completers.check(&item, &template.variables(), problems);

        let scopes = scope_rules::parse(&item, &self.scopes, problems);
        let completers = self.completers.register(state);

        let state = Arc::clone(state);
        let handler = self.handler;
        let read =
            move |scope, variables| handler(Context::new(scope, Arc::clone(&state)), variables);
        let body = TemplateBody { template, completers, read: Box::new(read), cache: self.cache };
        Some(Item { listed: self.listed, scopes, origin: self.origin, body })
    }
}

pub(super) type RegisteredTemplate = Item<model::ResourceTemplate, TemplateBody>;

pub(super) struct TemplateBody {
    pub(super) template: UriTemplate,
    pub(super) completers: complete::RegisteredCompleters,
    read: Box<dyn Fn(Arc<Scope>, Variables) -> BoxFuture<'static, ReadResult> + Send + Sync>,
    pub(super) cache: Option<CacheRule>,
}

impl RegisteredTemplate {
    pub(super) async fn read(
        &self,
        uri: &str,
        variables: Variables,
        scope: Arc<Scope>,
    ) -> Result<Contents, Fault> {
        let contents = resource::run_handler(uri, &scope.request_id.clone(), || {
            (self.body.read)(scope, variables)
        })
        .await?;
        Ok(resource::or_mime_type(contents, self.listed.mime_type.as_deref()))
    }
}

/// Reports variables without a field, and required fields without a variable.
fn check_fields(
    item: &str,
    schema: model::JsonObject,
    template: &UriTemplate,
    problems: &mut Vec<String>,
) {
    let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for variable in template.variables().filter(|variable| !fields.contains_key(*variable)) {
        problems.push(format!("{item}: its struct has no field for the variable {variable}"));
    }

    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for field in required.iter().filter_map(Value::as_str) {
        if !template.variables().any(|variable| variable == field) {
            problems.push(format!("{item}: it has no variable for the field {field}"));
        }
    }

    if let Err(problem) = Validator::new(schema) {
        problems.push(format!("{item}: {problem}"));
    }
}
