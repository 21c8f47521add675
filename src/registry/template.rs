//! Resource templates: many resources by one rule.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Completing, access,
    complete::Completers,
    item::{Item, annotation_setters, common_setters},
    marks, resource,
};
use crate::{
    handler::{Context, IntoContent, ResourceError, Scope},
    protocol::Fault,
    schema::{self, Validator},
    store::Content,
    uri_template::{UriTemplate, Variables},
};

type ReadResult = Result<Content, ResourceError>;
type Handler<S> =
    Box<dyn Fn(Context<S>, Variables) -> BoxFuture<'static, ReadResult> + Send + Sync>;

/// Resources whose URIs follow a template such as `logs://{service}/{date}`.
///
/// A variable stands for one path segment: anything but `/`, `?` and `#`,
/// given to the handler percent-decoded. A value that decodes to a path of
/// its own (`..`, or anything with `/`, `\` or NUL in it) matches nothing, so
/// that a handler that uses it as a file name cannot be led elsewhere. A
/// variable written `{+path}` stands for one segment or more, each of which
/// keeps the same rules.
///
/// ```
/// use larder::{Context, Registry, Template};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Page {
///     book: String,
///     page: u32,
/// }
///
/// let pages = Template::typed("books://{book}/{page}", "page", |_: Context, at: Page| async move {
///     format!("Page {} of {}", at.page, at.book)
/// });
/// assert!(Registry::builder("library").template(pages).build().is_ok());
/// ```
pub struct Template<S = ()> {
    listed: model::ResourceTemplate,
    scopes: Vec<String>,
    /// What the variables are read as, if typed.
    typed: Option<model::JsonObject>,
    handler: Handler<S>,
    completers: Completers<S>,
}

impl<S: Send + Sync + 'static> Template<S> {
    /// Resources that this handler reads.
    pub fn new<F, Fut, R>(uri_template: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        F: Fn(Context<S>, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContent + 'static,
    {
        Self {
            listed: model::ResourceTemplate::new(uri_template, name),
            typed: None,
            scopes: Vec::new(),
            handler: Box::new(move |context, variables| {
                read(context, variables).then(R::into_content).boxed()
            }),
            completers: Completers::default(),
        }
    }

    /// Resources whose variables are read into a struct: numbers and booleans
    /// as such, and a URI whose variables do not fit names nothing.
    pub fn typed<V, F, Fut, R>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Self
    where
        V: DeserializeOwned + JsonSchema,
        F: Fn(Context<S>, V) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContent + 'static,
    {
        let described = schema::describe::<V>();
        // A schema that cannot be used is a fault when the template is registered.
        let validator = Validator::new(described.schema.clone()).ok();
        Self {
            listed: model::ResourceTemplate::new(uri_template, name),
            typed: Some(described.schema),
            handler: Box::new(move |context, variables| {
                let mut variables: Value = variables.into_iter().collect();
                if let Some(validator) = &validator {
                    validator.read_strings(&mut variables);
                    if validator.check(&variables).is_err() {
                        return std::future::ready(Err(ResourceError::NotFound)).boxed();
                    }
                }
                match serde_json::from_value::<V>(variables) {
                    Ok(variables) => read(context, variables).then(R::into_content).boxed(),
                    Err(_) => std::future::ready(Err(ResourceError::NotFound)).boxed(),
                }
            }),
            scopes: Vec::new(),
            completers: Completers::default(),
        }
    }

    /// What these resources are.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(description.into());
        self
    }

    /// The media type that all of them have.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.listed.mime_type = Some(mime_type.into());
        self
    }

    /// Suggests values of a variable while somebody types it. Without this,
    /// the values that occur among the caller's own resources are suggested.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(Context<S>, Completing) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.add(variable, suggest);
        self
    }

    common_setters!();
    annotation_setters!();

    pub(super) fn register(self, state: &Arc<S>, faults: &mut Vec<String>) -> Option<Registered> {
        let template = match UriTemplate::parse(&self.listed.uri_template) {
            Ok(template) => template,
            Err(fault) => {
                faults.push(format!("Resource template {:?}: {fault}", self.listed.uri_template));
                return None;
            }
        };
        let item = format!("Resource template {:?}", self.listed.uri_template);
        marks::check_icons(&item, self.listed.icons.as_deref().unwrap_or_default(), faults);
        marks::check_annotations(&item, self.listed.annotations.as_ref(), faults);
        if let Some(schema) = self.typed {
            check_fields(&item, schema, &template, faults);
        }
        self.completers.check(&item, template.variables(), faults);
        let scopes = access::read(&item, &self.scopes, faults);
        let completers = self.completers.register(state);
        let (state, handler) = (Arc::clone(state), self.handler);
        let read =
            move |scope, variables| handler(Context::new(scope, Arc::clone(&state)), variables);
        let body = Body { template, completers, read: Box::new(read) };
        Some(Item { listed: self.listed, scopes, body })
    }
}

pub(super) type Registered = Item<model::ResourceTemplate, Body>;

pub(super) struct Body {
    pub(super) template: UriTemplate,
    pub(super) completers: super::complete::Registered,
    read: Box<dyn Fn(Arc<Scope>, Variables) -> BoxFuture<'static, ReadResult> + Send + Sync>,
}

impl Registered {
    pub(super) async fn read(
        &self,
        uri: &str,
        variables: Variables,
        scope: Arc<Scope>,
    ) -> Result<(Content, Option<String>), Fault> {
        let content = resource::guarded(uri, &scope.request_id.clone(), || {
            (self.body.read)(scope, variables)
        })
        .await?;
        let given = content.given_mime_type().map(str::to_owned);
        Ok((content, given.or_else(|| self.listed.mime_type.clone())))
    }
}

/// Each variable has a field, and each field that must be there a variable.
fn check_fields(
    item: &str,
    schema: model::JsonObject,
    template: &UriTemplate,
    faults: &mut Vec<String>,
) {
    let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for variable in template.variables().filter(|variable| !fields.contains_key(*variable)) {
        faults.push(format!("{item}: its struct has no field for the variable {variable}"));
    }
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for field in required.iter().filter_map(Value::as_str) {
        if !template.variables().any(|variable| variable == field) {
            faults.push(format!("{item}: it has no variable for the field {field}"));
        }
    }
    if let Err(fault) = Validator::new(schema) {
        faults.push(format!("{item}: {fault}"));
    }
}
