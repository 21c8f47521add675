//! The source of a value: an argument, an earlier step, or the definition.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use larder_protocol::uri_template::parse::{TemplatePiece, prose_pieces};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::path::{self, Bound, FieldPath};

/// The source of a value, with transformations of its text and a default.
///
/// In a configuration file: `{ prompt_arg = "topic" }`,
/// `{ step = "user", field = "address[0].city" }`, `{ constant = 5 }`, `{ item = "value.id" }`,
/// `{ template = "Look for {what}", bindings = { what = { prompt_arg = "x" } } }`,
/// each optionally with `transform = ["trim", "lowercase"]` and `default = …`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SerializedSource", into = "SerializedSource")]
pub struct DataSource {
    pub(super) origin: Origin,
    pub(super) transforms: Vec<Transform>,
    pub(super) default: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    PromptArg(String),
    Step {
        binding: String,
        field: Option<FieldPath>,
    },
    /// The item that a `for_each` step is at.
    Item {
        field: Option<FieldPath>,
    },
    Constant(Value),
    Template {
        text: String,
        bindings: BTreeMap<String, DataSource>,
    },
}

/// A transformation of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transform {
    /// To lower case.
    Lowercase,
    /// To upper case.
    Uppercase,
    /// Without leading and trailing white space.
    Trim,
}

/// The value of an argument of the prompt.
pub fn prompt_arg(name: impl Into<String>) -> DataSource {
    Origin::PromptArg(name.into()).into()
}

/// The complete result that a step bound.
pub fn from_step(binding: impl Into<String>) -> DataSource {
    Origin::Step { binding: binding.into(), field: None }.into()
}

/// A field of the result that a step bound: `api.endpoint_name`, `items[0].id`, `items[-1]`,
/// `["a key.with dots"].id`.
pub fn field(binding: impl Into<String>, path: impl Into<String>) -> DataSource {
    Origin::Step { binding: binding.into(), field: Some(path.into().into()) }.into()
}

/// The item that a step is at which goes over a list or an object
/// ([`WorkflowStep::for_each_over`](super::WorkflowStep::for_each_over)). The item of an object is
/// an object with the members `key` and `value`.
pub fn item() -> DataSource {
    Origin::Item { field: None }.into()
}

/// A field of the [`item`]: `id`, or for an object `key` or `value.id`.
pub fn item_field(path: impl Into<String>) -> DataSource {
    Origin::Item { field: Some(path.into().into()) }.into()
}

/// A constant. Braces in it have no meaning.
pub fn constant(value: impl Into<Value>) -> DataSource {
    Origin::Constant(value.into()).into()
}

/// Text with variables, which are replaced once.
///
/// ```
/// use larder_server::workflow::dsl::*;
///
/// let greeting = template("Hello {name}", [("name", prompt_arg("user"))]);
/// ```
pub fn template<N: Into<String>>(
    text: impl Into<String>,
    bindings: impl IntoIterator<Item = (N, DataSource)>,
) -> DataSource {
    let bindings = bindings.into_iter().map(|(name, source)| (name.into(), source)).collect();
    Origin::Template { text: text.into(), bindings }.into()
}

impl From<Origin> for DataSource {
    fn from(origin: Origin) -> Self {
        Self { origin, transforms: Vec::new(), default: None }
    }
}

/// Why a source has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// An optional argument was not given.
    #[error("the argument {0:?} was not given")]
    NoArgument(String),
    /// The step that binds it was skipped, or has not run yet.
    #[error("{0:?} was not bound: its step did not run")]
    NotBound(String),
    /// The source is an item outside of a step that goes over items.
    #[error("there is no item outside of for_each")]
    NoItem,
    /// The step's result, or the item, has no such field.
    #[error("{binding:?} has no field {path:?}: {problem}")]
    NoField {
        /// The binding, or `item`.
        binding: String,
        /// The path of the field.
        path: String,
        /// The place in the path that has no value.
        problem: String,
    },
    /// The value is not text.
    #[error("{0} is not text")]
    NotText(String),
}

/// The values of a run so far.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    pub(super) arguments: serde_json::Map<String, Value>,
    pub(super) steps: HashMap<String, Bound>,
    /// The item that a `for_each` step is at.
    pub(super) item: Option<Value>,
}

impl DataSource {
    /// Converts the text to lower case.
    #[must_use]
    pub fn to_lowercase(self) -> Self {
        self.with_transform(Transform::Lowercase)
    }

    /// Converts the text to upper case.
    #[must_use]
    pub fn to_uppercase(self) -> Self {
        self.with_transform(Transform::Uppercase)
    }

    /// Removes leading and trailing white space.
    #[must_use]
    pub fn trim(self) -> Self {
        self.with_transform(Transform::Trim)
    }

    /// Sets a default, for when there is no value.
    #[must_use]
    pub fn or(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }

    fn with_transform(mut self, transform: Transform) -> Self {
        self.transforms.push(transform);
        self
    }

    /// This source and the sources nested in it, each with whether a default, its own or
    /// that of a template around it, replaces a missing value.
    pub(super) fn with_nested(&self) -> Vec<(&Self, bool)> {
        self.nested_in(false)
    }

    fn nested_in(&self, has_default: bool) -> Vec<(&Self, bool)> {
        let has_default = has_default || self.default.is_some();
        let mut all = vec![(self, has_default)];
        if let Origin::Template { bindings, .. } = &self.origin {
            all.extend(bindings.values().flat_map(|source| source.nested_in(has_default)));
        }
        all
    }

    pub(super) fn is_item(&self) -> bool {
        matches!(self.origin, Origin::Item { .. })
    }

    /// The current value.
    pub(super) fn value(&self, bindings: &Bindings) -> Result<Value, SourceError> {
        let value = self.untransformed(bindings)?.into_owned();

        if self.transforms.is_empty() {
            return Ok(value);
        }

        let mut text = to_text(&value)?.into_owned();
        for transform in &self.transforms {
            text = match transform {
                Transform::Lowercase => text.to_lowercase(),
                Transform::Uppercase => text.to_uppercase(),
                Transform::Trim => text.trim().to_owned(),
            };
        }

        Ok(text.into())
    }

    /// The current value as text.
    pub(super) fn text(&self, bindings: &Bindings) -> Result<String, SourceError> {
        Ok(to_text(&self.value(bindings)?)?.into_owned())
    }

    /// The current value or the default, without the transformations.
    fn untransformed<'a>(&'a self, bindings: &'a Bindings) -> Result<Cow<'a, Value>, SourceError> {
        let found = self.origin_value(bindings);
        found.or_else(|error| self.default.as_ref().map(Cow::Borrowed).ok_or(error))
    }

    /// The list or object to go over, without the transformations, which apply to each item. A
    /// result that only wraps a list is that list.
    pub(super) fn items<'a>(
        &'a self,
        bindings: &'a Bindings,
    ) -> Result<Cow<'a, Value>, SourceError> {
        if let Origin::Step { binding, field: None } = &self.origin
            && let Some(bound) = bindings.steps.get(binding)
        {
            return Ok(Cow::Borrowed(bound.unwrapped()));
        }

        let found = self.untransformed(bindings)?;
        match found.as_str().and_then(path::short_json) {
            Some(parsed) => Ok(Cow::Owned(parsed)),
            None => Ok(found),
        }
    }

    fn origin_value<'a>(&'a self, bindings: &'a Bindings) -> Result<Cow<'a, Value>, SourceError> {
        match &self.origin {
            Origin::Constant(value) => Ok(Cow::Borrowed(value)),
            Origin::PromptArg(name) => {
                let value = bindings.arguments.get(name).filter(|v| !v.is_null());
                value.map(Cow::Borrowed).ok_or_else(|| SourceError::NoArgument(name.clone()))
            }
            Origin::Step { binding, field } => {
                let bound = bindings.steps.get(binding);
                let bound = bound.ok_or_else(|| SourceError::NotBound(binding.clone()))?;

                match field {
                    None => Ok(Cow::Borrowed(&bound.value)),
                    Some(path) => path.find(bound).map_err(no_field(binding, path)),
                }
            }
            Origin::Item { field } => {
                let item = bindings.item.as_ref().ok_or(SourceError::NoItem)?;
                match field {
                    None => Ok(Cow::Borrowed(item)),
                    Some(path) => path.find_in(item).map_err(no_field("item", path)),
                }
            }
            Origin::Template { text, bindings: variables } => {
                let mut filled = String::new();
                for piece in prose_pieces(text) {
                    match piece {
                        TemplatePiece::Text(text) => filled.push_str(text),
                        TemplatePiece::Expression(name) => match variables.get(name) {
                            Some(source) => filled.push_str(&source.text(bindings)?),
                            None => filled.push_str(&format!("{{{name}}}")),
                        },
                    }
                }
                Ok(Cow::Owned(filled.into()))
            }
        }
    }
}

fn no_field(binding: &str, path: &FieldPath) -> impl FnOnce(String) -> SourceError {
    move |problem| SourceError::NoField {
        binding: binding.to_owned(),
        path: path.text().to_owned(),
        problem,
    }
}

/// Strings unchanged, numbers and booleans as in JSON; no other value is text.
fn to_text(value: &Value) -> Result<Cow<'_, str>, SourceError> {
    match value {
        Value::String(text) => Ok(Cow::Borrowed(text)),
        Value::Number(number) => Ok(Cow::Owned(number.to_string())),
        Value::Bool(flag) => Ok(Cow::Borrowed(if *flag { "true" } else { "false" })),
        Value::Null => Err(SourceError::NotText("null".into())),
        Value::Array(items) => Err(SourceError::NotText(format!("a list of {}", items.len()))),
        Value::Object(_) => Err(SourceError::NotText("an object".into())),
    }
}

/// The form in configuration files.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SerializedSource {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_arg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The path within the item of a `for_each` step; empty for the item itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    constant: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    bindings: BTreeMap<String, DataSource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    transform: Vec<Transform>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
}

/// Distinguishes an explicit `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl From<DataSource> for SerializedSource {
    fn from(source: DataSource) -> Self {
        let rest =
            Self { transform: source.transforms, default: source.default, ..Self::default() };

        match source.origin {
            Origin::PromptArg(name) => Self { prompt_arg: Some(name), ..rest },
            Origin::Step { binding, field } => {
                let field = field.map(|path| path.text().to_owned());
                Self { step: Some(binding), field, ..rest }
            }
            Origin::Item { field } => {
                let item = field.map_or_else(String::new, |path| path.text().to_owned());
                Self { item: Some(item), ..rest }
            }
            Origin::Constant(value) => Self { constant: Some(value), ..rest },
            Origin::Template { text, bindings } => Self { template: Some(text), bindings, ..rest },
        }
    }
}

impl TryFrom<SerializedSource> for DataSource {
    type Error = String;

    fn try_from(serialized: SerializedSource) -> Result<Self, String> {
        let SerializedSource {
            prompt_arg,
            step,
            field,
            item,
            constant,
            template,
            bindings,
            transform,
            default,
        } = serialized;

        if field.is_some() && step.is_none() {
            return Err("field needs a step".into());
        }
        if !bindings.is_empty() && template.is_none() {
            return Err("bindings need a template".into());
        }

        let item = item.map(|path| Some(path).filter(|path| !path.is_empty()));
        let origin = match (prompt_arg, step, item, constant, template) {
            (Some(name), None, None, None, None) => Origin::PromptArg(name),
            (None, Some(binding), None, None, None) => {
                Origin::Step { binding, field: field.map(FieldPath::from) }
            }
            (None, None, Some(path), None, None) => {
                Origin::Item { field: path.map(FieldPath::from) }
            }
            (None, None, None, Some(value), None) => Origin::Constant(value),
            (None, None, None, None, Some(text)) => Origin::Template { text, bindings },
            _ => {
                return Err(
                    "give exactly one of prompt_arg, step, item, constant and template".into()
                );
            }
        };

        Ok(Self { origin, transforms: transform, default })
    }
}

#[cfg(test)]
mod tests;
