//! The resources that a step reads: one by one, or one for each item of a list or an object.

use std::borrow::Cow;

use larder_protocol::quote::quoted;
use serde_json::{Map, Value, json};

use super::{
    DataSource, ExpansionError, ResourceHandle, UriPattern, WorkflowStep,
    source::{Bindings, Origin},
    step_result::{StepResult, missing_value},
};

/// A resource that a step reads.
pub(super) struct StepReading {
    /// The URI, or why there is none.
    pub(super) uri: Result<String, String>,
    /// The key, if the step goes over the members of an object.
    pub(super) key: Option<String>,
}

/// The resources that a step reads.
#[derive(Default)]
pub(super) struct Readings {
    pub(super) all: Vec<StepReading>,
    /// The sentence of the transcript before them.
    pub(super) note: Option<String>,
    /// Whether the step goes over the members of an object.
    pub(super) is_object: bool,
}

impl Readings {
    fn push(&mut self, uri: String) {
        self.all.push(StepReading { uri: Ok(uri), key: None });
    }
}

/// The values that a step has read, and the items that it has lost.
#[derive(Default)]
pub(super) struct ReadValues {
    pub(super) values: Vec<(Option<String>, Value)>,
    lost: Vec<String>,
}

/// The most reasons that are told of a step that has lost all its items.
const MAX_REASONS: usize = 3;

impl ReadValues {
    pub(super) fn lose(&mut self, reason: String) {
        self.lost.push(reason);
    }

    /// Why the step has failed although it leaves out what fails: nothing is left.
    pub(super) fn failure(&self) -> Option<String> {
        if self.lost.is_empty() || !self.values.is_empty() {
            return None;
        }

        let reasons = self.lost[..self.lost.len().min(MAX_REASONS)].join(" ");
        let more = if self.lost.len() > MAX_REASONS { " …" } else { "" };
        Some(format!("None of its {} items could be read. {reasons}{more}", self.lost.len()))
    }

    /// The value that the step binds: one value, a list, or an object with the keys of the object
    /// that it went over.
    pub(super) fn into_value(mut self, goes_over: bool, is_object: bool) -> Value {
        if is_object {
            let members =
                self.values.into_iter().map(|(key, value)| (key.unwrap_or_default(), value));
            return Value::Object(members.collect());
        }
        if !goes_over && self.values.len() == 1 {
            return self.values.remove(0).1;
        }
        self.values.into_iter().map(|(_, value)| value).collect()
    }
}

/// An item of the list or object that a step goes over.
struct EachItem {
    key: Option<String>,
    value: Value,
}

/// The first items of a list or object, and the number of all.
///
/// # Errors
/// The kind of value that it is instead.
fn first_items(value: &Value, limit: usize) -> Result<(Vec<EachItem>, usize), &'static str> {
    match value {
        Value::Array(items) => {
            let first = items.iter().take(limit);
            let first = first.map(|item| EachItem { key: None, value: item.clone() });
            Ok((first.collect(), items.len()))
        }
        Value::Object(members) => {
            let first = members.iter().take(limit);
            let first =
                first.map(|(key, value)| EachItem { key: Some(key.clone()), value: value.clone() });
            Ok((first.collect(), members.len()))
        }
        Value::String(_) => Err("a text"),
        Value::Null => Err("null"),
        Value::Number(_) => Err("a number"),
        Value::Bool(_) => Err("a boolean"),
    }
}

impl Bindings {
    /// The resources of the step.
    ///
    /// # Errors
    /// The step lacks a value.
    pub(super) fn readings(&mut self, step: &WorkflowStep) -> Result<Readings, StepResult> {
        let mut readings = Readings::default();
        for resource in &step.resources {
            match resource {
                ResourceHandle::From { uri } => {
                    let uri = uri.text(self);
                    readings.push(uri.map_err(|error| missing_value("the resource", &error))?);
                }
                ResourceHandle::Uri(uri) => {
                    // The pattern is valid: the server checked it when it was built.
                    let pattern = uri
                        .pattern()
                        .map_err(|e| StepResult::failed(format!("{}: {e}", uri.text())))?;

                    if let Some(literal) = pattern.literal() {
                        readings.push(literal.to_owned());
                    } else if step.for_each.is_some() {
                        readings = self.readings_for_each(step, pattern)?;
                    } else {
                        readings.push(self.uri(step, pattern, None)?);
                    }
                }
            }
        }
        Ok(readings)
    }

    fn uri(
        &self,
        step: &WorkflowStep,
        pattern: &UriPattern,
        item: Option<&DataSource>,
    ) -> Result<String, StepResult> {
        let expanded = pattern.expand(|variable| {
            let source = item.or_else(|| step.template_bindings.get(variable));
            let source =
                source.ok_or_else(|| StepResult::failed(format!("{{{variable}}} is not bound")))?;
            source
                .text(self)
                .map_err(|e| missing_value(&format!("{{{variable}}} in {pattern}"), &e))
        });

        expanded.map_err(|error| match error {
            ExpansionError::NoValue(failed) => failed,
            ExpansionError::Pattern(error) => {
                StepResult::failed(format!("{pattern} cannot be read: {error}"))
            }
        })
    }

    fn readings_for_each(
        &mut self,
        step: &WorkflowStep,
        pattern: &UriPattern,
    ) -> Result<Readings, StepResult> {
        let Some(each) = &step.for_each else { return Ok(Readings::default()) };
        let variable = step.template_bindings.iter().next();
        let (location, source) = match (&each.over, variable) {
            (Some(over), _) => (Cow::Borrowed("for_each"), over),
            (None, Some((variable, source))) => {
                (Cow::Owned(format!("{{{variable}}} in {pattern}")), source)
            }
            (None, None) => return Ok(Readings::default()),
        };

        let value = source.items(self).map_err(|e| missing_value(&location, &e))?;
        let is_object = value.is_object();
        let (items, total) = first_items(&value, each.limit).map_err(|kind| {
            StepResult::failed(format!(
                "{location} is not bound to a list or an object, but to {kind}"
            ))
        })?;
        drop(value);

        let mut readings =
            Readings { is_object, note: note(step, each.limit, total), ..Readings::default() };
        for EachItem { key, value } in items {
            let uri = match &each.over {
                Some(_) => self.uri_of_item(step, pattern, key.as_deref(), value),
                None => {
                    // Transformations apply to each item, not to the list.
                    let transforms = source.transforms.clone();
                    let item = DataSource { transforms, ..Origin::Constant(value).into() };
                    self.uri(step, pattern, Some(&item))
                }
            };

            let uri = uri.map_err(StepResult::into_reason);
            readings.all.push(StepReading { uri, key });
        }
        Ok(readings)
    }

    /// The URI of an item, whose parts are in the variables.
    fn uri_of_item(
        &mut self,
        step: &WorkflowStep,
        pattern: &UriPattern,
        key: Option<&str>,
        value: Value,
    ) -> Result<String, StepResult> {
        self.item = Some(match key {
            Some(key) => Value::Object(Map::from_iter([
                ("key".to_owned(), json!(key)),
                ("value".to_owned(), value),
            ])),
            None => value,
        });

        let uri = self.uri(step, pattern, None);
        self.item = None;
        uri
    }
}

/// The sentence of the transcript about the number of items.
fn note(step: &WorkflowStep, limit: usize, total: usize) -> Option<String> {
    let name = quoted(&step.name);
    match total {
        0 => Some(format!("There is nothing to read in {name}: it goes over nothing.")),
        total if total > limit => {
            Some(format!("Only the first {limit} of {total} are read in {name}."))
        }
        _ => None,
    }
}
