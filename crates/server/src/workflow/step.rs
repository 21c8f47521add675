//! A step: a tool to call, resources to read, or both.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DataSource, UncheckedUri};

/// A tool, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolHandle(String);

impl ToolHandle {
    /// The tool of that name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

/// A resource, by a URI that may have variables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ResourceHandle {
    /// `docs://{page_id}`
    Uri(UncheckedUri),
    /// A complete URI from an earlier step.
    From {
        /// The source of the URI.
        uri: DataSource,
    },
}

impl ResourceHandle {
    /// The resource at that URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self::Uri(uri.into().into())
    }

    /// The resource whose URI comes from this source, such as one that a tool
    /// stored.
    pub fn from_source(uri: DataSource) -> Self {
        Self::From { uri }
    }
}

/// The tool that a step calls, or the resource that it reads.
pub enum Handle {
    /// A tool.
    Tool(ToolHandle),
    /// A resource.
    Resource(ResourceHandle),
}

impl From<ToolHandle> for Handle {
    fn from(tool: ToolHandle) -> Self {
        Self::Tool(tool)
    }
}

impl From<ResourceHandle> for Handle {
    fn from(resource: ResourceHandle) -> Self {
        Self::Resource(resource)
    }
}

/// A condition on a value, which decides whether a step runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The value equals this one.
    Equals(Value),
    /// The value differs from this one, or is missing.
    NotEquals(Value),
    /// The value is one of these.
    OneOf(Vec<Value>),
    /// Whether there is a value.
    Exists(bool),
}

/// The value equals this one.
pub fn equals(value: impl Into<Value>) -> Condition {
    Condition::Equals(value.into())
}

/// The value differs from this one, or is missing.
pub fn not_equals(value: impl Into<Value>) -> Condition {
    Condition::NotEquals(value.into())
}

/// The value is one of these.
pub fn one_of<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Condition {
    Condition::OneOf(values.into_iter().map(Into::into).collect())
}

/// There is a value.
pub fn exists() -> Condition {
    Condition::Exists(true)
}

impl Condition {
    pub(super) fn holds(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Equals(expected) => value == Some(expected),
            Self::NotEquals(excluded) => value != Some(excluded),
            Self::OneOf(expected) => value.is_some_and(|value| expected.contains(value)),
            Self::Exists(expected) => value.is_some_and(|v| !v.is_null()) == *expected,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct When {
    pub(super) source: DataSource,
    pub(super) is: Condition,
}

/// The rule for a `for_each` step when a resource cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The step fails.
    #[default]
    Stop,
    /// The resource is left out, and the transcript says so.
    Skip,
}

/// The default limit of resources that a `for_each` step reads.
const DEFAULT_LIMIT: usize = 20;
/// The largest limit of resources that a `for_each` step reads.
pub(super) const MAX_LIMIT: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ForEach {
    /// The list or object to go over. Without it, the step's only variable names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<DataSource>,
    pub(super) limit: usize,
    pub(super) on_error: OnError,
}

impl Default for ForEach {
    fn default() -> Self {
        Self { over: None, limit: DEFAULT_LIMIT, on_error: OnError::Stop }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Retry {
    pub(super) attempts: u32,
    pub(super) delay_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, delay_ms: 200 }
    }
}

/// One step of a workflow. It adds its guidance to the transcript, reads its resources,
/// and then calls its tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowStep {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) arguments: BTreeMap<String, DataSource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) resources: Vec<ResourceHandle>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) template_bindings: BTreeMap<String, DataSource>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) guidance: Option<String>,
    #[serde(default, rename = "bind", skip_serializing_if = "Option::is_none")]
    pub(super) binding: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<When>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) for_each: Option<ForEach>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry: Option<Retry>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) handoff: bool,
}

impl WorkflowStep {
    /// A step that calls a tool ([`ToolHandle`]) or reads a resource
    /// ([`ResourceHandle`]).
    pub fn new(name: impl Into<String>, handle: impl Into<Handle>) -> Self {
        let mut step = Self { name: name.into(), ..Self::default() };
        match handle.into() {
            Handle::Tool(ToolHandle(tool)) => step.tool = Some(tool),
            Handle::Resource(resource) => step.resources.push(resource),
        }
        step
    }

    /// A step that leaves the rest to the model: the workflow ends here, with this
    /// guidance and the list of the remaining steps.
    pub fn handoff(name: impl Into<String>, guidance: impl Into<String>) -> Self {
        let name = name.into();
        let guidance = Some(guidance.into());
        Self { name, guidance, handoff: true, ..Self::default() }
    }

    /// Sets another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds an argument of the tool.
    #[must_use]
    pub fn arg(mut self, name: impl Into<String>, source: DataSource) -> Self {
        self.arguments.insert(name.into(), source);
        self
    }

    /// Adds a resource to read.
    #[must_use]
    pub fn with_resource(mut self, uri: impl Into<String>) -> Self {
        self.resources.push(ResourceHandle::new(uri));
        self
    }

    /// Adds a resource whose URI comes from an earlier step.
    #[must_use]
    pub fn with_resource_from(mut self, uri: DataSource) -> Self {
        self.resources.push(ResourceHandle::from_source(uri));
        self
    }

    /// Sets the value of a variable in the resources' URIs.
    ///
    /// A plain string is not a source, because it would be ambiguous:
    ///
    /// ```compile_fail
    /// use larder_server::workflow::dsl::*;
    /// read_resource("docs://{page}").with_template_binding("page", "front");
    /// ```
    #[must_use]
    pub fn with_template_binding(
        mut self,
        variable: impl Into<String>,
        source: DataSource,
    ) -> Self {
        self.template_bindings.insert(variable.into(), source);
        self
    }

    /// Sets what the assistant says before the step. `{argument}` is replaced by
    /// an argument of the prompt, which must be declared.
    #[must_use]
    pub fn with_guidance(mut self, guidance: impl Into<String>) -> Self {
        self.guidance = Some(guidance.into());
        self
    }

    /// Names the step's result for later steps: the tool's result, or else the
    /// content read; parsed if it is JSON.
    #[must_use]
    pub fn bind(mut self, binding: impl Into<String>) -> Self {
        self.binding = Some(binding.into());
        self
    }

    /// Runs the step only if the condition holds.
    #[must_use]
    pub fn when(mut self, source: DataSource, is: Condition) -> Self {
        self.when = Some(When { source, is });
        self
    }

    /// Reads the resource once for each item of the list that its only variable
    /// is bound to, at most 20 times. Of an object, the items are the members' values.
    #[must_use]
    pub fn for_each(self) -> Self {
        self.for_each_up_to(DEFAULT_LIMIT, OnError::Stop)
    }

    /// [`Self::for_each`] with another limit, and with what to do when a resource
    /// cannot be read.
    #[must_use]
    pub fn for_each_up_to(mut self, limit: usize, on_error: OnError) -> Self {
        let over = self.for_each.take().and_then(|each| each.over);
        self.for_each = Some(ForEach { over, limit, on_error });
        self
    }

    /// Reads the resource once for each item of a list or member of an object, at most 20 times
    /// unless [`Self::for_each_up_to`] says otherwise. Variables of the URI get parts of the
    /// [`item`](super::item):
    ///
    /// ```
    /// use larder_server::workflow::dsl::*;
    ///
    /// let pages = read_resources("docs://{chapter}/{page}")
    ///     .with_template_binding("chapter", item_field("key"))
    ///     .with_template_binding("page", item_field("value.first_page"))
    ///     .for_each_over(field("book", "chapters"));
    /// ```
    #[must_use]
    pub fn for_each_over(mut self, source: DataSource) -> Self {
        let each = self.for_each.take().unwrap_or_default();
        self.for_each = Some(ForEach { over: Some(source), ..each });
        self
    }

    /// Retries the tool when it fails: at most three attempts, with exponential
    /// backoff. A permanent error, such as invalid arguments, ends the step at once
    /// ([`ToolError::permanent`](crate::ToolError::permanent)).
    #[must_use]
    pub fn retryable(self) -> Self {
        let Retry { attempts, delay_ms } = Retry::default();
        self.retryable_with(attempts, Duration::from_millis(delay_ms))
    }

    /// [`Self::retryable`] with another number of attempts and first delay.
    #[must_use]
    pub fn retryable_with(mut self, attempts: u32, delay: Duration) -> Self {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.retry = Some(Retry { attempts, delay_ms });
        self
    }

    /// All sources of the step, each with its location for messages and with whether a
    /// default replaces a missing value.
    pub(super) fn sources(&self) -> Vec<(String, &DataSource, bool)> {
        let arguments = self.arguments.iter().map(|(n, s)| (format!("the argument {n:?}"), s));
        let variables =
            self.template_bindings.iter().map(|(n, s)| (format!("the variable {n:?}"), s));
        let uris = self.resources.iter().filter_map(|resource| match resource {
            ResourceHandle::From { uri } => Some(("a resource".to_owned(), uri)),
            ResourceHandle::Uri(_) => None,
        });
        let when = self.when.iter().map(|when| ("the condition".to_owned(), &when.source));

        let over = self.for_each.iter().filter_map(|each| each.over.as_ref());
        let over = over.map(|source| ("for_each".to_owned(), source));

        let all = arguments.chain(variables).chain(uris).chain(when).chain(over);
        all.flat_map(|(location, source)| {
            source
                .with_nested()
                .into_iter()
                .map(move |(nested, has_default)| (location.clone(), nested, has_default))
        })
        .collect()
    }
}
