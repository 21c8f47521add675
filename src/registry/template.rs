//! Resource templates: many resources by one rule (RFC 6570, level 1).

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use rmcp::model;

use super::{
    Completers, Completing, Context, IntoContent, ResourceError, Scope, collection::Item, resource,
};
use crate::{protocol::Fault, store::Content};

/// What the variables of a template stand for in one URI, percent-decoded.
pub type Variables = BTreeMap<String, String>;

type ReadResult = Result<Content, ResourceError>;
type Handler<S> =
    Box<dyn Fn(Context<S>, Variables) -> BoxFuture<'static, ReadResult> + Send + Sync>;

/// Resources whose URIs follow a template such as `logs://{service}/{date}`.
///
/// A variable stands for one path segment: anything but `/`, `?` and `#`,
/// given to the handler percent-decoded. A value that decodes to a path of
/// its own (`..`, or anything with `/`, `\` or NUL in it) matches nothing, so
/// that a handler that uses it as a file name cannot be led elsewhere.
pub struct Template<S = ()> {
    listed: model::ResourceTemplate,
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
            handler: Box::new(move |context, variables| {
                read(context, variables).map(R::into_content).boxed()
            }),
            completers: Completers::default(),
        }
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.listed.title = Some(title.into());
        self
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

    pub(super) fn register(self, state: &Arc<S>, faults: &mut Vec<String>) -> Option<Registered> {
        let template = match UriTemplate::parse(&self.listed.uri_template) {
            Ok(template) => template,
            Err(fault) => {
                faults.push(format!("Resource template {:?}: {fault}", self.listed.uri_template));
                return None;
            }
        };
        let item = format!("Resource template {:?}", self.listed.uri_template);
        self.completers.check(&item, template.variables(), faults);
        let completers = self.completers.register(state);
        let (state, handler) = (Arc::clone(state), self.handler);
        let read =
            move |scope, variables| handler(Context::new(scope, Arc::clone(&state)), variables);
        Some(Registered { listed: self.listed, template, completers, read: Box::new(read) })
    }
}

pub(super) struct Registered {
    pub(super) listed: model::ResourceTemplate,
    pub(super) template: UriTemplate,
    pub(super) completers: super::complete::Registered,
    read: Box<dyn Fn(Scope, Variables) -> BoxFuture<'static, ReadResult> + Send + Sync>,
}

impl Item for Registered {
    type Listed = model::ResourceTemplate;
    const WHAT: &'static str = "Resource template";
    const LIST: &'static str = "templates";

    fn listed(&self) -> &model::ResourceTemplate {
        &self.listed
    }

    fn key(&self) -> &str {
        &self.listed.uri_template
    }
}

impl Registered {
    pub(super) async fn read(
        &self,
        uri: &str,
        variables: Variables,
        scope: Scope,
    ) -> Result<(Content, Option<String>), Fault> {
        let content = resource::guarded(uri, || (self.read)(scope, variables)).await?;
        Ok((content, self.listed.mime_type.clone()))
    }
}

/// A parsed template that can tell what its variables stand for in a URI.
///
/// ```
/// use larder::registry::UriTemplate;
///
/// let template = UriTemplate::parse("logs://{service}/{date}").unwrap();
/// let variables = template.matches("logs://web%20app/2026-01-01").unwrap();
/// assert_eq!(variables["service"], "web app");
/// assert!(template.matches("logs://web/2026/01").is_none());
/// assert!(template.matches("logs://..%2fetc/passwd").is_none());
/// assert!(UriTemplate::parse("logs://{a}{b}").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let Some(open) = rest.find(['{', '}']) else {
                parts.push(Part::Literal(rest.to_owned()));
                break;
            };
            if rest.as_bytes()[open] == b'}' {
                return Err("it has a } without a {".into());
            }
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            }
            let close = rest[open..].find('}').ok_or("it has a { without a }")? + open;
            let name = &rest[open + 1..close];
            let is_name =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !is_name {
                return Err(format!(
                    "{{{name}}} is no variable: a name has letters, digits and underscores"
                ));
            }
            if parts.iter().any(|p| matches!(p, Part::Variable(v) if v == name)) {
                return Err(format!("the variable {name} stands in it twice"));
            }
            if matches!(parts.last(), Some(Part::Variable(_))) {
                return Err(format!("nothing separates {name} from the variable before it"));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = &rest[close + 1..];
        }
        match parts.first() {
            Some(Part::Literal(literal)) if literal.contains(':') => {}
            _ => return Err("it must begin with a scheme, such as logs://".into()),
        }
        if !parts.iter().any(|p| matches!(p, Part::Variable(_))) {
            return Err("it has no variable: register it as a resource".into());
        }
        Ok(Self { parts })
    }

    /// The names of the variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &String> + Clone {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name),
            Part::Literal(_) => None,
        })
    }

    /// What stands before the first variable.
    pub fn literal_prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Literal(literal)) => literal,
            _ => "",
        }
    }

    /// What the variables stand for, if the URI follows the template.
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        let mut variables = Variables::new();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Variable(name) => {
                    let segment = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                    let end = match self.parts.get(at + 1) {
                        Some(Part::Literal(next)) => {
                            let found = rest.find(next.as_str())?;
                            (found <= segment).then_some(found)?
                        }
                        _ => segment,
                    };
                    variables.insert(name.clone(), decode(&rest[..end])?);
                    rest = &rest[end..];
                }
            }
        }
        rest.is_empty().then_some(variables)
    }
}

/// Percent-decodes a segment; nothing for what is empty, no UTF-8, or a path of its own.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let is_path = text == "." || text == ".." || text.contains(['/', '\\', '\0']);
    (!text.is_empty() && !is_path).then_some(text)
}
