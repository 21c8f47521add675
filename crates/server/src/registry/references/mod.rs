//! References in the arguments of a call: stored content, given to a tool
//! without passing through the model.
//!
//! References are resolved once, in front of every tool, with the caller's rights.
//! The resolved content is not searched for references, and neither are the
//! arguments of calls that a tool makes itself, nor records that are arguments of
//! several calls: content must not choose what is read.

mod content;
mod expected;
mod flow;
mod form;
mod select;

use std::sync::Arc;

use larder_protocol::{Fault, quote::shortened};
use larder_store::store::Origins;
use rmcp::model::JsonObject;
use serde_json::Value;

use self::{content::ReferenceLimits, expected::Expected, flow::Flow, form::Reference};
#[cfg(feature = "query")]
use super::RESERVED;
use super::{definition::Registry, provided_tool::FoundTool};
use crate::handler::Scope;

/// The most references in one call.
const MAX_REFERENCES: usize = 16;

/// A reference and its path: the members and indexes that lead to it.
type FoundReference = (Vec<String>, Result<Reference, String>);

/// The place of a reference in the arguments of a tool.
struct Place<'a> {
    tool: &'a str,
    /// The members and indexes that lead to the place.
    path: &'a [String],
    expected: Expected,
}

/// The arguments of a tool, after their references were looked for.
#[derive(Debug, Clone, PartialEq)]
pub enum ResolvedArguments {
    /// The arguments, with content in the places of all references.
    Ready(Value),
    /// The tool must not be called, for this reason. The text is for the model.
    Refused(String),
}

impl From<Result<Value, String>> for ResolvedArguments {
    fn from(resolved: Result<Value, String>) -> Self {
        match resolved {
            Ok(arguments) => Self::Ready(arguments),
            Err(problem) => Self::Refused(problem),
        }
    }
}

/// Arguments with their references replaced, before they are checked as a whole.
enum Resolved {
    /// They have no references.
    Same(Value),
    /// References have put other values into them.
    Changed(Value),
    /// A reference cannot be resolved, and why.
    Refused(String),
}

impl Registry {
    /// The arguments with all references replaced by content of at most
    /// `max_bytes` together.
    ///
    /// # Errors
    /// The fault of a provider that is asked for the tool's schema.
    pub async fn resolve_references(
        &self,
        tool: &str,
        arguments: Value,
        scope: &Arc<Scope>,
        max_bytes: u64,
    ) -> Result<ResolvedArguments, Fault> {
        Ok(match self.resolve_own(tool, arguments, scope, max_bytes).await? {
            Resolved::Changed(arguments) => {
                self.check_provided(tool, arguments, scope).await.into()
            }
            Resolved::Same(arguments) => ResolvedArguments::Ready(arguments),
            Resolved::Refused(problem) => ResolvedArguments::Refused(problem),
        })
    }

    /// The arguments of one of several calls: those that all calls have in common, and its own, in
    /// which references are replaced as in [`Registry::resolve_references`]. Those in common are
    /// resolved already, so they are not searched for references.
    ///
    /// # Errors
    /// The reason why the tool must not be called, for the model.
    #[cfg(feature = "query")]
    pub(crate) async fn resolve_input(
        &self,
        tool: &str,
        common: &JsonObject,
        own: JsonObject,
        scope: &Arc<Scope>,
        max_bytes: u64,
    ) -> Result<Value, String> {
        let merged = |own: Value| {
            let mut arguments = common.clone();
            if let Value::Object(own) = own {
                arguments.extend(own);
            }
            Value::Object(arguments)
        };

        let resolved = self.resolve_own(tool, Value::Object(own), scope, max_bytes).await;
        match resolved.map_err(|fault| fault.to_string())? {
            // Content would choose what is called and written.
            Resolved::Changed(own) if own.get(RESERVED).is_some() => {
                Err(format!("{tool} was not called: the content of a reference has {RESERVED}."))
            }
            Resolved::Changed(own) => self.check_provided(tool, merged(own), scope).await,
            Resolved::Same(own) => Ok(merged(own)),
            Resolved::Refused(problem) => Err(problem),
        }
    }

    /// The arguments with all references replaced, before any check of the whole.
    async fn resolve_own(
        &self,
        tool: &str,
        mut arguments: Value,
        scope: &Arc<Scope>,
        max_bytes: u64,
    ) -> Result<Resolved, Fault> {
        let mut found = Vec::new();
        find(&arguments, &mut Vec::new(), &mut found);
        if found.is_empty() {
            return Ok(Resolved::Same(arguments));
        }

        let Some(schema) = self.schema_of(tool, scope).await? else {
            // The call says that there is no such tool.
            return Ok(Resolved::Same(arguments));
        };

        if found.len() > MAX_REFERENCES {
            return Ok(Resolved::Refused(format!(
                "{tool} was not called: the arguments have more than {MAX_REFERENCES} references, the most that one call may have."
            )));
        }

        let mut limits =
            ReferenceLimits { max_bytes, left: max_bytes, read_bytes: scope.read_bytes };
        let headers = self.header_parameters(tool);
        for (path, reference) in found {
            let is_header = headers.iter().any(|header| header.is_at(&path));
            let resolved = match reference {
                _ if is_header => {
                    Err("a reference is not allowed here, because clients send this argument as a header.".to_owned())
                }
                Err(problem) => Err(problem),
                Ok(reference) => {
                    let expected = Expected::at(&schema, &path);
                    let place = Place { tool, path: &path, expected };
                    self.resolve_at(place, &reference, scope, &mut limits).await
                }
            };

            match (resolved, at(&mut arguments, &path)) {
                (Ok(value), Some(slot)) => *slot = value,
                (Ok(_), None) => {}
                (Err(problem), _) => {
                    let path = path.join(".");
                    let path = shortened(&path);
                    return Ok(Resolved::Refused(format!(
                        "{tool} was not called: arguments.{path}: {problem}"
                    )));
                }
            }
        }

        Ok(Resolved::Changed(arguments))
    }

    /// The value of a reference, if its content may flow to its place.
    async fn resolve_at(
        &self,
        place: Place<'_>,
        reference: &Reference,
        scope: &Arc<Scope>,
        limits: &mut ReferenceLimits,
    ) -> Result<Value, String> {
        let Place { tool, path, expected } = place;
        let origins = Origins::default();
        let store = scope.store.tracing(origins.clone());
        let traced = Arc::new(Scope { store, ..Scope::clone(scope) });
        let value = self.resolve(reference, expected, &traced, limits).await?;

        self.admit(&Flow { reference, path, tool, origins }, scope)?;
        Ok(value)
    }

    /// The input schema of a tool, if the caller has that tool.
    async fn schema_of(&self, tool: &str, scope: &Arc<Scope>) -> Result<Option<Value>, Fault> {
        let as_value = |schema: &JsonObject| Value::Object(schema.clone());
        if let Some(schema) = self.catalog().input_schema(tool) {
            return Ok(Some(as_value(&schema)));
        }
        for provider in &self.definition.providers {
            match provider.tool(tool, scope).await? {
                Some(FoundTool::Listed(found)) => {
                    return Ok(Some(as_value(&found.listed.input_schema)));
                }
                Some(FoundTool::Unlisted) => return Ok(Some(Value::Object(JsonObject::new()))),
                None => {}
            }
        }

        Ok(None)
    }

    /// Validates resolved arguments of a provider's tool. The provider would
    /// blame the caller, who has never seen the content. A registered tool validates
    /// its arguments itself.
    async fn check_provided(
        &self,
        tool: &str,
        arguments: Value,
        scope: &Arc<Scope>,
    ) -> Result<Value, String> {
        if !self.may_be_provided(tool) {
            return Ok(arguments);
        }

        for provider in &self.definition.providers {
            if let Ok(Some(FoundTool::Listed(found))) = provider.tool(tool, scope).await {
                let checked = found.check(&arguments);
                return checked
                    .map(|()| arguments)
                    .map_err(|problem| format!("{tool} was not called: {problem}"));
            }
        }
        Ok(arguments)
    }
}

/// How many references a value of arguments has, counted up to the first one too many.
#[cfg(feature = "query")]
pub(crate) fn count_references(value: &Value) -> usize {
    let mut found = Vec::new();
    find(value, &mut Vec::new(), &mut found);
    found.len()
}

/// Collects the references, up to the first one too many, because each has a copy of its path.
fn find(value: &Value, path: &mut Vec<String>, found: &mut Vec<FoundReference>) {
    if found.len() > MAX_REFERENCES {
        return;
    }
    if let Some(reference) = form::read(value) {
        found.push((path.clone(), reference));
        return;
    }

    match value {
        Value::Object(members) => {
            for (name, value) in members {
                path.push(name.clone());
                find(value, path, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                if value.is_string() || value.is_object() || value.is_array() {
                    path.push(index.to_string());
                    find(value, path, found);
                    path.pop();
                }
            }
        }
        _ => {}
    }
}

/// The value at a path.
fn at<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_collected_up_to_the_first_one_too_many() {
        for (count, collected) in [(3, 3), (MAX_REFERENCES, MAX_REFERENCES), (1_000, 17)] {
            let mut found = Vec::new();
            find(&json!([vec!["{{a:b}}"; count]]), &mut Vec::new(), &mut found);
            assert_eq!(found.len(), collected);
        }
    }
}
