//! [`ProvidedTool`]: a tool of a provider, with what a call of it needs.

use std::{sync::Arc, time::Duration};

use larder_protocol::{Fault, quote::shortened, schema::Validator};
use rmcp::model::{self, JsonObject};
use serde_json::Value;

use super::{
    headers::{self, HeaderParameter},
    output_rules::Spill,
    projection::{has_reserved, with_reserved},
    spilled_schema::allow_spilled,
};

/// The server that lists a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListedBy {
    /// This server.
    Server,
    /// Another server behind this one, by its name.
    Upstream(Arc<str>),
}

/// A tool that a call names, as a provider has found it.
#[derive(Debug, Clone)]
pub enum FoundTool {
    /// The provider lists it.
    Listed(Arc<ProvidedTool>),
    /// The provider has no list for this caller now, so the caller may have made up the name.
    /// Only the call shows whether the tool exists.
    Unlisted,
}

/// A provider's tool.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting or a fact of its own")]
pub struct ProvidedTool {
    /// The definition. An output schema is in JSON Schema 2020-12.
    pub listed: model::Tool,
    pub(super) headers: Vec<HeaderParameter>,
    /// The output schema that also allows a preview.
    pub(super) spillable_schema: Option<Arc<JsonObject>>,
    /// The rule by which results are stored; `None` for a tool that bounds its results itself.
    pub(super) spill: Option<Spill>,
    /// The time to live of stored results; `None` for the store's default.
    pub(super) ttl: Option<Duration>,
    /// The operator's jq filter for results.
    pub(super) project: Option<String>,
    /// Whether a result that the caller has had before is told by what has changed.
    pub(super) tells_changes: bool,
    /// The argument that takes the cursor of a page, if the operator names it.
    pub(super) cursor: Option<String>,
    /// Whether one call may run the tool several times, though it does not say that it only reads.
    pub(super) fans_out: bool,
    /// The listed arguments with the reserved one. `None` if the tool has an argument of this name
    /// itself.
    pub(super) projectable_input: Option<Arc<JsonObject>>,
    /// Whether arguments and structured content are validated here. Otherwise
    /// the provider does it.
    pub(super) validates: bool,
    /// The input schema in JSON Schema 2020-12.
    input: Option<JsonObject>,
}

impl ProvidedTool {
    /// A tool of a provider that validates arguments itself. Results that are
    /// too large are stored. `input` is the input schema in JSON Schema 2020-12,
    /// for arguments that were resolved from references.
    pub fn new(listed: model::Tool, input: Option<JsonObject>) -> Self {
        let headers = headers::from_schema(&listed.input_schema).unwrap_or_else(|problem| {
            tracing::warn!(tool = %listed.name, problem, "no argument is mirrored into a header");
            Vec::new()
        });

        let spillable_schema =
            listed.output_schema.as_deref().map(|own| Arc::new(allow_spilled(own)));
        let spill = Some(Spill::default());
        let has_own_reserved =
            has_reserved(&listed.input_schema) || input.as_ref().is_some_and(has_reserved);
        let projectable_input = with_reserved(&listed.input_schema).map(Arc::new);

        Self {
            listed,
            headers,
            spillable_schema,
            spill,
            ttl: None,
            project: None,
            tells_changes: false,
            fans_out: false,
            cursor: None,
            projectable_input: projectable_input.filter(|_| !has_own_reserved),
            validates: false,
            input,
        }
    }

    /// Sets the rule by which results are stored, and their time to live.
    #[must_use]
    pub fn with_results(mut self, spill: Spill, ttl: Option<Duration>) -> Self {
        self.spill = Some(spill);
        self.ttl = ttl;
        self
    }

    /// Sets the jq filter that is applied to results where the caller does not say another.
    #[must_use]
    pub fn with_projection(mut self, filter: Option<String>) -> Self {
        self.project = filter;
        self
    }

    /// Tells what has changed where a caller has had the result of a call before.
    #[must_use]
    pub fn telling_changes(mut self, tells_changes: bool) -> Self {
        self.tells_changes = tells_changes;
        self
    }

    /// Lets one call run the tool several times, though it does not say that it only reads.
    #[must_use]
    pub fn fanning_out(mut self, fans_out: bool) -> Self {
        self.fans_out = fans_out;
        self
    }

    /// Names the argument that takes the cursor of a page.
    #[must_use]
    pub fn with_cursor(mut self, argument: Option<String>) -> Self {
        self.cursor = argument;
        self
    }

    /// A tool of a custom handler, which relies on valid arguments.
    pub(super) fn custom(listed: model::Tool) -> Self {
        Self {
            listed,
            headers: Vec::new(),
            spillable_schema: None,
            spill: None,
            ttl: None,
            project: None,
            tells_changes: false,
            fans_out: false,
            cursor: None,
            projectable_input: None,
            validates: true,
            input: None,
        }
    }

    /// The arguments that clients mirror into headers.
    pub fn headers(&self) -> &[HeaderParameter] {
        &self.headers
    }

    /// Makes the arguments fit the input schema, where it can be read and the tool does not check
    /// them itself.
    ///
    /// # Errors
    /// The argument that does not fit, and why.
    pub(super) fn fit(&self, arguments: &mut Value) -> Result<(), String> {
        let schema = self.input.clone().filter(|_| !self.validates);
        match schema.map(Validator::new) {
            Some(Ok(validator)) => {
                validator.fit(arguments);
                validator.check(arguments)
            }
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// The input schema in JSON Schema 2020-12, if it can be read.
    pub fn input(&self) -> Option<&JsonObject> {
        self.input.as_ref()
    }

    /// Validates arguments that were resolved from references. A schema that
    /// does not compile is left to the provider.
    pub(super) fn check(&self, arguments: &Value) -> Result<(), String> {
        match self.input.clone().map(Validator::new) {
            Some(Ok(validator)) => validator.check(arguments),
            Some(Err(_)) | None => Ok(()),
        }
    }
}

pub(super) fn as_object(arguments: Value) -> Result<JsonObject, Fault> {
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        _ => Err(Fault::invalid_params("\"arguments\" must be an object.")),
    }
}

pub(super) fn unknown_tool(name: &str) -> Fault {
    Fault::invalid_params(format!("Unknown tool: {}", shortened(name)))
}
