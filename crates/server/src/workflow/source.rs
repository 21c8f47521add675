//! The source of a value: an argument, an earlier step, or the definition.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use larder_protocol::uri_template::parse::{Piece, prose_pieces};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The source of a value, with transformations of its text and a default.
///
/// In a configuration file: `{ prompt_arg = "topic" }`,
/// `{ step = "user", field = "address.0.city" }`, `{ constant = 5 }`,
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
    Step { binding: String, field: Option<String> },
    Constant(Value),
    Template { text: String, bindings: BTreeMap<String, DataSource> },
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

/// A field of the result that a step bound: `api.endpoint_name`, `items.0.id`.
pub fn field(binding: impl Into<String>, path: impl Into<String>) -> DataSource {
    Origin::Step { binding: binding.into(), field: Some(path.into()) }.into()
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
    /// The step's result has no such field.
    #[error("{binding:?} has no field {path:?}: {problem}")]
    NoField {
        /// The binding.
        binding: String,
        /// The path of the field.
        path: String,
        /// Where the path ends.
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
    pub(super) steps: HashMap<String, Value>,
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

    /// The current value.
    pub(super) fn value(&self, bindings: &Bindings) -> Result<Value, SourceError> {
        let value = match self.origin_value(bindings) {
            Ok(value) => value,
            Err(error) => self.default.clone().ok_or(error)?,
        };

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

    fn origin_value(&self, bindings: &Bindings) -> Result<Value, SourceError> {
        match &self.origin {
            Origin::Constant(value) => Ok(value.clone()),
            Origin::PromptArg(name) => {
                let value = bindings.arguments.get(name).filter(|v| !v.is_null());
                value.cloned().ok_or_else(|| SourceError::NoArgument(name.clone()))
            }
            Origin::Step { binding, field } => {
                let bound = bindings.steps.get(binding);
                let bound = bound.ok_or_else(|| SourceError::NotBound(binding.clone()))?;

                match field {
                    None => Ok(bound.clone()),
                    Some(path) => look_up(bound, binding, path).cloned(),
                }
            }
            Origin::Template { text, bindings: variables } => {
                let mut filled = String::new();
                for piece in prose_pieces(text) {
                    match piece {
                        Piece::Text(text) => filled.push_str(text),
                        Piece::Expression(name) => match variables.get(name) {
                            Some(source) => filled.push_str(&source.text(bindings)?),
                            None => filled.push_str(&format!("{{{name}}}")),
                        },
                    }
                }
                Ok(filled.into())
            }
        }
    }
}

fn look_up<'a>(value: &'a Value, binding: &str, path: &str) -> Result<&'a Value, SourceError> {
    let mut current = value;
    for key in path.split('.') {
        let missing = |problem: String| SourceError::NoField {
            binding: binding.to_owned(),
            path: path.to_owned(),
            problem,
        };

        current = match current {
            Value::Array(items) => {
                let index: usize = key.parse().map_err(|_| {
                    missing(format!("{key:?} is not an index into a list of {}", items.len()))
                })?;
                items.get(index).ok_or_else(|| {
                    missing(format!("{index} is out of range in a list of {}", items.len()))
                })?
            }
            Value::Object(members) => members.get(key).ok_or_else(|| {
                let keys: Vec<_> = members.keys().take(10).map(String::as_str).collect();
                missing(format!("{key:?} is not one of {}", keys.join(", ")))
            })?,
            _ => return Err(missing(format!("{key:?} is a field of a value without fields"))),
        };
    }
    Ok(current)
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
            Origin::Step { binding, field } => Self { step: Some(binding), field, ..rest },
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

        let origin = match (prompt_arg, step, constant, template) {
            (Some(name), None, None, None) => Origin::PromptArg(name),
            (None, Some(binding), None, None) => Origin::Step { binding, field },
            (None, None, Some(value), None) => Origin::Constant(value),
            (None, None, None, Some(text)) => Origin::Template { text, bindings },
            _ => return Err("give exactly one of prompt_arg, step, constant and template".into()),
        };

        Ok(Self { origin, transforms: transform, default })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn bindings() -> Bindings {
        let arguments = json!({ "topic": " Foo ", "evil": "'; DROP {topic}" });
        let Value::Object(arguments) = arguments else { unreachable!() };
        let user = json!({ "id": 123, "api": { "endpoint_name": "v1" }, "items": [{ "id": "a" }], "none": null });
        Bindings { arguments, steps: HashMap::from([("user".into(), user)]) }
    }

    #[test]
    fn each_origin_gives_its_value_with_its_type() {
        let b = bindings();
        assert_eq!(prompt_arg("topic").value(&b).unwrap(), " Foo ");
        assert_eq!(field("user", "id").value(&b).unwrap(), 123);
        assert_eq!(field("user", "id").text(&b).unwrap(), "123");
        assert_eq!(field("user", "api.endpoint_name").text(&b).unwrap(), "v1");
        assert_eq!(field("user", "items.0.id").text(&b).unwrap(), "a");
        assert_eq!(from_step("user").value(&b).unwrap()["id"], 123);
        assert_eq!(constant("{topic}").text(&b).unwrap(), "{topic}");
        assert_eq!(prompt_arg("topic").trim().to_lowercase().text(&b).unwrap(), "foo");
        assert_eq!(prompt_arg("none").or(5).text(&b).unwrap(), "5");
    }

    #[test]
    fn a_missing_value_says_where_the_path_ended() {
        let b = bindings();
        let problem = |source: DataSource| source.text(&b).unwrap_err().to_string();

        assert!(problem(field("user", "items.3.id")).contains("out of range in a list of 1"));
        assert!(problem(field("user", "items.x")).contains("not an index"));
        assert!(problem(field("user", "api.nope")).contains("endpoint_name"));
        assert!(problem(field("user", "none")).contains("null is not text"));
        assert!(problem(from_step("user")).contains("an object is not text"));
        assert!(problem(prompt_arg("nope")).contains("was not given"));
    }

    #[test]
    fn variables_in_text_are_replaced_once() {
        let b = bindings();
        let text =
            template("{a}, {b} and {c d}", [("a", prompt_arg("evil")), ("b", constant("{a}"))]);

        assert_eq!(text.text(&b).unwrap(), "'; DROP {topic}, {a} and {c d}");
    }

    #[test]
    fn a_source_is_written_and_read_again() {
        for source in [
            prompt_arg("a").trim().or("x"),
            field("s", "a.b").to_uppercase(),
            from_step("s"),
            constant(json!({ "a": [1] })),
            constant(Value::Null),
            prompt_arg("a").or(Value::Null),
            template("{x}", [("x", field("s", "y"))]),
        ] {
            let text = serde_json::to_string(&source).unwrap();
            assert_eq!(serde_json::from_str::<DataSource>(&text).unwrap(), source, "{text}");
        }

        for wrong in ["{}", r#"{"field":"a"}"#, r#"{"step":"a","constant":1}"#, r#"{"stepp":"a"}"#]
        {
            assert!(serde_json::from_str::<DataSource>(wrong).is_err(), "{wrong}");
        }
    }
}
