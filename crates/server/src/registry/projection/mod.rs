//! The reserved argument `_larder` of a call: the part of the result that the caller wants. The
//! server behind the tool never sees it.

#![cfg_attr(not(feature = "query"), allow(dead_code, reason = "queries compute projections"))]

mod argument;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use larder_protocol::schema::target_of;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Map, Value, json};

use crate::handler::{IntoToolResult, Scope, ToolError};

/// The name of the argument.
pub(crate) const RESERVED: &str = "_larder";

/// The part of a result that a caller wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Projection {
    pub(crate) form: Form,
    /// The place where the answer is stored, as the argument `into` of `query_resource`.
    pub(crate) into: Option<Value>,
    /// The arguments of several calls: a list, or the URI of records. The answer is computed from
    /// their table.
    pub(crate) each: Option<Value>,
    /// The most pages of a list. The answer is computed from their records.
    pub(crate) pages: Option<u64>,
    /// Whether the operator has chosen it, and not the caller.
    pub(crate) is_default: bool,
}

/// How the answer is computed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    /// The records are the result itself.
    Whole,
    /// By a jq filter over the whole value.
    Jq(String),
    /// By one SELECT over the table `t`.
    Sql(String),
    /// The lines that match a regular expression.
    Search(String),
    /// These members of each record.
    Fields(Vec<String>),
    /// The first records or lines.
    Head(u64),
}

/// The argument by which a tool takes the cursor of a page.
#[derive(Debug, Clone)]
pub(crate) struct Paging {
    /// The names of its arguments.
    pub(crate) arguments: Vec<String>,
    /// The argument that the operator names.
    pub(crate) configured: Option<String>,
    /// The values that arguments for numbers and offsets have without being given.
    pub(crate) starts: BTreeMap<String, u64>,
}

/// The meaning of references in the arguments of `each` that the call itself gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputReferences {
    /// Each call resolves its own, to content of at most these bytes together.
    Resolved { max_bytes: u64 },
    /// They are content as any other.
    Content,
}

/// Computes answers from stored results.
#[async_trait]
pub(crate) trait Projector: Send + Sync {
    /// Checks a projection before the tool is called.
    ///
    /// # Errors
    /// The fault, for the model.
    async fn check(
        &self,
        tool: &str,
        projection: &Projection,
        scope: &Arc<Scope>,
    ) -> Result<(), String>;

    /// Calls a tool for each of several arguments or for several pages, and returns the part of
    /// their table that the caller wants.
    async fn fan_out(
        &self,
        tool: &str,
        arguments: JsonObject,
        projection: &Projection,
        paging: Paging,
        references: InputReferences,
        scope: &Arc<Scope>,
    ) -> CallToolResult;

    /// Stores a result, and returns the part that the caller wants.
    async fn project(
        &self,
        tool: &str,
        projection: &Projection,
        result: CallToolResult,
        scope: &Arc<Scope>,
    ) -> CallToolResult;
}

impl Projection {
    /// The operator's filter for a tool.
    pub(super) fn by_default(jq: &str) -> Self {
        Self {
            form: Form::Jq(jq.to_owned()),
            into: None,
            each: None,
            pages: None,
            is_default: true,
        }
    }
}

/// A schema of arguments with the reserved one, for the list. `None` if the tool has an argument of
/// this name itself.
pub(super) fn with_reserved(schema: &JsonObject) -> Option<JsonObject> {
    if has_reserved(schema) {
        return None;
    }

    let mut schema = schema.clone();
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    properties.as_object_mut()?.insert(RESERVED.to_owned(), json!({ "type": "object" }));
    Some(schema)
}

/// The depth to which references and alternatives within a schema are followed.
const MAX_DEPTH: usize = 8;
/// The most subschemas that are read. Alternatives that refer to each other multiply.
const MAX_SUBSCHEMAS: usize = 200;

/// Whether a tool has an argument of this name itself.
pub(super) fn has_reserved(schema: &JsonObject) -> bool {
    let root = Value::Object(schema.clone());
    let mut open = vec![(&root, 0)];
    let mut read = 0;

    while let Some((schema, depth)) = open.pop() {
        if schema.get("properties").is_some_and(|properties| properties.get(RESERVED).is_some()) {
            return true;
        }
        read += 1;
        if depth >= MAX_DEPTH || read >= MAX_SUBSCHEMAS {
            continue;
        }

        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| target_of(&root, reference));
        let alternatives = ["allOf", "anyOf", "oneOf"].into_iter();
        let alternatives = alternatives.filter_map(|name| schema.get(name)?.as_array()).flatten();
        let branches = ["then", "else"].into_iter().filter_map(|name| schema.get(name));
        open.extend(
            target.into_iter().chain(alternatives).chain(branches).map(|next| (next, depth + 1)),
        );
        open.truncate(MAX_SUBSCHEMAS);
    }
    false
}

/// The error of a call whose projection is wrong.
pub(crate) fn not_called(tool: &str, problem: &str) -> CallToolResult {
    ToolError::new(format!("{tool} was not called: {problem}")).into_tool_result()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_listed_schema_has_the_argument_unless_the_tool_has_it() {
        let listed = |schema: Value| with_reserved(schema.as_object().unwrap()).map(Value::Object);
        let reserved = json!({ "type": "object" });

        for schema in [
            json!({}),
            json!({ "type": "object", "properties": {} }),
            json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "$ref": "#", "anyOf": vec![json!({ "$ref": "#" }); 300] }),
        ] {
            let with = listed(schema.clone()).unwrap();
            assert_eq!(with["properties"][RESERVED], reserved);
            let grown = with.to_string().len() - schema.to_string().len();
            assert!(grown <= 60, "{grown}");
        }

        for schema in [
            json!({ "properties": { "_larder": { "type": "string" } } }),
            json!({ "anyOf": [{ "properties": { "_larder": {} } }] }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "properties": { "_larder": {} } } } }),
            json!({
                "allOf": [{ "$ref": "#/$defs/a" }],
                "$defs": { "a": { "oneOf": [{ "then": { "properties": { "_larder": {} } } }] } },
            }),
        ] {
            assert_eq!(listed(schema), None);
        }
    }
}
